#!/usr/bin/perl
use strict;
use warnings;
# Rename pictures by the date in them.
for my $file (@ARGV) {
    my $date = `exiftool -s3 -d %Y-%m-%d_%H%M%S -DateTimeOriginal "$file"`;
    chomp $date;
    next unless $date =~ /^\d{4}/;
    my ($ext) = $file =~ /(\.[^.]+)$/;
    rename $file, "$date$ext" or warn "$file: $!";
}
