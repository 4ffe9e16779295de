"use strict";
// The flame graph of the report and of the dashboard: `drawFlame(place, data, view, changed)` fills `place`.
// Names come from traces: they enter the page through textContent and attributes only.
(() => {
  const ROW = 21, NARROWEST = 2, LETTERS = 26;  // pixels: of a row, of a box that is drawn, of one with its name in it
  const STRONGEST = 0.5;  // relative change from which the colour is at its strongest
  const SIZES = { work: "GPU time", host: "operator time on the host", count: "operator calls" };
  const KINDS = { whole: "", phase: "phase", annotation: "annotation", module: "module", line: "line of code", op: "operator", kernel: "kernel", rest: "left out" };
  const COLOURED = ["phase", "annotation", "module", "op", "kernel"];  // by kind, where there is one side only
  const { count, percent, plural, signed, time } = window.numbers;
  const PAUSE = 150;  // milliseconds without a key before a search begins
  let graphs = 0;

  function make(tag, properties = {}, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }
  function labelled(text, control) { return make("label", {}, control, ` ${text}`); }

  // Boxes: a tree of what is shown together

  class Box {
    constructor(above, frames, i) {
      Object.assign(this, { above, kind: frames.kind[i], name: frames.name[i], instance: frames.instance[i], below: new Map(),
        control: 0, test: 0, counts: [0, 0], instances: 0, shapes: new Set(), leftOut: 0, depth: above ? above.depth + 1 : 0 });
    }

    child(key, frames, i) {
      let box = this.below.get(key);
      if (!box) this.below.set(key, box = new Box(this, frames, i));
      return box;
    }

    get label() {
      if (this.instance === null) return this.name;
      return `${this.name}[${this.instances > 1 ? "*" : this.instance}]`;
    }

    get path() { return this.above ? [...this.above.path, this] : [this]; }

    // The larger side, and at least as large as its parts.
    measure() {
      let parts = 0;
      for (const box of this.below.values()) parts += box.measure();
      return this.size = Math.max(this.control, this.test, parts);
    }

    // [control, test] of this box without its parts.
    get own() {
      const own = [this.control, this.test];
      for (const box of this.below.values()) { own[0] -= box.control; own[1] -= box.test; }
      return own;
    }

    * all() {
      yield this;
      for (const box of this.below.values()) yield* box.all();
    }
  }

  // `data` of tracediff/report/page/script_data.py as one array per column.
  function decoded(data) {
    const { parent, kind, name, instance, shapes, left_out } = data.frames;
    const side = (column, which) => data.frames[column][which] ?? new Array(kind.length).fill(0);
    const pair = (column) => [side(column, 0), side(column, 1)];
    return {
      length: kind.length, parent: parent.map((distance, i) => i - distance), kind: kind.map((k) => data.kinds[k]), name: name.map((k) => data.names[k]),
      instance: instance.map((k) => (k < 0 ? null : k)), shapes: shapes.map((k) => (k < 0 ? null : data.names[k])), leftOut: left_out,
      work: pair("work"), host: pair("host"), count: pair("count"),
    };
  }

  // The amounts of frame i alone that `size` measures: a kernel is not a call.
  function amounts(frames, i, size) {
    return size === "count" && frames.kind[i] === "kernel" ? [0, 0] : [frames[size][0][i], frames[size][1][i]];
  }

  // What frames share that are one box: instances of a module where they are not `separate`, and equal calls and kernels.
  function key(frames, i, separate) {
    return separate && frames.kind[i] === "module" ? i : `${frames.kind[i]} ${frames.name[i]}`;
  }

  function built(frames, { size, inverted, separate }) {
    const whole = new Box(null, frames, 0);
    const boxes = [whole];
    for (let i = 0; i < frames.length; i += 1) {
      const [control, test] = amounts(frames, i, size);
      const path = [whole];
      if (inverted) {
        if (!control && !test) continue;
        for (let k = i, box = whole; k > 0; k = frames.parent[k]) path.push(box = note(box.child(key(frames, k, separate), frames, k), frames, k));
      } else if (i) {
        boxes.push(note(boxes[frames.parent[i]].child(key(frames, i, separate), frames, i), frames, i));
        path.push(...boxes[i].path.slice(1));
      }
      for (const box of path) { box.control += control; box.test += test; }
      const counted = inverted ? path.slice(1) : [boxes[i]];
      for (const box of counted) { box.counts[0] += frames.count[0][i]; box.counts[1] += frames.count[1][i]; }
    }
    whole.measure();
    return whole;
  }

  function note(box, frames, i) {
    box.noted ??= new Set();
    if (!box.noted.has(i)) {
      box.noted.add(i);
      if (frames.instance[i] !== null) box.instances += 1;
      if (frames.shapes[i]) box.shapes.add(frames.shapes[i]);
      box.leftOut += frames.leftOut[i];
    }
    return box;
  }

  // Colours

  const channels = (colour) => [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16));
  const mixed = (from, to, share) => from.map((value, k) => Math.round(value + (to[k] - value) * share));
  function readable(rgb) {
    const [red, green, blue] = rgb.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";  // at least 4.5 : 1 either way
  }
  function palette() {
    const style = getComputedStyle(document.documentElement);
    return (name) => channels(style.getPropertyValue(`--${name}`).trim());
  }

  class Flame {
    constructor(place, data, view, changed) {
      Object.assign(this, { place, data, changed, byCaller: decoded(data), byLine: data.lines ? decoded({ ...data, ...data.lines }) : null, id: `flame${graphs += 1}`, isTwoSided: data.sides.length > 1 });
      this.sizes = Object.keys(SIZES).filter((size) => size !== "work" || data.gpu);
      this.view = { size: this.sizes[0], inverted: false, separate: false, lines: false, find: "", regex: false, zoom: [], ...view };
      if (!this.sizes.includes(this.view.size)) this.view.size = this.sizes[0];
      this.frame();
      this.rebuild();
      const sized = new ResizeObserver(() => this.draw());
      const themed = new MutationObserver(() => {
        if (this.chart.isConnected) this.draw();
        else { themed.disconnect(); sized.disconnect(); }  // the dashboard drew another page
      });
      sized.observe(this.chart);
      themed.observe(document.documentElement, { attributeFilter: ["data-theme"] });
      if (this.top.above) this.tell();
    }

    // Elements

    frame() {
      const { view } = this;
      this.search = make("input", { type: "search", autocomplete: "off", spellcheck: false, value: view.find, placeholder: "name or part of it" });
      this.regex = make("input", { type: "checkbox", checked: view.regex });
      this.size = make("select", {}, ...this.sizes.map((size) => make("option", { value: size, textContent: SIZES[size], selected: size === view.size })));
      this.separate = make("input", { type: "checkbox", checked: view.separate });
      this.inverted = make("input", { type: "checkbox", checked: view.inverted });
      this.lines = make("input", { type: "checkbox", checked: view.lines });
      this.reset = make("button", { type: "button", textContent: "Reset" });
      this.found = make("p", { className: "flame-found" });
      this.found.setAttribute("role", "status");
      this.crumbs = make("nav", { className: "flame-path" });
      this.crumbs.setAttribute("aria-label", "Path of the flame graph");
      this.chart = make("div", { className: "flame-chart", tabIndex: 0, id: this.id });
      for (const [name, value] of [["role", "tree"], ["aria-label", `Flame graph: ${this.data.title}`], ["aria-describedby", `${this.id}-keys`]]) this.chart.setAttribute(name, value);
      this.detail = make("div", { className: "flame-detail" });
      this.tip = make("div", { className: "flame-tip", hidden: true });
      this.tip.setAttribute("aria-hidden", "true");
      const keys = make("p", { id: `${this.id}-keys`, className: "flame-keys",
        textContent: "Click or Enter zooms in, Esc zooms out; arrow keys move; / searches, n goes to the next match. Inverted, kernels are at the top and what called them is below." });
      this.place.replaceChildren(
        make("div", { className: "flame-tools" },
          make("label", {}, "Search ", this.search), labelled("regex", this.regex), make("label", {}, "Width ", this.size),
          labelled("separate instances", this.separate), labelled("inverted", this.inverted),
          ...(this.byLine ? [labelled("by line of code", this.lines)] : []), this.reset),
        this.found, this.crumbs, this.chart, this.detail, this.legend(), keys, this.tip);
      this.listen();
    }

    legend() {
      if (this.isTwoSided) {
        const strongest = `≥ ${100 * STRONGEST} %`;
        return make("p", { className: "flame-legend" }, "colour: ", `${strongest} less `, make("span", { className: "flame-scale" }), ` ${strongest} more`,
          make("span", {}, make("span", { className: "flame-only" }), " underlined: only on one side"));
      }
      return make("p", { className: "flame-legend" }, "colour: ", ...COLOURED.map((kind) => make("span", {}, make("span", { className: `flame-kind ${kind}` }), ` ${KINDS[kind]}`)));
    }

    listen() {
      let waiting = 0;
      const searched = () => { this.view.find = this.search.value; this.view.regex = this.regex.checked; this.draw(); this.tell(); };
      this.search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(searched, PAUSE); });
      this.search.addEventListener("keydown", (event) => {
        if (event.key === "Enter") { clearTimeout(waiting); searched(); this.next(1, true); }
        else if (event.key === "Escape") { this.search.value = ""; clearTimeout(waiting); searched(); this.chart.focus(); }
      });
      this.regex.addEventListener("change", searched);
      this.size.addEventListener("change", () => this.change({ size: this.size.value }));
      this.separate.addEventListener("change", () => this.change({ separate: this.separate.checked }));
      this.inverted.addEventListener("change", () => this.change({ inverted: this.inverted.checked, zoom: [] }));
      this.lines.addEventListener("change", () => this.change({ lines: this.lines.checked, zoom: [] }));
      this.reset.addEventListener("click", () => {
        this.search.value = ""; this.size.value = this.sizes[0];
        for (const box of [this.regex, this.separate, this.inverted, this.lines]) box.checked = false;
        this.change({ size: this.sizes[0], inverted: false, separate: false, lines: false, find: "", regex: false, zoom: [] });
      });
      this.chart.addEventListener("keydown", (event) => this.pressed(event));
      this.chart.addEventListener("click", (event) => {
        const box = this.boxOf(event);
        if (box) this.zoom(box === this.top && box.above ? box.above : box);
      });
      this.chart.addEventListener("pointermove", (event) => this.hover(event));
      this.chart.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    }

    // State

    change(view) {
      Object.assign(this.view, view);
      this.rebuild();
      this.tell();
    }

    rebuild() {
      this.whole = built(this.view.lines && this.byLine || this.byCaller, this.view);
      this.whole.name = this.view.size === "count" ? "all calls" : this.view.size === "host" ? "all operators" : "all work";
      this.top = this.at = this.landed();
      this.draw();
    }

    // The box at the zoomed path, or the nearest above it that exists.
    landed() {
      let box = this.whole;
      for (const label of this.view.zoom) {
        const next = [...box.below.values()].find((each) => each.label === label);
        if (!next) break;
        box = next;
      }
      return box;
    }

    zoom(box) {
      if (box.kind === "rest") return this.focus(box);
      this.tip.hidden = true;
      this.top = this.at = box;
      this.view.zoom = box.path.slice(1).map((each) => each.label);
      this.draw();
      this.chart.focus({ preventScroll: true });
      return this.tell();
    }

    tell() { this.changed?.({ ...this.view }, this.at === this.whole ? null : { kind: this.at.kind, name: this.at.name }); }

    // Drawing

    draw() {
      const width = this.chart.clientWidth;
      if (!width) return;
      this.drawn = new Map();
      this.narrow = 0;
      this.pattern = this.searched();
      const colour = palette(), elements = [];
      this.lay(this.top, 0, width, 0, elements, colour);
      if (!this.drawn.has(this.at)) this.at = this.top;
      this.chart.replaceChildren(...elements);
      this.chart.style.height = `${ROW * (1 + Math.max(...[...this.drawn.values()].map(({ row }) => row)))}px`;
      this.reportMatches();
      this.crumbs.replaceChildren(...this.top.path.flatMap((box, k) => [k ? " › " : "", this.crumb(box)]));
      this.focus(this.at, false);
    }

    crumb(box) {
      const button = make("button", { type: "button" }, make("bdi", { textContent: box.label }));
      if (box === this.top) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => this.zoom(box));
      return button;
    }

    lay(box, left, width, row, elements, colour) {
      const element = this.element(box, left, width, row, colour);
      this.drawn.set(box, { element, row, left });
      elements.push(element);
      const below = [...box.below.values()].filter((child) => child.size > 0);
      if (this.view.inverted) below.sort((a, b) => b.size - a.size);
      below.sort((a, b) => (a.kind === "rest") - (b.kind === "rest"));
      let at = left, narrow = 0;
      for (const child of below) {
        const wide = width * child.size / box.size;
        if (wide < NARROWEST) {
          narrow += wide;
          this.narrow += 1;
        } else {
          this.lay(child, at, wide, row + 1, elements, colour);
          at += wide;
        }
      }
      if (narrow >= 1) elements.push(this.filler(at, narrow, row + 1));
    }

    filler(left, width, row) {
      const element = make("div", { className: "flame-narrow" });
      Object.assign(element.style, { left: `${left}px`, width: `${width}px`, top: `${row * ROW}px` });
      element.setAttribute("aria-hidden", "true");
      return element;
    }

    element(box, left, width, row, colour) {
      const matches = this.pattern?.(box), rgb = this.pattern && !matches ? colour("middle") : this.colour(box, colour);
      const element = make("div", { id: `${this.id}-${this.drawn.size}`, className: "flame-box", textContent: width >= LETTERS ? box.label : "" });
      element.classList.toggle("match", Boolean(matches));
      element.classList.toggle("only", this.isTwoSided && !(box.control && box.test));
      Object.assign(element.style, { left: `${left}px`, width: `${width}px`, top: `${row * ROW}px`, backgroundColor: `rgb(${rgb.join(",")})`, color: readable(rgb) });
      element.setAttribute("role", "treeitem");
      element.setAttribute("aria-level", row + 1);
      element.setAttribute("aria-label", [box.label, KINDS[box.kind], ...this.amounts(box)].filter(Boolean).join(", "));
      element.box = box;
      return element;
    }

    colour(box, colour) {
      if (box.kind === "rest") return colour("middle");
      if (!this.isTwoSided) return colour(box.kind === "whole" ? "middle" : `kind-${box.kind === "line" ? "module" : box.kind}`);
      const larger = Math.max(box.control, box.test), change = larger ? (box.test - box.control) / larger : 0;
      return mixed(colour("middle"), colour(change > 0 ? "slower" : "faster"), Math.min(Math.abs(change) / STRONGEST, 1));
    }

    // Words

    // `others`: the values of the same sentence, all in one unit.
    amount(value, ...others) { return this.view.size === "count" ? count(value) : time(value / 1000, ...others.map((each) => each / 1000)); }

    changeText(control, test) {
      const delta = test - control, text = signed(delta, this.amount(delta, control, test));
      if (!control || !test) return `${text}, only in ${this.data.sides[control ? 0 : 1]}`;
      return `${text} (${signed(delta, percent(delta / control))})`;
    }

    amounts(box) {
      if (!this.isTwoSided) return [`${this.amount(box.control)} per step`, `${percent(this.whole.control ? box.control / this.whole.control : 0)} of all`];
      const [control, test] = this.data.sides;
      return [`${control} ${this.amount(box.control, box.test)}`, `${test} ${this.amount(box.test, box.control)}`, this.changeText(box.control, box.test)];
    }

    facts(box) {
      const facts = this.amounts(box), [own, ownTest] = box.own, [before, after] = box.counts;
      const shown = (a, b) => (!this.isTwoSided || a === b ? count(a) : `${count(a)} → ${count(b)}`);
      if (box.below.size && (Math.abs(own) >= 1 || Math.abs(ownTest) >= 1)) {
        facts.push(`of its own ${this.amount(own)}${this.isTwoSided ? ` → ${this.amount(ownTest)}` : ""}`);
      }
      if (before || after) facts.push(`${shown(before, after)} ${box.kind === "kernel" || this.view.inverted && this.view.size !== "count" ? "events" : "calls"} per step`);
      if (box.instances > 1) facts.push(`${count(box.instances)} instances`);
      if (box.leftOut) facts.push(`${plural(box.leftOut, "part")}, each below ${percent((this.view.lines && this.data.lines || this.data).least)} of all`);
      return facts;
    }

    words(box) {
      const kind = KINDS[box.kind];
      const head = make("p", {}, make("strong", {}, make("bdi", { textContent: box.label })), kind ? ` ${kind}` : "");
      const lines = [head, make("p", { textContent: this.facts(box).join(" · ") })];
      const shapes = [...box.shapes];
      if (shapes.length) lines.push(make("p", { className: "flame-shapes" }, "inputs ", make("bdi", { textContent: shapes.slice(0, 3).join(" or ") }), shapes.length > 3 ? ` and ${count(shapes.length - 3)} more` : ""));
      return lines;
    }

    // Search

    searched() {
      const text = this.view.find.trim();
      this.isBroken = false;
      if (!text) return null;
      if (!this.view.regex) return (box) => box.label.toLowerCase().includes(text.toLowerCase());
      try {
        const expression = new RegExp(text, "i");
        return (box) => expression.test(box.label);
      } catch {
        this.isBroken = true;
        return null;
      }
    }

    // What matches, and how much: a box within one that matches counts once.
    reportMatches() {
      this.search.setAttribute("aria-invalid", String(this.isBroken));
      const narrow = this.narrow ? `${plural(this.narrow, "box", "boxes")} too narrow to draw: zoom in. ` : "";
      if (this.isBroken) this.found.textContent = "This is not a regular expression.";
      else if (!this.pattern) this.found.textContent = narrow;
      else {
        let boxes = 0, drawn = 0, control = 0, test = 0;
        const outermost = (box) => {
          if (this.pattern(box)) { control += box.control; test += box.test; }
          else box.below.forEach(outermost);
        };
        outermost(this.whole);
        for (const box of this.whole.all()) if (this.pattern(box) && box.size) { boxes += 1; drawn += this.drawn.has(box) ? 1 : 0; }
        const share = (value, all) => percent(all ? value / all : 0);
        const sum = this.isTwoSided ? `${this.data.sides[0]} ${this.amount(control)} (${share(control, this.whole.control)} of all), ${this.data.sides[1]} ${this.amount(test)} (${share(test, this.whole.test)}), change ${signed(test - control, this.amount(test - control))}`
          : `${this.amount(control)} (${share(control, this.whole.control)} of all)`;
        this.found.textContent = boxes ? `Matched: ${sum}; ${plural(boxes, "box", "boxes")}${drawn < boxes ? `, ${count(drawn)} of them drawn` : ""}.` : "Nothing matches.";
      }
    }

    // The next match among the drawn boxes; where none is drawn, the largest match.
    next(step, first = false) {
      if (!this.pattern) return;
      const matches = [...this.drawn.keys()].filter((box) => this.pattern(box) && box !== this.whole);
      if (!matches.length) {
        const largest = [...this.whole.all()].filter((box) => this.pattern(box) && box.size).sort((a, b) => b.size - a.size)[0];
        if (largest) this.zoom(largest);
        return;
      }
      const at = matches.indexOf(this.at);
      this.focus(matches[first || at < 0 ? 0 : (at + step + matches.length) % matches.length]);
      this.chart.focus({ preventScroll: true });
    }

    // Movement

    boxOf(event) { return event.target.closest?.(".flame-box")?.box ?? null; }

    focus(box, isSeen = true) {
      this.drawn.get(this.at)?.element.classList.remove("at");
      this.at = box;
      const { element } = this.drawn.get(box);
      element.classList.add("at");
      this.chart.setAttribute("aria-activedescendant", element.id);
      this.detail.replaceChildren(...this.words(box));
      if (isSeen) element.scrollIntoView({ block: "nearest" });
    }

    pressed(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const moves = {
        ArrowDown: () => this.below(), ArrowUp: () => this.above(), ArrowRight: () => this.beside(1), ArrowLeft: () => this.beside(-1), Home: () => this.focus(this.top),
        Enter: () => this.zoom(this.at), " ": () => this.zoom(this.at), Escape: () => this.top.above && this.zoom(this.top.above),
        "/": () => { this.search.focus(); this.search.select(); }, n: () => this.next(1), N: () => this.next(-1),
      };
      if (!moves[event.key]) return;
      event.preventDefault();
      this.tip.hidden = true;
      moves[event.key]();
    }

    below() {
      const drawn = [...this.at.below.values()].filter((box) => this.drawn.has(box));
      if (drawn.length) this.focus(drawn.reduce((a, b) => (b.size > a.size ? b : a)));
    }

    above() {
      if (this.at !== this.top) this.focus(this.at.above);
      else if (this.top.above) this.zoom(this.top.above);
    }

    beside(step) {
      const { row } = this.drawn.get(this.at);
      const boxes = [...this.drawn].filter(([, place]) => place.row === row).sort(([, a], [, b]) => a.left - b.left).map(([box]) => box);
      const next = boxes[boxes.indexOf(this.at) + step];
      if (next) this.focus(next);
    }

    hover(event) {
      const box = this.boxOf(event);
      this.tip.hidden = !box;
      if (!box) return;
      if (this.hovered !== box) this.tip.replaceChildren(...this.words(box));
      this.hovered = box;
      const { width, height } = this.tip.getBoundingClientRect();
      this.tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, document.documentElement.clientWidth - width - 8))}px`;
      this.tip.style.top = `${event.clientY + 22 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18}px`;
    }
  }

  window.drawFlame = (place, data, view = {}, changed = null) => new Flame(place, data, view, changed);
})();
