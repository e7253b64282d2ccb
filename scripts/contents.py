#!/usr/bin/env python3
"""What the program for TARGET is made of: the licences of its crates as a text, and their list as CycloneDX.

    scripts/contents.py TARGET NOTICES BOM
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

target, notices, bom = sys.argv[1:]
command = ["cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={target}"]
metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
packages = {package["id"]: package for package in metadata["packages"]}
# Tests need more.
needs = {
    node["id"]: [dep["pkg"] for dep in node["deps"] if any(kind["kind"] != "dev" for kind in dep["dep_kinds"])]
    for node in metadata["resolve"]["nodes"]
}
program = next(id for id, package in packages.items() if package["name"] == "latlab")
found, open_ids = {program}, [program]
while open_ids:
    new = set(needs[open_ids.pop()]) - found
    found |= new
    open_ids += new
parts = sorted((packages[id] for id in found), key=lambda package: (package["name"], package["version"]))
foreign = [package for package in parts if package["source"]]

holders = defaultdict(list)
for package in foreign:
    name = f"{package['name']} {package['version']} ({package['license']})"
    folder = Path(package["manifest_path"]).parent
    texts = [file for file in sorted(folder.iterdir()) if re.match("(?i)licen[cs]e|copying|copyright|notice|unlicense", file.name)]
    for file in texts:
        if file.is_file():
            holders[file.read_text(errors="replace").strip()].append(name)
    if not texts:
        holders["No text of its own; by " + ", ".join(package["authors"] or ["its authors"])].append(name)
rule = "\n\n" + "=" * 80 + "\n"
Path(notices).write_text(rule.join("\n".join(dict.fromkeys(names)) + "\n\n" + text for text, names in holders.items()) + "\n")


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package):
    licence = [{"expression": package["license"].replace("/", " OR ")}]
    kind = "application" if package["id"] == program else "library"
    return {"type": kind, "bom-ref": purl(package), "name": package["name"], "version": package["version"],
            "licenses": licence, "purl": purl(package)}


document = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.6",
    "version": 1,
    "metadata": {"component": component(packages[program])},
    "components": [component(package) for package in parts if package["id"] != program],
    "dependencies": [
        {"ref": purl(package), "dependsOn": sorted(purl(packages[id]) for id in needs[package["id"]])} for package in parts
    ],
}
Path(bom).write_text(json.dumps(document, indent=1) + "\n")
