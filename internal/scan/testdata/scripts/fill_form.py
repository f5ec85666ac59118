"""Fill the fields of a PDF form from a JSON file."""
import json
import sys

from pypdf import PdfReader, PdfWriter


def fill(source, values, target):
    reader = PdfReader(source)
    if reader.is_encrypted:
        reader.decrypt("")
    writer = PdfWriter(clone_from=reader)
    for page in writer.pages:
        writer.update_page_form_field_values(page, values, auto_regenerate=False)
    writer.write(target)


if __name__ == "__main__":
    fill(sys.argv[1], json.load(open(sys.argv[2])), sys.argv[3])
