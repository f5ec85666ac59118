#!/usr/bin/env ruby
# Draw a chart of a CSV file.
require "csv"
require "open3"
rows = CSV.read(ARGV.fetch(0), headers: true)
out, status = Open3.capture2("gnuplot", stdin_data: "plot '-' with lines\n" + rows.map { |r| "#{r[0]} #{r[1]}" }.join("\n"))
abort("gnuplot failed") unless status.success?
puts out
