#!/usr/bin/env python3
"""Opens a page of `latlab report` in headless Chromium and checks what a reader relies on.

    scripts/report_page.py PAGE [EXPECTED.json] [--about RECIPE.about.toml] [--browser PATH] [--screenshots DIRECTORY]

Checks: the script has the hash that the page allows; no error in the console; no request but the page itself; the marks of
each figure; values under the pointer and under the keyboard's cursor; zoom by keys, buttons and dragging, and its reset;
hiding of all series of each entry of a legend; the picture without scripts; dark mode; no sideways scrolling in a narrow window,
in a wide one and on paper, and there no result that is cut; print to PDF, with its whole text and the marks of every series.
With --about, also the published figures, which stand in the table as in that file.

EXPECTED.json: {"FIGURE": {"CLASS": COUNT, …}, …}; the figure is the value of data-figure or the id, the class that of its
marks. The key "text" holds words that its tip must show at some mark. The key "page" instead of a figure holds words that the
page must show, as its "text", the number of its "figures", and that its series are "alike" or too many to try each ("still").
No page has more than 2 MB. Ends with 1 and a line for each failed check.
Needs the package playwright (scripts/browser.txt), a Chromium (--browser, or the first one in the PATH) and poppler-utils.
"""

import argparse
import base64
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

from playwright.sync_api import sync_playwright

BROWSERS = ["chromium", "chromium-browser", "google-chrome", "chrome"]
WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 400, "height": 800}
# What the margins of A4 leave.
PAPER = {"width": 680, "height": 900}
DPI = 144
# No sandbox: containers of CI do not permit one. The page is a file of our own.
OPTIONS = ["--no-sandbox", "--disable-gpu"]
TICKS = "figure => [...figure.querySelectorAll('text.tick')].map(tick => tick.textContent)"
VIEW = "figure => figure.querySelector('svg.area').getAttribute('viewBox')"
# A horizontal line is visible, and has a box without height.
SHOWN = "series => getComputedStyle(series).display !== 'none' && getComputedStyle(series).visibility !== 'hidden'"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Tables of results, and cells of them, that are wider than their boxes.
CUT = """most => [...document.querySelectorAll(':is(#results, #one-way) .scroll')].slice(0, most)
    .flatMap(table => [table, ...table.querySelectorAll('th, td')]).filter(each => each.checkVisibility() && each.scrollWidth > each.clientWidth + 1).map(each => each.innerText.slice(0, 60))"""
# Alone on their pages, without what has the colours of their series.
PLOTS_ALONE = """@media print {
    body > :not(main), main > :not(#plots), #plots > :not(figure), .plot > :not(.panels), .legend { display: none !important; }
    figure.plot { break-before: page; margin: 0; }
    @page { margin: 10mm; }
}"""
# Of each series with marks its colours as they are on white paper.
COLOURS = r"""figure => {
    const of = (paint, opacity) => paint.match(/\d+/g).slice(0, 3).map(each => Math.round(+each * opacity + 255 * (1 - opacity)));
    const seen = element => element ? +getComputedStyle(element).opacity * seen(element.parentElement) : 1;
    const painted = path => {
        const { stroke, fill, strokeOpacity, fillOpacity } = getComputedStyle(path);
        return stroke === "none" ? of(fill, +fillOpacity * seen(path)) : of(stroke, +strokeOpacity * seen(path));
    };
    const all = [...figure.querySelectorAll(".area .series")].map(each => each.getAttribute("class").match(/s\d/)[0]);
    return Object.fromEntries([...new Set(all)].map(look =>
        [look, [...figure.querySelectorAll(`.area .series.${look} path`)].map(painted)]));
}"""
# More steps of the keyboard's cursor than this are not tried to find the expected words.
MOST_STEPS = 600
MOST_BYTES = 2_000_000


class Checks:
    """Collects the failed checks."""

    def __init__(self):
        self.failed = []

    def expect(self, holds, message):
        if not holds:
            self.failed.append(message)
        return holds


def check_policy(text, checks):
    """The policy allows the page's own script by its hash, and nothing else."""
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    if not checks.expect(policy, "no content security policy"):
        return
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    checks.expect(len(scripts) == 1, f"{len(scripts)} scripts instead of 1")
    checks.expect("default-src 'none'" in policy[1], f"the policy allows more than it needs: {policy[1]}")
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        checks.expect(f"sha256-{digest}" in policy[1], f"the policy does not allow the script; its hash is {digest}")


class Browser:
    """A headless browser that keeps errors of the console and requests of its pages."""

    def __init__(self, chromium, page_path, checks):
        self.chromium, self.url, self.checks = chromium, page_path.resolve().as_uri(), checks

    def open(self, **options):
        context = self.chromium.new_context(**{"viewport": WIDE, **options})
        page = context.new_page()
        page.on("console", lambda message: self.checks.expect(message.type != "error", f"console: {message.text}"))
        page.on("pageerror", lambda error: self.checks.expect(False, f"script: {error}"))
        page.on("request", lambda request: self.checks.expect(
            request.url.split("#")[0] == self.url, f"the page asks for {request.url}"))
        page.goto(self.url)
        return page


def figures_of(page):
    return page.query_selector_all("figure.plot")


def name_of(figure):
    return figure.get_attribute("data-figure") or figure.get_attribute("id")


def check_page(page, page_path, expected, checks):
    size = page_path.stat().st_size
    checks.expect(size <= MOST_BYTES, f"the page has {size:,} bytes, more than {MOST_BYTES:,}")
    words, count = expected.get("text", ""), len(figures_of(page))
    checks.expect(words in " ".join(page.inner_text("main").split()), f"the page does not show `{words}`")
    checks.expect(count == expected.get("figures", count), f"{count} figures instead of {expected.get('figures')}")


def check_marks(page, expected, checks):
    for name, classes in expected.items():
        selector = f'figure.plot[data-figure="{name}"], figure.plot[id="{name}"]'
        figure = page.query_selector(selector)
        if not checks.expect(figure, f"{name}: no such figure"):
            continue
        for mark, count in classes.items():
            if mark != "text":
                found = len(figure.query_selector_all(f".area .{mark}"))
                checks.expect(found == count, f"{name}: {found} marks .{mark} instead of {count}")


def check_structure(page, checks):
    for selector in ["main", "nav", "h1", "title"]:
        found = len(page.query_selector_all(f"head > {selector}, body {selector}:not(svg *)"))
        checks.expect(found == 1, f"{found} elements `{selector}` instead of 1")
    levels = page.eval_on_selector_all("h1, h2, h3, h4", "all => all.map(each => +each.localName[1])")
    jumps = [pair for pair in zip([0, *levels], levels) if pair[1] > pair[0] + 1]
    checks.expect(not jumps, f"headings leave out a level: {jumps}")
    identifiers = page.eval_on_selector_all("[id]", "all => all.map(each => each.id)")
    repeated = {each for each in identifiers if identifiers.count(each) > 1}
    checks.expect(not repeated, f"ids that are not unique: {sorted(repeated)}")
    targets = page.eval_on_selector_all('a[href^="#"]', "all => all.map(each => each.getAttribute('href').slice(1))")
    checks.expect(set(targets) <= set(identifiers), f"links without a target: {set(targets) - set(identifiers)}")
    for figure in figures_of(page):
        checks.expect(figure.query_selector("table tbody td"), f"{name_of(figure)}: no table behind the plot")


def has_marks(figure):
    return figure.query_selector(".area .series path") is not None


def check_pointer(page, figure, checks):
    """The tip appears at the mark in the middle of the list, and leaves with the pointer."""
    shapes = ["dot", "bar", "cell", "interval", "box", "line"]
    marks = figure.query_selector_all(", ".join(f".canvas:first-child .area .{shape}" for shape in shapes))
    if not marks:
        return
    mark = marks[len(marks) // 2]
    # A figure of many panels is higher than the window.
    mark.evaluate("each => each.scrollIntoView({ block: 'center' })")
    box = mark.bounding_box()
    # A line's box is mostly empty: every line crosses the vertical through its middle.
    heights = [box["y"] + box["height"] * part / 20 for part in range(21)]
    tip = figure.query_selector(".tip")
    for height in heights:
        page.mouse.move(box["x"] + box["width"] / 2, height)
        if tip.is_visible():
            break
    if checks.expect(tip.is_visible() and tip.inner_text().strip(), f"{name_of(figure)}: no values under the pointer"):
        page.mouse.move(1, 1)
        checks.expect(not tip.is_visible(), f"{name_of(figure)}: the values stay when the pointer leaves")


def check_cursor(page, figure, words, checks):
    """The keyboard's cursor shows values, among them the expected words."""
    figure.query_selector("svg.figure").focus()
    page.keyboard.press("ArrowRight")
    tip = figure.query_selector(".tip")
    if not checks.expect(tip.is_visible(), f"{name_of(figure)}: no values under the keyboard's cursor"):
        return
    seen = [tip.inner_text()]
    while words and words not in " ".join(seen[-1].split()) and len(seen) < MOST_STEPS:
        page.keyboard.press("ArrowRight")
        if tip.inner_text() == seen[-1]:
            page.keyboard.press("ArrowDown")
            page.keyboard.press("Home")
        seen.append(tip.inner_text())
    checks.expect(not words or words in " ".join(seen[-1].split()), f"{name_of(figure)}: no mark shows `{words}`, but {seen[:3]}")
    page.keyboard.press("Escape")
    checks.expect(not tip.is_visible(), f"{name_of(figure)}: Escape leaves the values")


def check_zoom(page, figure, checks):
    """Each way to zoom changes the labels of the ticks, and each way back restores them. Axes with names stay whole."""
    name, svg = name_of(figure), figure.query_selector("svg.figure")
    if svg.evaluate("svg => [svg.dataset.x, svg.dataset.y].every((axis) => axis.startsWith('names'))"):
        checks.expect(not figure.query_selector(".controls"), f"{name}: controls of a figure without a number on its axes")
        return
    svg.scroll_into_view_if_needed()
    before, whole = figure.evaluate(TICKS), figure.evaluate(VIEW)

    # Each time anew: a click on a button may scroll the page.
    def at(across, down):
        # Of the attributes: the box of an svg also holds marks that are cut off.
        area = figure.evaluate("""figure => {
            const [svg, area] = ["svg.figure", "svg.area"].map((each) => figure.querySelector(each));
            const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
            const [x, y, w, h] = ["x", "y", "width", "height"].map((each) => scale * area.getAttribute(each));
            return { x: box.x + x, y: box.y + y, w, h };
        }""")
        return area["x"] + across * area["w"], area["y"] + down * area["h"]

    def drag():
        page.mouse.move(*at(0.3, 0.3))
        page.mouse.down()
        page.mouse.move(*at(0.5, 0.5))
        page.mouse.move(*at(0.6, 0.6))
        page.mouse.up()

    def wheel():
        svg.focus()
        # A figure of many rows is higher than the window.
        svg.evaluate("each => each.scrollIntoView({ block: 'center' })")
        page.mouse.move(*at(0.5, 0.5))
        page.mouse.wheel(0, -200)
        page.mouse.wheel(0, -200)
        page.wait_for_timeout(100)

    buttons = figure.query_selector_all(".canvas:first-child .controls button")
    ways = [
        ("keys", lambda: (svg.focus(), page.keyboard.press("+"), page.keyboard.press("+")), lambda: page.keyboard.press("Escape")),
        ("buttons", lambda: (buttons[0].click(), buttons[0].click()), lambda: buttons[-1].click()),
        ("dragging", drag, lambda: svg.dblclick(position={"x": 5, "y": 5})),
        ("the wheel", wheel, lambda: page.keyboard.press("Escape")),
    ]
    for way, zoom, reset in ways:
        zoom()
        after = figure.evaluate(TICKS)
        checks.expect(figure.evaluate(VIEW) != whole, f"{name}: zoom by {way} leaves the view")
        checks.expect(after != before, f"{name}: zoom by {way} leaves the labels {before}")
        checks.expect(len(after) >= 2, f"{name}: zoom by {way} leaves {len(after)} labels")
        reset()
        restored = figure.evaluate(TICKS)
        checks.expect(restored == before, f"{name}: after zoom by {way} the labels are {restored} instead of {before}")


def check_legend(page, figure, checks):
    """Each entry hides all series that have its colour, bands and points included, and no other."""
    everything = figure.query_selector_all(".area .series")
    look = r"each => [...each.classList].find((name) => /^s\d$/.test(name))"
    for entry in figure.query_selector_all(".legend .entry"):
        own = figure.query_selector_all(f".area .series.{entry.evaluate(look)}")
        words = f"{name_of(figure)}, entry `{entry.text_content()}` of the legend"
        if not checks.expect(own, f"{words}: it has no series"):
            continue
        entry.focus()
        page.keyboard.press("Enter")
        checks.expect(not any(series.evaluate(SHOWN) for series in own), f"{words}: a series stays visible")
        others = sum(series.evaluate(SHOWN) for series in everything)
        checks.expect(others == len(everything) - len(own), f"{words}: it hides {len(everything) - others} series, not {len(own)}")
        page.keyboard.press("Enter")
        checks.expect(all(series.evaluate(SHOWN) for series in everything), f"{words}: a hidden series does not return")


def check_interaction(page, expected, is_still, checks):
    """Of a `still` page, whose series would take minutes, the pointer alone."""
    for figure in filter(has_marks, figures_of(page)):
        words = {**expected.get(figure.get_attribute("id"), {}), **expected.get(name_of(figure), {})}.get("text")
        if not checks.expect(figure.query_selector(".tip"), f"{name_of(figure)}: the script has added nothing"):
            continue
        check_pointer(page, figure, checks)
        if is_still:
            continue
        check_cursor(page, figure, words, checks)
        check_zoom(page, figure, checks)
        check_legend(page, figure, checks)


def check_print(page, checks):
    """Every part of the page is printed, the last line too. Returns the PDF and its number of pages."""
    pdf = page.pdf(format="A4")
    pages = len(re.findall(rb"/Type\s*/Page[^s]", pdf))
    checks.expect(pages >= 2, f"print to PDF has {pages} pages, not at least 2")
    # Without spaces: lines are broken where the paper ends.
    text = "".join(subprocess.run(["pdftotext", "-", "-"], input=pdf, capture_output=True, check=True).stdout.decode().split())
    parts = [heading.inner_text() for heading in page.query_selector_all("h2")]
    for part in [*parts, page.inner_text("body").strip().splitlines()[-1]]:
        checks.expect("".join(part.split()) in text, f"print to PDF lacks `{part}`")
    return pdf, pages


def check_paint(page, checks):
    """The marks of every series are painted in print."""
    figures = figures_of(page)
    colours = [figure.evaluate(COLOURS) for figure in figures]
    if not figures:
        return
    height = max(figure.bounding_box()["height"] for figure in figures) + 100
    page.add_style_tag(content=PLOTS_ALONE)
    pdf = page.pdf(width="210mm", height=f"{height}px")
    images = subprocess.run(["pdftoppm", "-r", str(DPI), "-aaVector", "no"], input=pdf, capture_output=True, check=True).stdout
    pages = re.findall(rb"P6\n(\d+) (\d+)\n255\n", images)
    if not checks.expect(len(pages) == len(figures), f"{len(figures)} figures are printed on {len(pages)} pages"):
        return
    end = 0
    for figure, series, (across, down) in zip(figures, colours, pages):
        begin = images.index(b"\n255\n", end) + 5
        end = begin + 3 * int(across) * int(down)
        seen = set(re.findall(rb"(?s)...", images[begin:end]))
        near = lambda paint: any(all(abs(one - other) <= 8 for one, other in zip(paint, pixel)) for pixel in seen)
        missing = [look for look, paints in series.items() if paints and not any(map(near, set(map(tuple, paints))))]
        # Many curves cover each other too; in a histogram the median of the runs covers the largest, and the bar of a single
        # delay is thinner than a pixel.
        covered = len(series) - 1 if name_of(figure) == "histogram" or len(series) >= 8 else 0
        checks.expect(len(missing) <= covered, f"{name_of(figure)}: the series {missing} are not painted in print")


def decimals(figure, most):
    return next((places for places in range(most) if float(f"{figure:.{places}f}") == figure), most)


def check_published(page, published, checks):
    """The published figures stand in the table of results as in the file about the recipe."""
    sources = published.get("sources", ["published", "recomputed"])
    rows = page.evaluate("""() => [...document.querySelectorAll('#results table.figures tbody')].flatMap(body => {
        const section = body.querySelector('th.section')?.innerText;
        return [...body.rows].map(row => [section, ...[...row.cells].map(cell => cell.innerText)]);
    })""")
    found = 0
    for row in published["rows"]:
        for source, key in zip(sources, ["published", "recomputed"]):
            if not row.get(key):
                continue
            # As many decimals as the source has in the column.
            columns = zip(*(other[key] for other in published["rows"] if other.get(key)))
            places = [max((decimals(it, published["decimals"]) for it in column if it == it), default=0) for column in columns]
            # A figure that would be rounded to 0 has the digits that it takes.
            cells = ["–" if it != it else f"{it:.{most if it == 0 or it >= 10 ** -most else 6}f}"
                     for it, most in zip(row[key], places)]
            shown = [other[2:2 + len(cells)] for other in rows if other[:2] == [row["label"], source]]
            # A rehearsal has its own rows.
            checks.expect(shown in [[], [cells]], f"{row['label']}, {source}: {shown} instead of {cells}")
            found += len(shown)
    checks.expect(found, "no published figures")


def check_forms(browser, expected, published, are_alike, checks, screenshots):
    """The page without scripts, in the dark, in a narrow window, and printed."""
    background = "getComputedStyle(document.body).backgroundColor"
    light = browser.open(color_scheme="light")
    dark = browser.open(color_scheme="dark")
    narrow = browser.open(viewport=NARROW, has_touch=True)
    static = browser.open(java_script_enabled=False)
    checks.expect(light.evaluate(background) != dark.evaluate(background), "dark mode leaves the background")
    paper = browser.open(viewport=PAPER)
    paper.emulate_media(media="print")
    for name, page in [("a window of 1280 pixels", light), ("a window of 400 pixels", narrow), ("the paper", paper)]:
        overflow = page.evaluate(OVERFLOW)
        checks.expect(overflow <= 0, f"{name} scrolls sideways by {overflow}")
        # Further tables may scroll in a window.
        most = {light: int("rows" in published), narrow: 0, paper: 1000}[page]
        cut = page.evaluate(CUT, most)
        checks.expect(not cut, f"{name} cuts {cut[:3]}")
    check_marks(static, expected, checks)
    pdf, pages = check_print(static, checks)
    # Series that are alike cover each other.
    if not are_alike:
        check_paint(paper, checks)
    if screenshots:
        screenshots.mkdir(parents=True, exist_ok=True)
        for name, page in [("light", light), ("dark", dark), ("narrow", narrow), ("static", static)]:
            page.screenshot(path=screenshots / f"{name}.png", full_page=True)
        (screenshots / "print.pdf").write_bytes(pdf)
    return pages


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("expected", type=pathlib.Path, nargs="?")
    parser.add_argument("--about", type=pathlib.Path)
    parser.add_argument("--browser", default=next(filter(None, map(shutil.which, BROWSERS)), None))
    parser.add_argument("--screenshots", type=pathlib.Path)
    options = parser.parse_args()
    if not options.browser:
        sys.exit("error: no Chromium in the PATH\n  hint: --browser PATH")
    if not shutil.which("pdftotext"):
        sys.exit("error: no pdftotext in the PATH\n  hint: install poppler-utils")
    expected = json.loads(options.expected.read_text()) if options.expected else {}
    checks = Checks()
    check_policy(options.page.read_text(), checks)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=options.browser, args=OPTIONS)
        browser = Browser(chromium, options.page, checks)
        page = browser.open()
        count = len(figures_of(page))
        check_structure(page, checks)
        of_page = expected.pop("page", {})
        check_page(page, options.page, of_page, checks)
        check_marks(page, expected, checks)
        published = tomllib.loads(options.about.read_text())["published"] if options.about else {}
        if published:
            check_published(page, published, checks)
        else:
            check_interaction(page, expected, of_page.get("still"), checks)
        pages = check_forms(browser, expected, published, of_page.get("alike"), checks, options.screenshots)
        chromium.close()
    for message in dict.fromkeys(checks.failed):
        print(f"failed: {message}")
    if checks.failed:
        sys.exit(1)
    print(f"{options.page}: {count} figures, {options.page.stat().st_size:,} bytes, {pages} pages in print")


if __name__ == "__main__":
    main()
