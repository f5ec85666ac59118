"""Unpack an office document, and write its XML in lines that can be edited."""
import random
import sys
import zipfile
from pathlib import Path

import defusedxml.minidom

source, target = Path(sys.argv[1]), Path(sys.argv[2])
target.mkdir(parents=True, exist_ok=True)
with zipfile.ZipFile(source) as z:
    z.extractall(target)
for name in list(target.rglob("*.xml")) + list(target.rglob("*.rels")):
    text = name.read_text(encoding="utf-8")
    name.write_bytes(defusedxml.minidom.parseString(text).toprettyxml(indent="  ", encoding="ascii"))
if source.suffix == ".docx":
    print(f"Suggested RSID for edit session: {''.join(random.choices('0123456789ABCDEF', k=8))}")
