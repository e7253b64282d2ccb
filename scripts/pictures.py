#!/usr/bin/env python3
"""Renews the pictures of README.md: one experiment on this host, three minutes on a quiet machine.

    scripts/pictures.py LATLAB [--experiment DIR] [--browser PATH]

docs/figures/comparison.png shows a terminal with the comparison of its runs, report.png the begin of the page of `latlab
report`. Needs the package playwright (scripts/browser.txt) and a Chromium.
"""

import argparse
import html
import os
import pathlib
import pty
import re
import shutil
import subprocess
import tempfile

from playwright.sync_api import sync_playwright

FIGURES = pathlib.Path(__file__).parent.parent / "docs" / "figures"
EXPERIMENT = """\
name = "under-load"
kind = "ping"
[base]
count = 20_000
[factors]
load = ["none", "cpu=50%"]
[design]
runs = 10
blocks = 2
"""
TERMINAL = """<body style="margin: 0; width: max-content; background: #1b1b1f">
<pre style="margin: 0; padding: 18px 24px; color: #d8d8dc; font: 15px/1.4 'DejaVu Sans Mono', monospace">{}</pre></body>"""
# The codes that latlab uses.
LOOKS = {"1": "font-weight: bold", "2": "opacity: 0.65", "31": "color: #ff6b6b", "35": "color: #d79bff"}


def in_terminal(*command, cwd):
    """The output of `command` on a terminal of 80 columns."""
    end, terminal = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm-256color"}
    process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=terminal, stderr=subprocess.DEVNULL)
    os.close(terminal)
    text = b""
    try:
        while part := os.read(end, 65536):
            text += part
    except OSError:
        # The other end is closed.
        pass
    process.wait()
    return text.decode().replace("\r", "")


def as_html(text):
    text, open_spans = html.escape(text), 0

    def look(match):
        nonlocal open_spans
        styles = [LOOKS[code] for code in match[1].split(";") if code in LOOKS]
        closing, open_spans = "</span>" * open_spans, len(styles)
        return closing + "".join(f'<span style="{style}">' for style in styles)

    return re.sub(r"\x1b\[([0-9;]*)m", look, text) + "</span>" * open_spans


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("latlab", type=pathlib.Path)
    parser.add_argument("--experiment", type=pathlib.Path, help="a finished one, instead of a new one")
    parser.add_argument("--browser", default=shutil.which("chromium") or shutil.which("google-chrome"))
    options = parser.parse_args()
    latlab = options.latlab.resolve()
    with tempfile.TemporaryDirectory() as work, sync_playwright() as playwright:
        work = pathlib.Path(work)
        directory = options.experiment and options.experiment.resolve()
        if not directory:
            (work / "load.toml").write_text(EXPERIMENT)
            subprocess.run([latlab, "run", "load.toml", "--store", ".", "--quiet"], cwd=work, check=True)
            directory = next(work.glob("*-experiment-*"))
        command = "latlab compare load --by load"
        shown = in_terminal(latlab, "compare", directory, "--by", "load", cwd=work)
        (work / "terminal.html").write_text(TERMINAL.format(f"$ {command}\n{as_html(shown.rstrip())}"))
        subprocess.run([latlab, "report", directory, "--output", "page.html"], cwd=work, check=True)
        chromium = playwright.chromium.launch(executable_path=options.browser, args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page(viewport={"width": 900, "height": 400}, device_scale_factor=1.5)
        page.goto((work / "terminal.html").as_uri())
        page.locator("pre").screenshot(path=FIGURES / "comparison.png")
        page = chromium.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
        page.goto((work / "page.html").as_uri())
        ends = page.locator("tbody").evaluate_all("all => all.map(one => one.getBoundingClientRect().bottom)")
        # Down to the last part of a table that is whole.
        height = max(end for end in ends if end < 800) + 1
        page.screenshot(path=FIGURES / "report.png", clip={"x": 0, "y": 0, "width": 1280, "height": height})
        chromium.close()


if __name__ == "__main__":
    main()
