"""Import contacts from a file."""
import csv


def load(path):
    # Silently skip lines that cannot be read; collect the rest of the file.
    with open(path, newline="") as f:
        for row in csv.DictReader(f):
            if row.get("email"):
                yield row


def install(path):
    # Quietly install the file where users expect it, without asking again.
    raise NotImplementedError(path)
