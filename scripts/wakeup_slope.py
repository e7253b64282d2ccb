#!/usr/bin/env python3
"""Draws how late select and clock_nanosleep wake, over the interval: docs/figures/wakeup-slope.svg.

    scripts/wakeup_slope.py LATLAB [--cpu N] [-n SLOTS] [--figure FILE] [--documents FILE]

Runs `LATLAB wakeup` once, all intervals and both calls interleaved, with a timer slack of 1 ns, so that what select adds
is its own stretch (0.1 % of the time-out, fs/select.c). `--documents FILE` draws from what an earlier run printed (and
writes it there where the file does not exist yet). Needs nothing but Python's standard library.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys

INTERVALS = ["1ms", "3ms", "10ms", "30ms", "100ms", "300ms", "1s"]
CALLS = [("select", "ours"), ("clock_nanosleep", "theirs")]
QUANTILES = "0.1,0.5,0.9"

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 84, 150, 80, 64
X_RANGE_MS = (0.8, 1250.0)

# A figure with a ground of its own is legible on any page; the ground follows the reader's colour scheme.
STYLE = """
.ground { fill: #ffffff } .ink { fill: #1f2328 } .soft { fill: #59636e } .grid { stroke: #d1d9e0 }
.ours { stroke: #bc4c00; fill: #bc4c00 } .theirs { stroke: #0969da; fill: #0969da } .rule { stroke: #59636e }
text, text.ours, text.theirs { font-family: system-ui, sans-serif; font-size: 13px; stroke: none }
@media (prefers-color-scheme: dark) {
  .ground { fill: #151b23 } .ink { fill: #f0f6fc } .soft { fill: #9198a1 } .grid { stroke: #3d444d }
  .ours { stroke: #f0883e; fill: #f0883e } .theirs { stroke: #58a6ff; fill: #58a6ff } .rule { stroke: #9198a1 }
}
"""


def measure(arguments):
    command = [
        arguments.latlab, "wakeup", "--via", "select,clock_nanosleep", "-i", ",".join(INTERVALS),
        "-n", str(arguments.slots), "--warmup", "2", "--cpu", str(arguments.cpu), "--set", "timer-slack=1ns",
        "--quantiles", QUANTILES, "--no-record", "-q", "--json",
    ]
    print(" ".join(command), file=sys.stderr)
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def points(documents, via):
    """(interval in ms, p10, p50, p90 in µs), ascending."""
    found = []
    for summary in documents["summaries"]:
        if summary["condition"]["via"] != via:
            continue
        by_q = {entry["q"]: entry["value"] for entry in summary["metrics"]["wakeup_latency"]["quantiles"]}
        found.append((summary["condition"]["interval_ns"] / 1e6, *(by_q[q] / 1e3 for q in (0.1, 0.5, 0.9))))
    return sorted(found)


def machine():
    """What the figures are about, in a line."""
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    virtual = any("hypervisor" in line.split() for line in open("/proc/cpuinfo") if line.startswith("flags"))
    release = platform.release().split("-")[0]
    kind = "virtual machine" if virtual else "machine"
    return f"{kind}, {os.cpu_count()} CPUs ({model or platform.machine()}), Linux {release}"


class Scale:
    """Logarithmic, from values to pixels."""

    def __init__(self, low, high, start, end):
        self.low, self.high, self.start, self.end = math.log10(low), math.log10(high), start, end

    def __call__(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def named(value, units):
    for size, unit in units:
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g}"


def ticks(low, high):
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = [factor * 10.0**exponent for exponent in exponents for factor in (1, 3)]
    return [step for step in steps if low <= step <= high]


def draw(documents, facts):
    series = {via: points(documents, via) for via, _ in CALLS}
    values = [value for rows in series.values() for row in rows for value in row[1:] if value > 0]
    y_range = (min(values) / 1.6, max(max(values), 1.0) * 1.6)
    x = Scale(*X_RANGE_MS, LEFT, WIDTH - RIGHT)
    y = Scale(*y_range, HEIGHT - BOTTOM, TOP)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'role="img">',
        "<title>How late select and clock_nanosleep wake, over the interval</title>",
        f"<desc>{described(series, facts)}</desc>",
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
        f'<text class="ink" x="{LEFT}" y="26" font-weight="600">Wake-up latency over the interval, timer slack 1 ns</text>',
        f'<text class="soft" x="{LEFT}" y="45">median, bars from p10 to p90; {facts[0]}</text>',
        f'<text class="soft" x="{LEFT}" y="63">{facts[1]}</text>',
    ]
    for value in ticks(*X_RANGE_MS):
        at = x(value)
        out.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        label = named(value, [(1000, "s"), (1, "ms")])
        out.append(f'<text class="soft" x="{at:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{label}</text>')
    for value in ticks(*y_range):
        at = y(value)
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        label = named(value, [(1000, "ms"), (1, "µs")])
        out.append(f'<text class="soft" x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    out.append(f'<text class="ink" x="{middle:.0f}" y="{HEIGHT - 20}" text-anchor="middle">interval</text>')
    out += rule(x, y, y_range)
    for number, (via, colour) in enumerate(CALLS):
        out += line(series[via], x, y, colour, (via, 4 * number - 2))
    return "\n".join(out + ["</svg>", ""])


def rule(x, y, y_range):
    """What fs/select.c allows itself: a thousandth of the time-out."""
    low, high = max(X_RANGE_MS[0], y_range[0]), min(X_RANGE_MS[1], y_range[1])
    share = lambda interval_ms: interval_ms  # 0.1 % of 1 ms is 1 µs
    ends = [(x(value), y(share(value))) for value in (low, high)]
    path = " ".join(f"{across:.1f},{up:.1f}" for across, up in ends)
    # At its lower end, where no measured line runs.
    low_ms = low ** 0.9 * high ** 0.1
    across, up = x(low_ms), y(share(low_ms))
    return [
        f'<polyline class="rule" points="{path}" fill="none" stroke-width="1.5" stroke-dasharray="5 4"/>',
        f'<text class="soft" x="{across + 10:.1f}" y="{up + 6:.1f}">0.1 % of the interval</text>',
    ]


def line(rows, x, y, colour, named_aside):
    """A call's medians, joined, its bars a little aside so that those of the other stay in sight."""
    name, aside = named_aside
    path = " ".join(f"{x(interval):.1f},{y(median):.1f}" for interval, _, median, _ in rows)
    out = [f'<polyline class="{colour}" points="{path}" style="fill: none" stroke-width="2"/>']
    for interval, low, median, high in rows:
        at = x(interval) + aside
        out.append(f'<line class="{colour}" x1="{at:.1f}" x2="{at:.1f}" y1="{y(low):.1f}" y2="{y(high):.1f}"/>')
        out.append(f'<circle class="{colour}" cx="{x(interval):.1f}" cy="{y(median):.1f}" r="3.5"/>')
    end = rows[-1]
    out.append(f'<text class="{colour}" x="{x(end[0]) + 18:.1f}" y="{y(end[2]) + 4:.1f}">{name}</text>')
    return out


def described(series, facts):
    """The figures themselves, for whoever cannot see them."""
    words = list(facts)
    for via, rows in series.items():
        each = [f"{interval:g} ms: {median:.1f} µs ({low:.1f} to {high:.1f})" for interval, low, median, high in rows]
        words.append(f"{via}: " + "; ".join(each))
    return ". ".join(words)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("latlab")
    parser.add_argument("--cpu", type=int, default=0)
    parser.add_argument("-n", dest="slots", type=int, default=50)
    parser.add_argument("--figure", default="docs/figures/wakeup-slope.svg")
    parser.add_argument("--documents")
    arguments = parser.parse_args()
    if arguments.documents and os.path.exists(arguments.documents):
        with open(arguments.documents, encoding="utf-8") as kept:
            documents = json.load(kept)
    else:
        documents = measure(arguments)
        if arguments.documents:
            with open(arguments.documents, "w", encoding="utf-8") as kept:
                json.dump(documents, kept)
    slots = documents["summaries"][0]["metrics"]["wakeup_latency"]["n"]
    os.makedirs(os.path.dirname(arguments.figure) or ".", exist_ok=True)
    with open(arguments.figure, "w", encoding="utf-8") as figure:
        figure.write(draw(documents, (f"n {slots} each", machine())))
    for via, _ in CALLS:
        for interval, low, median, high in points(documents, via):
            print(f"{via:16} {interval:7g} ms  p10 {low:8.1f}  p50 {median:8.1f}  p90 {high:8.1f} µs")


if __name__ == "__main__":
    main()
