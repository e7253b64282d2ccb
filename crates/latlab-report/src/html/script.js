// Adds to the plots of a page what it shows without scripts: what is known of a mark under the pointer and under the
// keyboard's cursor, zoom, and hiding of series. figure/svg.rs says which elements and data it relies on.
(() => {
  "use strict";
  /** Farthest distance in pixels of the screen between the pointer and the mark that is shown. */
  const REACH = 60;
  const DEEPEST_ZOOM = 1000;
  /** Distance of the base line of a label from its line on the vertical axis. */
  const BASELINE = 4;

  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const make = (name, attributes, ...children) => {
    const isSvg = ["path", "text"].includes(name);
    const element = isSvg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
    element.append(...children);
    return element;
  };

  /** An axis with numbers, from data-x or data-y; shares are from 0 (left, bottom) to 1. */
  class Axis {
    constructor(words) {
      const [kind, from, to, factor, sign] = words.split(" ");
      Object.assign(this, { isLog: kind === "log", isNamed: kind === "names", sign, from: +from, to: +to, factor: +factor });
    }

    share(value) {
      const { from, to } = this;
      return this.isLog ? Math.log(value / from) / Math.log(to / from) : (value - from) / (to - from);
    }

    value(share) {
      return this.isLog ? this.from * (this.to / this.from) ** share : this.from + share * (this.to - this.from);
    }

    /** Round values between two shares of the axis, with their labels. */
    ticks(low, high) {
      const [from, to] = [low, high].map((share) => this.value(share) / this.factor).sort((a, b) => a - b);
      let values = [];
      let digits = 3;
      if (this.isLog && to > 10 * from) {
        const factors = to < 1000 * from ? [1, 2, 5] : [1];
        for (let power = Math.floor(Math.log10(from)); 10 ** power <= to; power++) {
          values.push(...factors.map((factor) => factor * 10 ** power));
        }
      } else {
        const power = 10 ** Math.floor(Math.log10((to - from) / 6));
        const step = power * [1, 2, 5, 10].find((factor) => 6.01 * factor * power >= to - from);
        for (let index = Math.ceil(from / step); index * step <= to; index++) values.push(index * step || 0);
        digits = 1 + Math.max(0, Math.ceil(Math.log10(Math.max(Math.abs(from), Math.abs(to)) / step)));
      }
      values = values.filter((value) => value >= from && value <= to);
      return values.map((value) => ({ share: this.share(value * this.factor), label: this.label(value, digits) }));
    }

    label(value, digits) {
      const number = (value, digits) =>
        value.toLocaleString("en", { maximumSignificantDigits: clamp(digits, 1, 15) }).replace("-", "−");
      if (this.sign === "tail") return `p${number(100 * (1 - value), 2 + Math.max(digits, Math.ceil(-Math.log10(value))))}`;
      return (this.sign === "change" && value > 0 ? "+" : "") + number(value, digits);
    }
  }

  /** The marks of a figure from its JSON, with their rectangles in the area. */
  const marksOf = (data) => data.series.flatMap(({ name, look, kind, marks }, series) => marks.map((mark, place) => {
    const [left, top, right, bottom, ...indices] = mark;
    // Each point of a line is found half of the way to its neighbours: between few points the pointer is far from both.
    const middle = (other) => (kind === "line" && other ? (left + other[0]) / 2 : null);
    const halves = [middle(marks[place - 1]), middle(marks[place + 1])].filter((half) => half !== null);
    const [x, y, text] = indices.map((index) => data.words[index]);
    const lines = [text, x && `${data.x} ${x}`, y && `${data.y} ${y}`].filter(Boolean).map((line) => line.trim());
    return {
      series, look, name, left, top, right, bottom, from: Math.min(left, ...halves), to: Math.max(right, ...halves),
      isBehind: kind === "behind", isColumn: kind === "column", text: lines.join("\n"),
    };
  }));

  class Plot {
    constructor(canvas) {
      this.svg = canvas.querySelector("svg.figure");
      this.area = this.svg.querySelector("svg.area");
      this.axes = [this.svg.dataset.x, this.svg.dataset.y].map((words) => new Axis(words));
      const [x, y, w, h] = ["x", "y", "width", "height"].map((name) => +this.area.getAttribute(name));
      this.frame = { x, y, w, h };
      this.whole = { x: 0, y: 0, w, h };
      this.view = this.whole;
      this.marks = marksOf(JSON.parse(canvas.querySelector("script.data").textContent));
      this.ticks = ["x", "y"].map((name) => this.svg.querySelector(`.axis.${name} .ticks`));
      this.originalTicks = this.ticks.map((group) => [...group.childNodes]);
      this.hidden = new Set();
      this.current = null;
      this.tip = make("div", { class: "tip", role: "status", "aria-live": "polite", hidden: "" });
      this.cursor = make("path", { class: "cursor" });
      this.selection = make("path", { class: "selection" });
      this.svg.after(this.tip);
      this.area.append(this.cursor, this.selection);
      this.svg.setAttribute("role", "application");
      this.svg.setAttribute("tabindex", "0");
      this.svg.setAttribute("aria-roledescription", "plot; arrow keys move between values, plus and minus zoom");
      // Axes with names are whole: only a part of an axis with numbers can be shown.
      if (this.axes.some((axis) => !axis.isNamed)) this.addControls();
      this.listen();
    }

    addControls() {
      const controls = make("div", { class: "controls", role: "group", "aria-label": "zoom" });
      const buttons = [
        ["+", "zoom in", () => this.zoom(0.5)], ["−", "zoom out", () => this.zoom(2)],
        ["reset", "show everything", () => this.reset()],
      ].map(([text, label, act]) => {
        const button = make("button", { type: "button", title: label, "aria-label": label }, text);
        button.addEventListener("click", act);
        return button;
      });
      this.resetButton = buttons[2];
      this.resetButton.disabled = true;
      controls.append(...buttons);
      this.svg.before(controls);
    }

    /** Hides or shows the series of a colour. */
    toggle(look, isHidden) {
      this.area.querySelectorAll(`.series.${look}`).forEach((series) => series.classList.toggle("off", isHidden));
      this.hidden[isHidden ? "add" : "delete"](+look.slice(1));
      this.hide();
    }

    listen() {
      const on = (name, act, options) => this.svg.addEventListener(name, act, options);
      on("pointermove", (event) => this.move(event));
      on("pointerdown", (event) => this.press(event));
      on("pointerup", (event) => this.release(event));
      on("pointercancel", () => this.select(null));
      on("pointerleave", () => this.start || this.hide());
      on("dblclick", () => this.reset());
      // A page must scroll under the pointer: the wheel zooms a figure in use, or with the control key.
      on("wheel", (event) => {
        if (document.activeElement !== this.svg && !event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.position(event));
      }, { passive: false });
      on("keydown", (event) => this.key(event));
      on("blur", () => this.hide());
    }

    /** Pixels of the screen for one of the figure. */
    get scale() {
      return this.svg.getBoundingClientRect().width / this.svg.viewBox.baseVal.width || 1;
    }

    /** Where the pointer is in the area, in its pixels. */
    position(event) {
      const { frame, view, scale } = this;
      const box = this.svg.getBoundingClientRect();
      const [x, y] = [((event.clientX - box.left) / scale - frame.x) / frame.w, ((event.clientY - box.top) / scale - frame.y) / frame.h];
      return { x: view.x + x * view.w, y: view.y + y * view.h, isInside: x >= 0 && y >= 0 && x <= 1 && y <= 1 };
    }

    nearest({ x, y }) {
      const { frame, view, scale } = this;
      let best = null;
      let least = REACH;
      for (const mark of this.marks) {
        if (this.hidden.has(mark.look)) continue;
        const across = Math.max(mark.from - x, 0, x - mark.to) * scale * frame.w / view.w;
        const down = mark.isColumn ? 0 : Math.max(mark.top - y, 0, y - mark.bottom) * scale * frame.h / view.h;
        const distance = Math.hypot(across, down) + (mark.isBehind ? REACH / 2 : 0);
        if (distance <= least) [best, least] = [mark, distance];
      }
      return best;
    }

    /** Shows what is known of a mark beside it, inside of the figure. */
    show(mark) {
      this.current = mark;
      const { left, top, right, bottom } = mark;
      this.tip.replaceChildren(...(mark.name ? [make("strong", {}, mark.name), "\n"] : []), mark.text);
      this.tip.hidden = false;
      this.cursor.setAttribute("d", `M${left} ${top}h${right - left}v${bottom - top}h${left - right}z`);
      this.cursor.classList.toggle("spot", left === right && top === bottom);
      const { frame, view, scale } = this;
      const { x, y } = this.middle(mark);
      const [across, down] = [clamp((x - view.x) / view.w, 0, 1), clamp((y - view.y) / view.h, 0, 1)];
      const { offsetWidth, offsetHeight } = this.tip;
      const place = (frame.x + across * frame.w) * scale;
      const width = this.svg.viewBox.baseVal.width * scale;
      this.tip.style.left = `${Math.max(0, place + 12 + offsetWidth > width ? place - 12 - offsetWidth : place + 12)}px`;
      this.tip.style.top = `${Math.max(0, (frame.y + down * frame.h) * scale - offsetHeight - 8)}px`;
    }

    hide() {
      this.current = null;
      this.tip.hidden = true;
      this.cursor.removeAttribute("d");
    }

    move(event) {
      const position = this.position(event);
      if (this.start) {
        this.select(position);
        return;
      }
      const mark = position.isInside && this.nearest(position);
      if (!mark) this.hide();
      else if (mark !== this.current) this.show(mark);
    }

    press(event) {
      const position = this.position(event);
      if (!position.isInside) return;
      // A finger scrolls the page; a tap shows values.
      if (event.pointerType === "touch") this.move(event);
      else if (event.button === 0) {
        this.start = position;
        this.svg.setPointerCapture(event.pointerId);
      }
    }

    /** Draws the rectangle between where the pointer was pressed and `end`; without `end` the selection is over. */
    select(end) {
      const { start, view } = this;
      if (!end) {
        this.start = null;
        this.selection.removeAttribute("d");
        return null;
      }
      const [x, to] = [start.x, end.x].map((value) => clamp(value, view.x, view.x + view.w)).sort((a, b) => a - b);
      const [y, down] = [start.y, end.y].map((value) => clamp(value, view.y, view.y + view.h)).sort((a, b) => a - b);
      this.selection.setAttribute("d", `M${x} ${y}H${to}V${down}H${x}z`);
      return { x, y, w: to - x, h: down - y };
    }

    release(event) {
      if (!this.start) return;
      const part = this.select(this.position(event));
      this.select(null);
      if (part.w > this.view.w / 50 && part.h > this.view.h / 50) this.look(part);
    }

    middle(mark) {
      return { x: (mark.left + mark.right) / 2, y: mark.isColumn ? mark.top : (mark.top + mark.bottom) / 2 };
    }

    zoom(factor, center = null) {
      const { view } = this;
      const { x, y } = center ?? this.middle(this.current ?? { left: view.x, right: view.x + view.w, top: view.y, bottom: view.y + view.h });
      this.look({ x: x - (x - view.x) * factor, y: y - (y - view.y) * factor, w: view.w * factor, h: view.h * factor });
    }

    /** Shows a part of the area, kept inside of it. */
    look(part) {
      const along = (axis, begin, size, whole) => {
        const length = this.axes[axis].isNamed ? whole : clamp(size, whole / DEEPEST_ZOOM, whole);
        return [clamp(begin, 0, whole - length), length];
      };
      const [[x, w], [y, h]] = [along(0, part.x, part.w, this.frame.w), along(1, part.y, part.h, this.frame.h)];
      this.view = { x, y, w, h };
      const isWhole = w === this.frame.w && h === this.frame.h;
      this.area.setAttribute("viewBox", `${x} ${y} ${w} ${h}`);
      this.ticks.forEach((group, axis) => {
        const isKept = isWhole || this.axes[axis].isNamed;
        group.replaceChildren(...(isKept ? this.originalTicks[axis] : this.drawnTicks(axis)));
      });
      if (this.resetButton) this.resetButton.disabled = isWhole;
      this.svg.classList.toggle("zoomed", !isWhole);
      if (this.current) this.show(this.current);
    }

    /** Grid lines and labels of the visible part of an axis, 0 for x. */
    drawnTicks(axis) {
      const { view, frame } = this;
      const visible = axis === 0
        ? [view.x / frame.w, (view.x + view.w) / frame.w]
        : [1 - (view.y + view.h) / frame.h, 1 - view.y / frame.h];
      return this.axes[axis].ticks(...visible).flatMap(({ share, label }) => {
        const place = (share - visible[0]) / (visible[1] - visible[0]);
        const [x, y] = [frame.x + place * frame.w, frame.y + (1 - place) * frame.h];
        const d = axis === 0 ? `M${x} ${frame.y}v${frame.h}` : `M${frame.x} ${y}h${frame.w}`;
        const at = axis === 0 ? { x, y: frame.y + frame.h + 15 } : { x: frame.x - 6, y: y + BASELINE };
        return [make("path", { class: "grid", d }), make("text", { class: "tick", ...at }, label)];
      });
    }

    reset() {
      this.hide();
      this.look(this.whole);
    }

    key(event) {
      const acts = {
        ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1), ArrowUp: () => this.change(-1), ArrowDown: () => this.change(1),
        Home: () => this.step(-Infinity), End: () => this.step(Infinity),
        "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), Escape: () => this.reset(),
      };
      const act = acts[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    }

    /** Moves the cursor by `count` marks inside of its series. */
    step(count) {
      const shown = this.marks.filter((mark) => !this.hidden.has(mark.look));
      const series = (this.current ?? shown.find((mark) => !mark.isBehind) ?? shown[0])?.series;
      const own = shown.filter((mark) => mark.series === series);
      const place = own.indexOf(this.current);
      const next = own[place < 0 && Number.isFinite(count) ? 0 : clamp(place + count, 0, own.length - 1)];
      if (next) this.reveal(next);
    }

    /** Moves the cursor to the nearest mark of another series. */
    change(count) {
      if (!this.current) return this.step(0);
      const shown = this.marks.filter((mark) => !this.hidden.has(mark.look));
      const series = [...new Set(shown.map((mark) => mark.series))];
      const next = series[(series.indexOf(this.current.series) + count + series.length) % series.length];
      const distance = (mark) => Math.abs(this.middle(mark).x - this.middle(this.current).x);
      return this.reveal(shown.filter((mark) => mark.series === next).reduce((a, b) => (distance(b) < distance(a) ? b : a)));
    }

    /** Shows a mark, after moving the visible part to it if it is outside. */
    reveal(mark) {
      const { view } = this;
      const { x, y } = this.middle(mark);
      this.current = mark;
      if (x < view.x || x > view.x + view.w || y < view.y || y > view.y + view.h) {
        this.look({ ...view, x: x - view.w / 2, y: y - view.h / 2 });
      }
      this.show(mark);
    }
  }

  /** Lets an entry of a legend hide all that has its colour, in every panel. */
  const addToggle = (entry, figure, plots) => {
    const look = [...entry.classList].find((name) => /^s\d$/.test(name));
    const toggle = () => {
      const isHidden = !entry.classList.contains("off");
      figure.querySelectorAll(`.legend .entry.${look}`).forEach((other) => {
        other.classList.toggle("off", isHidden);
        other.setAttribute("aria-pressed", String(!isHidden));
      });
      plots.forEach((plot) => plot.toggle(look, isHidden));
    };
    Object.entries({ role: "button", tabindex: "0", "aria-pressed": "true" }).forEach((pair) => entry.setAttribute(...pair));
    entry.addEventListener("click", toggle);
    entry.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      toggle();
    });
  };

  document.querySelectorAll("figure.plot").forEach((figure) => {
    const plots = [...figure.querySelectorAll(".canvas")].map((canvas) => new Plot(canvas));
    figure.querySelectorAll(".legend .entry").forEach((entry) => addToggle(entry, figure, plots));
  });
})();
