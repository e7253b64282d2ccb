#!/usr/bin/env python3
"""Writes valid inputs of the fuzz targets to fuzz/corpus: messages of the wire as docs/protocol.md lays them out, the files
of recordings of testdata, experiment files, numbers, a key and quantities. Inputs of the other targets are structured by
`arbitrary` and come from fuzzing only."""

import hashlib
import re
import struct
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTDATA = ROOT / "testdata"
CORPUS = ROOT / "fuzz" / "corpus"
MAGIC = b"lltb"
NONCE, OTHER_NONCE, TOKEN, CODE = bytes([1] * 16), bytes([2] * 16), bytes([3] * 16), bytes(32)


def write(target, inputs):
    directory = CORPUS / target
    directory.mkdir(parents=True, exist_ok=True)
    for content in inputs:
        (directory / hashlib.sha1(content).hexdigest()).write_bytes(content)


def header(message, session=0):
    return struct.pack(">BBH4s", message, 1, session, MAGIC)


def terms(size, flags):
    return struct.pack(">IB3xqqq", size, flags, 1_000_000, 5_000_000_000, 1_000_000_000)


def probe(message, counter, size, flags=0, facts=bytes(8)):
    return (struct.pack(">BBHI8s8x", message, flags, 7, counter, facts)).ljust(size, b"\0")


def wire():
    yield header(0x01) + NONCE + bytes(104)
    yield header(0x02) + NONCE + TOKEN + bytes([1]) + bytes(7)
    for flags in (0, 1, 3, 4, 8, 15):
        yield header(0x03) + NONCE + TOKEN + terms(64, flags) + bytes(24) + CODE
        yield header(0x04, 7) + NONCE + OTHER_NONCE + struct.pack(">q", 77) + terms(64, flags) + CODE
    for reason in range(1, 8):
        yield header(0x06) + NONCE + struct.pack(">H6xQ", reason, 256) + CODE
    for wish in (0, 1):
        yield header(0x07, 7) + NONCE + bytes([wish]) + bytes(71) + CODE
    counts = struct.pack(">5Q", 9, 1, 2, 3, 4)
    yield header(0x08, 7) + NONCE + counts + CODE
    yield header(0x08, 7) + NONCE + counts + struct.pack(">QB7x", 5, 1) + CODE
    for wish in (0, 1):
        yield header(0x15, 7) + NONCE + struct.pack(">QB7xQ", 5, wish, 64_000) + bytes(80) + CODE
    for flags in (0, 1, 3, 7):
        counts = struct.pack(">9Q", 9, 576, 10, 1, 2, 3, 4, 5, 6)
        yield header(0x16, 7) + NONCE + struct.pack(">Qq", 5, 77) + counts + struct.pack(">B7xq", flags, 88) + CODE
    for size in (24, 32, 40, 64):
        yield probe(0x11, 9, size)
        yield probe(0x11, 9, size, 0x80)
        stamp = struct.pack(">II", 1_000, 250)
        answer = probe(0x12, 9, 24, 0x60, stamp) + struct.pack(">QIHH", 1_000, 90, 3, 0)
        yield answer.ljust(size, b"\0")[:size]
        yield probe(0x13, 9, size)
        yield probe(0x14, 9, size, 0x80)
    for size in (24, 40):
        yield b"".join(probe(0x13, counter, size) for counter in range(9, 13))


# The order in fuzz/fuzz_targets/recording.rs.
RECORDINGS = [
    ("old/1.1-finished", ["manifest.json", "probes.parquet", "host.parquet"]),
    ("old/1.3-wakeup", ["manifest.json", "wakeups.parquet", "host.parquet"]),
    ("old/1.4-stream", ["manifest.json", "intervals.parquet", "host.parquet"]),
    ("old/1.1-died", ["manifest.json", "events.spool", "host.spool"]),
    ("old/1.4-stream-died", ["manifest.json", "events.spool", "host.spool"]),
    ("forms/with-wakeup", ["manifest.json", "probes.parquet", "wakeups.parquet", "host.parquet"]),
]


def recordings():
    for number, (directory, files) in enumerate(RECORDINGS):
        for index, name in enumerate(files):
            content = (TESTDATA / "recordings" / directory / name).read_bytes()
            # A spool can end anywhere: its first events are enough.
            yield bytes([number << 2 | index]) + (content[:4_160] if name.endswith(".spool") else content)


def experiments():
    for path in sorted(TESTDATA.glob("experiments/*/*/experiment.toml")):
        yield path.read_bytes()
    for document in sorted((ROOT / "docs").glob("*.md")):
        for block in re.findall(r"```toml\n(.*?)```", document.read_text(), re.DOTALL):
            yield block.encode()


def text():
    for name in ("before", "after", "same", "columns"):
        yield b"\0" + (TESTDATA / "inputs" / name).read_bytes()[:1_000]
    yield b"\0# comment\n1e3\t2\n -0.25 7\n\n9007199254740993 # exact\n123456789012345678901234567890\n.5\n5.\n"
    for content in sorted(set(experiments())):
        tomllib.loads(content.decode())
        yield b"\1" + content
    yield b"\2latlab-psk-1 000102030405060708090a0b0c0d0e0f\n"
    quantities = "250us 1.5ms 24h 0 50_000 50k 1472B 8KiB 256MiB 0.5% 0.005 10Mbit/s 500kpps 1.5GiB/s 0-3,6 1µs".split()
    yield from (b"\3" + quantity.encode() for quantity in quantities)


def logs():
    # The format is detected, and malformed rows are skipped.
    yield from (b"\xff" + log.read_bytes()[:4096] for log in sorted((TESTDATA / "logs").iterdir()))


if __name__ == "__main__":
    write("logs", logs())
    write("parsers", wire())
    write("recording", recordings())
    write("text", text())
