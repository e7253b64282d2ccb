// Adds to the plots of a page what it shows without scripts: the values of a mark under the pointer and under the
// keyboard's cursor, zoom, and hiding of series. Positions and values come from the attributes data-x and data-y of
// each figure and from the JSON behind it.
(() => {
  "use strict";
  const NAMESPACE = "http://www.w3.org/2000/svg";
  /** Farthest distance in pixels of the screen between the pointer and the mark that is shown. */
  const REACH = 60;
  const DEEPEST_ZOOM = 1000;
  /** Distance of the base line of a label from its line on the vertical axis, and from the middle of a name's lines. */
  const BASELINE = 4;
  const NAME_LINES = 12.5;

  const make = (name, attributes = {}, ...children) => {
    const isSvg = ["path", "text", "g", "rect"].includes(name);
    const element = isSvg ? document.createElementNS(NAMESPACE, name) : document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
    element.append(...children);
    return element;
  };
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  /** A number with its thousands grouped, without exponents and superfluous zeros. */
  const number = (value, digits) => {
    const options = { maximumSignificantDigits: clamp(digits, 1, 15) };
    return value.toLocaleString("en", options).replace("-", "−");
  };

  /** One axis: data-x or data-y, and the names of its places. */
  class Axis {
    constructor(words, { label, names }) {
      const [kind, from, to, unit, factor, word] = words.split(" ");
      Object.assign(this, { kind, unit, label, names, from: +from, to: +to, factor: +factor, word: word === "-" ? "" : word });
    }

    /** Share of the axis at which `value` is. */
    share(value) {
      // What is infinite or open is at the end of the axis.
      if (value === null || !Number.isFinite(value) || (this.kind === "log" && value <= 0)) {
        return (value === null || value > 0) === this.from < this.to ? 1 : 0;
      }
      return this.kind === "log"
        ? Math.log(value / this.from) / Math.log(this.to / this.from)
        : (value - this.from) / (this.to - this.from);
    }

    value(share) {
      return this.kind === "log"
        ? this.from * (this.to / this.from) ** share
        : this.from + share * (this.to - this.from);
    }

    /** The label of a tick, with `digits` significant digits. */
    tick(value, digits) {
      if (this.names) return this.names[value] ?? "";
      if (this.unit === "tail") return `p${number(100 * (1 - value), 2 + Math.max(digits, Math.ceil(-Math.log10(value))))}`;
      const text = number(value / this.factor, digits);
      return this.unit === "change" && value > 0 ? `+${text}` : text;
    }

    words(value) {
      const text = this.tick(value, this.unit === "count" ? 15 : 4);
      return this.word && !this.names ? `${text} ${this.word}` : text;
    }

    /** Values to label between two shares of the axis, and the significant digits by which they differ. */
    ticks(low, high, most) {
      const [from, to] = [this.value(low), this.value(high)].sort((a, b) => a - b);
      if (this.names) {
        // A name whose place is visible in part is shown at the edge.
        const shown = this.names.map((_, index) => index).filter((index) => index + 0.5 > from && index - 0.5 < to);
        return { values: shown, digits: 6 };
      }
      return this.kind === "log" && to / from >= 10 ? decades(from, to, most) : steps(from, to, most, this.factor);
    }
  }

  /** Powers of ten, or their products with 1, 2 and 5 where few powers fit. */
  const decades = (from, to, most) => {
    const count = Math.log10(to / from);
    const factors = count < 2.5 ? [1, 2, 5] : [1];
    const every = Math.max(1, Math.ceil(count / most));
    const values = [];
    for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); power++) {
      if (power % every === 0) values.push(...factors.map((factor) => factor * 10 ** power));
    }
    return { values: values.filter((value) => value >= from && value <= to), digits: 3 };
  };

  /** Multiples of 1, 2 or 5 times a power of ten, in the unit of the labels. */
  const steps = (from, to, most, unit) => {
    const least = (to - from) / unit / most;
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least * 0.999);
    const values = [];
    for (let index = Math.ceil(from / unit / step); index * step <= to / unit; index++) values.push(index * step * unit || 0);
    const largest = Math.max(Math.abs(from), Math.abs(to)) / unit;
    return { values, digits: 1 + Math.max(0, Math.ceil(Math.log10(largest / step))) };
  };

  /** Lets each point of a line be found half of the way to its neighbours: between few points the pointer is far from both. */
  const joined = (marks) => {
    marks.forEach((mark, place) => {
      const half = (other) => (other ? (mark.left + other.left) / 2 : mark.left);
      [mark.from, mark.to] = [half(marks[place - 1]), half(marks[place + 1])].sort((a, b) => a - b);
    });
  };

  /** The rectangle in the area and the values of each mark of a kind, in the order of the JSON. */
  const MARKS = {
    steps: ([x, y]) => ({ x: [x, x], y: [y, y], text: x === null || y === null ? "infinite" : "" }),
    band: ([x, low, high]) => {
      const isInfinite = low === null && high === null;
      return { x: [x, x], y: isInfinite ? [null, null] : [low ?? -Infinity, high], text: isInfinite ? "infinite" : "" };
    },
    infinite: ([x, y, text]) => ({ x: [x, x], y: [y, y], text }),
    bars: ([from, to, y]) => ({ x: [from, to], y: [y, y], isColumn: true }),
    boxes: ([row, , , , low, high]) => ({ x: [low, high], y: [row, row] }),
    intervals: ([row, estimate, low, high]) => ({ x: [low ?? estimate ?? high, high ?? estimate ?? low], y: [row, row] }),
    rule: ([x]) => ({ x: [x, x], y: [], isColumn: true }),
    level: ([y]) => ({ x: [-Infinity, Infinity], y: [y, y] }),
  };
  MARKS.line = MARKS.points = MARKS.steps;
  const ELEMENTS = {
    bars: ".bar", points: ".dot", infinite: ".dot", boxes: ".box", intervals: ".interval", cells: ".cell", rule: ".rule", level: ".rule",
  };

  class Plot {
    constructor(figure) {
      this.figure = figure;
      this.svg = figure.querySelector("svg.figure");
      this.area = this.svg.querySelector("svg.area");
      this.data = JSON.parse(figure.querySelector("script.data").textContent);
      this.axes = ["x", "y"].map((name) => new Axis(this.svg.dataset[name], this.data[name]));
      const size = (name) => +this.area.getAttribute(name);
      this.frame = { x: size("x"), y: size("y"), w: size("width"), h: size("height") };
      this.ticks = ["x", "y"].map((name) => this.svg.querySelector(`.axis.${name} .ticks`));
      this.originalTicks = this.ticks.map((group) => [...group.childNodes]);
      this.hidden = new Set();
      this.current = null;
      this.view = this.whole();
      this.describe();
      this.addControls();
      this.addLegend();
      this.listen();
    }

    whole() {
      return { x: 0, y: 0, w: this.frame.w, h: this.frame.h };
    }

    /** Moves titles, which browsers show late and beside the script's own values, into labels. */
    describe() {
      const title = this.svg.querySelector(":scope > title");
      this.svg.setAttribute("aria-label", title.textContent);
      ["role", "tabindex"].forEach((name, index) => this.svg.setAttribute(name, ["application", "0"][index]));
      this.svg.setAttribute("aria-roledescription", "plot; arrow keys move between values, plus and minus zoom");
      this.svg.removeAttribute("aria-labelledby");
      title.remove();
      this.area.querySelectorAll("title").forEach((each) => {
        each.parentNode.words = each.textContent;
        each.remove();
      });
      this.tip = make("div", { class: "tip", role: "status", "aria-live": "polite", hidden: "" });
      this.svg.after(this.tip);
      this.cursor = make("path", { class: "cursor" });
      this.selection = make("path", { class: "selection" });
      this.area.append(this.cursor, this.selection);
    }

    addControls() {
      const controls = make("div", { class: "controls", role: "group", "aria-label": "zoom" });
      const add = (text, label, act) => {
        const button = make("button", { type: "button", title: label, "aria-label": label }, text);
        button.addEventListener("click", act);
        controls.append(button);
        return button;
      };
      add("+", "zoom in", () => this.zoom(0.5));
      add("−", "zoom out", () => this.zoom(2));
      this.resetButton = add("reset", "show everything", () => this.reset());
      this.resetButton.disabled = true;
      this.svg.parentNode.before(controls);
    }

    addLegend() {
      this.svg.querySelectorAll(".legend .entry").forEach((entry) => {
        const own = [...this.area.querySelectorAll(`.series[data-owner="${entry.dataset.series}"]`)];
        const toggle = () => {
          const isHidden = entry.classList.toggle("off");
          entry.setAttribute("aria-pressed", String(!isHidden));
          own.forEach((series) => {
            series.classList.toggle("off", isHidden);
            this.hidden[isHidden ? "add" : "delete"](+series.dataset.series);
          });
          this.hide();
        };
        Object.entries({ role: "button", tabindex: "0", "aria-pressed": "true" }).forEach((pair) => entry.setAttribute(...pair));
        entry.addEventListener("click", toggle);
        entry.addEventListener("keydown", (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          event.stopPropagation();
          toggle();
        });
      });
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

    /** Where the pointer is in the area, in its pixels. */
    position(event) {
      const box = this.svg.getBoundingClientRect();
      const scale = this.svg.viewBox.baseVal.width / box.width;
      const [x, y] = [(event.clientX - box.left) * scale - this.frame.x, (event.clientY - box.top) * scale - this.frame.y];
      const isInside = x >= 0 && y >= 0 && x <= this.frame.w && y <= this.frame.h;
      const { view } = this;
      return { x: view.x + (x / this.frame.w) * view.w, y: view.y + (y / this.frame.h) * view.h, isInside };
    }

    /** All marks with their rectangles, found when they are first asked for. */
    get marks() {
      this.found ??= this.data.series.flatMap((series, index) => {
        const group = this.area.querySelector(`g.series[data-series="${index}"]`);
        const own = ELEMENTS[series.kind];
        const elements = own && group ? group.querySelectorAll(own) : [];
        const marks = series.marks.map((mark, place) => this.mark(series, index, mark, elements[place]));
        if (["line", "steps"].includes(series.kind)) joined(marks);
        return marks;
      });
      return this.found;
    }

    mark(series, index, values, element) {
      const base = { series: index, isBehind: ["band", "rule", "level"].includes(series.kind) };
      if (series.kind === "cells") {
        const [x, y, w, h] = element.getAttribute("d").match(/-?[\d.]+/g).map(Number);
        return { ...base, left: x, top: y, right: x + w, bottom: y + h, words: () => this.cellWords(series, values, [x, y, w, h]) };
      }
      const { x, y, isColumn, text } = MARKS[series.kind](values);
      const across = x.map((value) => this.axes[0].share(value) * this.frame.w);
      const down = y.map((value) => (1 - this.axes[1].share(value)) * this.frame.h);
      const [top, bottom] = isColumn ? [down[0] ?? 0, this.frame.h] : [Math.min(...down), Math.max(...down)];
      const words = () => [series.name, element?.words ?? [text, this.words(x, y)].filter(Boolean).join("\n")];
      return { ...base, left: Math.min(...across), right: Math.max(...across), top, bottom, isColumn, words };
    }

    words(x, y) {
      const range = (axis, values) => {
        const texts = [...new Set(values.filter((value) => Number.isFinite(value)).map((value) => axis.words(value)))];
        return texts.length > 0 && `${axis.label ? `${axis.label} ` : ""}${texts.join(" to ")}`;
      };
      return [range(this.axes[0], x), range(this.axes[1], y)].filter(Boolean).join("\n");
    }

    cellWords(series, text, [x, y, w, h]) {
      const [across, up] = this.axes;
      const ends = (axis, low, high) => (axis.names ? [Math.round(axis.value((low + high) / 2))] : [axis.value(low), axis.value(high)]);
      const place = this.words(
        ends(across, x / this.frame.w, (x + w) / this.frame.w),
        ends(up, 1 - (y + h) / this.frame.h, 1 - y / this.frame.h),
      );
      return [series.name, `${series.texts[text]}\n${place}`];
    }

    nearest({ x, y }) {
      const pixels = (this.svg.getBoundingClientRect().width / this.svg.viewBox.baseVal.width) || 1;
      const scale = { x: (pixels * this.frame.w) / this.view.w, y: (pixels * this.frame.h) / this.view.h };
      let best = null;
      let least = REACH;
      for (const mark of this.marks) {
        if (this.hidden.has(mark.series)) continue;
        const across = Math.max((mark.from ?? mark.left) - x, 0, x - (mark.to ?? mark.right)) * scale.x;
        const down = mark.isColumn ? 0 : Math.max(mark.top - y, 0, y - mark.bottom) * scale.y;
        const distance = Math.hypot(across, down) + (mark.isBehind ? REACH / 2 : 0);
        if (distance <= least) [best, least] = [mark, distance];
      }
      return best;
    }

    show(mark) {
      this.current = mark;
      const [name, text] = mark.words();
      this.tip.replaceChildren(...(name ? [make("strong", {}, name), "\n"] : []), text);
      this.tip.hidden = false;
      const { left, top, right, bottom } = mark;
      this.cursor.setAttribute("d", `M${left} ${top}h${right - left}v${bottom - top}h${left - right}z`);
      this.cursor.classList.toggle("spot", right - left < 1e-9 && bottom - top < 1e-9);
      this.place(mark);
    }

    /** Puts the tip beside its mark, inside of the figure. */
    place(mark) {
      const box = this.svg.getBoundingClientRect();
      const scale = box.width / this.svg.viewBox.baseVal.width;
      const at = (low, high, axis, size) => {
        const middle = (clamp(low, this.view[axis], this.view[axis] + this.view[size])
          + clamp(high, this.view[axis], this.view[axis] + this.view[size])) / 2;
        return (this.frame[axis] + ((middle - this.view[axis]) / this.view[size]) * this.frame[size]) * scale;
      };
      const [x, y] = [at(mark.left, mark.right, "x", "w"), at(mark.top, mark.isColumn ? mark.top : mark.bottom, "y", "h")];
      const left = x + 12 + this.tip.offsetWidth > box.width ? x - 12 - this.tip.offsetWidth : x + 12;
      this.tip.style.left = `${Math.max(0, left)}px`;
      this.tip.style.top = `${clamp(y - this.tip.offsetHeight - 8, 0, box.height)}px`;
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
      const area = this.select(this.position(event));
      const isDrag = area.w > this.view.w / 50 && area.h > this.view.h / 50;
      this.select(null);
      if (isDrag) this.look(area);
    }

    zoom(factor, center = null) {
      const { view } = this;
      const { x, y } = center ?? (this.current && this.middle(this.current)) ?? { x: view.x + view.w / 2, y: view.y + view.h / 2 };
      this.look({ x: x - (x - view.x) * factor, y: y - (y - view.y) * factor, w: view.w * factor, h: view.h * factor });
    }

    middle(mark) {
      return { x: (mark.left + mark.right) / 2, y: mark.isColumn ? mark.top : (mark.top + mark.bottom) / 2 };
    }

    /** Shows a part of the area, kept inside of it. */
    look(view) {
      const { w, h } = this.frame;
      const size = { w: clamp(view.w, w / DEEPEST_ZOOM, w), h: clamp(view.h, h / DEEPEST_ZOOM, h) };
      this.view = { ...size, x: clamp(view.x, 0, w - size.w), y: clamp(view.y, 0, h - size.h) };
      const isWhole = size.w === w && size.h === h;
      this.area.setAttribute("viewBox", [this.view.x, this.view.y, size.w, size.h].join(" "));
      this.ticks.forEach((group, axis) => group.replaceChildren(...(isWhole ? this.originalTicks[axis] : this.drawnTicks(axis))));
      this.resetButton.disabled = isWhole;
      this.svg.classList.toggle("zoomed", !isWhole);
      if (this.current) this.show(this.current);
    }

    /** Grid lines and labels of the visible part of an axis, 0 for x. */
    drawnTicks(axis) {
      const { view, frame } = this;
      const isX = axis === 0;
      const scale = this.axes[axis];
      const visible = isX
        ? [view.x / frame.w, (view.x + view.w) / frame.w]
        : [1 - (view.y + view.h) / frame.h, 1 - view.y / frame.h];
      const { values, digits } = scale.ticks(...visible, isX ? 6 : 7);
      const model = this.originalTicks[axis].find((each) => each.matches?.("text.tick"));
      return values.flatMap((value) => {
        const place = (scale.share(value) - visible[0]) / (visible[1] - visible[0]);
        const share = scale.names ? clamp(place, 0, 1) : place;
        const [x, y] = isX ? [frame.x + share * frame.w, frame.y] : [frame.x, frame.y + (1 - share) * frame.h];
        const grid = make("path", { class: "grid", d: isX ? `M${x} ${y}v${frame.h}` : `M${x} ${y}h${frame.w}` });
        if (!model) return [grid];
        const name = isX || !scale.names ? [] : this.movedName(value, y);
        if (name.length > 0) return [grid, ...name];
        const label = model.cloneNode(false);
        label.setAttribute(isX ? "x" : "y", isX ? x : y + BASELINE);
        label.textContent = scale.tick(value, digits);
        return [grid, label];
      });
    }

    /** The lines of the name at `value` of the vertical axis, around `y`; none where the whole figure leaves it out. */
    movedName(value, y) {
      const { frame, axes, originalTicks } = this;
      const original = frame.y + (1 - axes[1].share(value)) * frame.h + BASELINE;
      const texts = originalTicks[1].filter((each) => each.matches?.("text.tick"));
      const offset = (text) => +text.getAttribute("y") - original;
      return texts.filter((text) => Math.abs(offset(text)) < NAME_LINES).map((text) => {
        const moved = text.cloneNode(true);
        moved.setAttribute("y", y + BASELINE + offset(text));
        return moved;
      });
    }

    reset() {
      this.hide();
      this.look(this.whole());
    }

    pan(across, down) {
      this.look({ ...this.view, x: this.view.x + across * this.view.w, y: this.view.y + down * this.view.h });
    }

    key(event) {
      const pans = { ArrowLeft: [-0.2, 0], ArrowRight: [0.2, 0], ArrowUp: [0, -0.2], ArrowDown: [0, 0.2] };
      const acts = {
        ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1), ArrowUp: () => this.change(-1), ArrowDown: () => this.change(1),
        Home: () => this.step(-Infinity), End: () => this.step(Infinity),
        "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), Escape: () => this.reset(),
      };
      const act = event.shiftKey && pans[event.key] ? () => this.pan(...pans[event.key]) : acts[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    }

    /** Moves the cursor by `count` marks inside of its series. */
    step(count) {
      const shown = this.marks.filter((mark) => !this.hidden.has(mark.series));
      const series = this.current?.series ?? shown.find((mark) => !mark.isBehind)?.series ?? shown[0]?.series;
      const own = shown.filter((mark) => mark.series === series);
      const place = own.indexOf(this.current);
      const next = own[place < 0 && Number.isFinite(count) ? 0 : clamp(place + count, 0, own.length - 1)];
      if (next) this.reveal(next);
    }

    /** Moves the cursor to the nearest mark of another series. */
    change(count) {
      const series = [...new Set(this.marks.map((mark) => mark.series))].filter((each) => !this.hidden.has(each));
      if (!this.current) return this.step(0);
      const next = series[(series.indexOf(this.current.series) + count + series.length) % series.length];
      const distance = (mark) => Math.abs(this.middle(mark).x - this.middle(this.current).x);
      return this.reveal(this.marks.filter((mark) => mark.series === next).reduce((a, b) => (distance(b) < distance(a) ? b : a)));
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

  document.querySelectorAll("figure.plot").forEach((figure) => {
    if (figure.querySelector("svg.area") && figure.querySelector("script.data")) new Plot(figure);
  });
})();
