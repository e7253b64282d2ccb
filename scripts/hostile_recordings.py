#!/usr/bin/env python3
"""Makes recordings whose report pages are hard to make well:

    scripts/hostile_recordings.py TESTDATA WORK [CONDITIONS]

    WORK/hostile      a recording whose tag and host are markup
    WORK/equal-0 to WORK/equal-9
                      recordings in which each probe took 42 µs
    WORK/conditions   so many recordings (1,000) that differ in a tag and a size

Each begins as a copy of a small recording of TESTDATA. docs/recording.md describes the bytes.
"""

import json
import os
import pathlib
import shutil
import struct
import sys

MARKUP = "</script><script>console.error('run')</script><img src=http://192.0.2.1/x onerror=fetch('/')>"
PROBES = 300
DELAY_NS = 42_000
# An event of the spool: the word with kind, phase and CPU, the number of the probe, then stamps.
EVENT = struct.Struct("<Q7q")
SENT, ARRIVED = 1, 4
NO_CPU = 0xFFFF << 32 | 0xFFFF << 16
NO_STAMP = -(1 << 63)
SIZES = 100


def crc32c(data):
    sum = 0xFFFFFFFF
    for byte in data:
        sum ^= byte
        for _ in range(8):
            sum = (sum >> 1) ^ (0x82F63B78 if sum & 1 else 0)
    return sum ^ 0xFFFFFFFF


def make_hostile(source, target):
    shutil.copytree(source, target)
    path = target / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest.pop("crc32c", None)
    for tags in [manifest["condition"]["tags"], manifest["spec"]["tags"]]:
        tags["build"] = MARKUP
    manifest["here"]["before"]["cpu_model"] = MARKUP * 50
    covered = json.dumps(manifest, indent=2).removesuffix("\n}") + ',\n  "crc32c": "'
    path.write_text(f'{covered}{crc32c(covered.encode()):08x}"\n}}\n')


def make_equal(source, target, number):
    """A run that is over and whose rows are still in the spool, as after a full disk: latlab writes the rows as it opens it.

    `source` has a spool of a format before 1.6, which has no checksums. Each probe leaves when it is due.
    """
    shutil.copytree(source, target)
    path, manifest_path = target / "events.spool", target / "manifest.json"
    manifest = json.loads(manifest_path.read_text())
    interval, warmup = manifest["spec"]["work"]["schedule"]["interval_ns"], manifest["spec"]["warmup"]["count"]
    manifest.update(run_id=f"{number:016x}", ending="completed")
    manifest["spec"]["stop"]["count"] = PROBES - warmup
    manifest_path.write_text(json.dumps(manifest))

    def events(seq):
        phase = int(seq >= warmup) << 8
        due = 1_000_000_000 + seq * interval
        yield EVENT.pack(SENT | phase | NO_CPU, seq, due, due, 0, 0, 0, 0)
        yield EVENT.pack(ARRIVED | 1 << 8 | NO_CPU, seq, due + DELAY_NS, *[NO_STAMP] * 4, 0)

    header = bytearray(path.read_bytes()[:64])
    header[24:40] = manifest["run_id"].encode()
    path.write_bytes(header + b"".join(event for seq in range(PROBES) for event in events(seq)))


def make_conditions(source, target, count):
    """The rows of all recordings are one file. `source` is of a format before 1.6: its manifest has no checksum."""
    manifest = json.loads((source / "manifest.json").read_text())
    target.mkdir()
    rows = target / "rows"
    shutil.copy(source / "probes.parquet", rows)
    for number in range(count):
        tags = {"lab": "shared by all runs", "build": f"<b>{number // SIZES}</b>"}
        manifest["run_id"] = f"{number:016x}"
        manifest["spec"]["tags"] = manifest["condition"]["tags"] = tags
        manifest["spec"]["work"]["size_bytes"] = manifest["condition"]["size_bytes"] = 64 + 8 * (number % SIZES)
        recording = target / f"20261121T021500Z-ping-{number:04x}"
        recording.mkdir()
        (recording / "manifest.json").write_text(json.dumps(manifest))
        os.link(rows, recording / "probes.parquet")
    rows.unlink()


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    old, work = pathlib.Path(sys.argv[1]) / "recordings" / "old", pathlib.Path(sys.argv[2])
    make_hostile(old / "1.9-finished", work / "hostile")
    for number in range(10):
        make_equal(old / "1.0-died", work / f"equal-{number}", number)
    make_conditions(old / "1.0-finished", work / "conditions", int(sys.argv[3]) if len(sys.argv) == 4 else 1_000)


if __name__ == "__main__":
    main()
