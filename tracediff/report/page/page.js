"use strict";
// The report's behaviour: themes, charts drawn when they come into view, and long tables of which only the visible rows exist.
// What traces recorded enters the page through textContent only.
(async () => {
  // What the page holds as compressed text in base64.
  function unpacked(id) {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (character) => character.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
  }
  const data = await unpacked("data").json();
  const CONFIG = { responsive: true, displaylogo: false, typesetMath: false,
    modeBarButtonsToRemove: ["sendChartToCloud", "sendDataToCloud", "editInChartStudio", "select2d", "lasso2d"] };
  const ROW = window.matchMedia("(max-width: 40rem)").matches ? 48 : 28, SPARE = 8, PRINTED = 40, SHOWN = 11;
  const CLICK = 4;  // pixels that a pointer may move in a click
  const TAIL = 12;  // letters
  const DIGIT = 8, PADDING = 18;  // pixels of a digit, and beside the text of a cell
  const { count, counts, p, plain, plural, signed } = window.numbers;
  const signedIn = (us, unit) => signed(us, plain(us, unit));
  const PAPER = 680;  // pixels that A4 and Letter leave between the usual margins

  // Elements

  function make(tag, properties = {}, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }
  const named = (text) => make("bdi", { textContent: text || "(none)" });

  // A name whose end stays in sight where its middle has no room: long names of kernels differ at their ends.
  function ended(text) {
    const letters = [...text], end = letters.splice(-TAIL);
    if (letters.length < TAIL) return make("bdi", { textContent: text });
    return make("bdi", { className: "ends" }, ...[letters, end].map((part) => make("span", { textContent: part.join("") })));
  }

  // Themes and charts

  const root = document.documentElement;
  const button = document.getElementById("theme");
  const drawn = new Set();

  function inTheme(chart, theme) {
    const figure = structuredClone({ data: chart.data, layout: chart.layout });
    if (theme === "dark") {
      for (const [path, value] of chart.dark) {
        const last = path.length - 1;
        let node = figure;
        for (const key of path.slice(0, last)) node = node[key];
        node[path[last]] = value;
      }
    }
    return figure;
  }

  function draw(place, width = undefined) {
    const name = place.dataset.chart;
    const figure = inTheme(data.charts[name], root.dataset.theme);
    Object.assign(figure.layout, { width, uirevision: name });
    if (name === "timeline") fade(figure);
    const isFirst = !drawn.has(place);
    drawn.add(place);
    const done = Plotly.react(place, figure.data, figure.layout, CONFIG);
    if (isFirst && name === "timeline") {
      openClicked(place);
      window.nameMarks(place);
      place.on("plotly_afterplot", () => window.nameMarks(place));
    }
    return done;
  }

  function setTheme(theme) {
    root.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    return Promise.all([...drawn].map((place) => draw(place)));
  }

  const places = [...document.querySelectorAll(".chart")];
  const visibility = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        visibility.unobserve(entry.target);
        draw(entry.target);
      }
    }
  }, { rootMargin: "300px" });

  // The timeline: the marks of an open row or of a clicked event stand out, the others fade.

  const timeline = places.find((place) => place.dataset.chart === "timeline");
  const selection = make("div", { className: "details selection" });
  selection.setAttribute("role", "status");
  timeline?.closest("figure").append(selection);
  let chosen = null;  // ids of marks: side and event

  function fade(figure) {
    for (const trace of chosen ? figure.data : []) {
      Object.assign(trace, { selectedpoints: [...trace.ids.keys()].filter((k) => chosen.has(trace.ids[k])), unselected: { marker: { opacity: 0.12 } } });
    }
  }

  // The marks of the names with these numbers.
  function marksOf(codes) {
    const wanted = new Set(codes.map((code) => data.spellings[code] ?? code));
    return Object.keys(data.marks ?? {}).filter((id) => data.marks[id].some((code) => wanted.has(code)));
  }

  function marksText(ids) {
    const ofTest = ids.filter((id) => id[0] === "1").length;
    return data.sides ? `${plural(ids.length - ofTest, "mark")} in control, ${count(ofTest)} in test` : plural(ids.length, "mark");
  }

  // Let these marks stand out, and say below the chart what they are; without any, all are alike.
  function select(ids = null, ...what) {
    chosen = ids && new Set(ids);
    if (drawn.has(timeline)) draw(timeline);
    if (!ids) return selection.replaceChildren(make("p", { className: "facts", textContent: "Click an event to see what it is, and where else it runs." }));
    const clear = make("button", { type: "button", textContent: "Clear", title: "Esc" });
    clear.addEventListener("click", () => select());
    return selection.replaceChildren(...what, make("p", {}, `Highlighted: ${marksText(ids)}. `, clear));
  }

  // A click opens the mark below it; between marks, the nearest of the row.
  function openClicked(place) {
    let pressed = null;
    place.on("plotly_click", ({ points: [point] }) => { pressed = null; openMark(point); });
    place.addEventListener("pointerdown", (event) => { pressed = event; }, true);
    window.addEventListener("mouseup", (event) => setTimeout(() => {
      if (pressed && Math.hypot(event.clientX - pressed.clientX, event.clientY - pressed.clientY) < CLICK) {
        const mark = nearestMark(place, event);
        if (mark) openMark(mark);
      }
      pressed = null;
    }));
  }

  // The mark of the row at the pointer that is nearest to it in time; null beside the rows.
  function nearestMark(place, { clientX, clientY }) {
    const { left, top } = place.getBoundingClientRect(), layout = place._fullLayout;
    const axis = [layout.yaxis, layout.yaxis2].find((each) => each && clientY - top >= each._offset && clientY - top <= each._offset + each._length);
    const x = clientX - left - layout.xaxis._offset;
    if (!axis || x < 0 || x > layout.xaxis._length) return null;
    const row = Math.round(axis.p2d(clientY - top - axis._offset)), time = layout.xaxis.p2d(x);
    const marks = place.data.filter((trace) => (trace.yaxis ?? "y") === axis._id).flatMap((trace) => [...trace.ids.keys()].filter((k) => trace.y[k] === row)
      .map((k) => ({ id: trace.ids[k], customdata: trace.customdata[k], y: row, data: trace, away: Math.max(trace.base[k] - time, time - trace.base[k] - trace.x[k], 0) })));
    return marks.reduce((nearest, mark) => (nearest && nearest.away <= mark.away ? nearest : mark), null);
  }

  // A clicked event, from its hover text: the name in bold, then duration, start and what launched it.
  function openMark({ id, customdata, y, data: { yaxis = "y" } }) {
    const [first, ...facts] = plainText(customdata).split("\n"), { annotations, ...axes } = timeline.layout;
    const row = axes[yaxis.replace("y", "yaxis")].ticktext[y], [code] = data.marks?.[id] ?? [];
    const more = code == null ? [] : [make("p", {}, jump("ops", data.names[code], "Show in the table"))];
    select(code == null ? [id] : marksOf([code]), make("p", {}, make("strong", {}, named(first))),
      make("p", { textContent: [annotations[id[0]]?.text, row].filter(Boolean).map(plainText).concat(facts).join(" · ") }), ...more);
  }

  // The text of plotly's markup: a name is broken into lines within its bold.
  function plainText(markup) {
    const body = new DOMParser().parseFromString(markup, "text/html").body;
    for (const end of body.querySelectorAll("br")) end.replaceWith(end.closest("b") ? "" : "\n");
    return body.textContent;
  }

  // A link from a row to the marks of the names with these numbers.
  function openOnTimeline(table, codes) {
    const ids = marksOf(codes);
    if (!timeline) return [];
    if (!ids.length) return [make("p", { className: "facts", textContent: "The timeline does not show it: it runs outside of the period that is shown, or in a row that is left out." })];
    const name = make("strong", {}, named(table.value(table.source.rows[table.open], "name")));
    const show = make("button", { type: "button", textContent: marksText(ids) }), mark = () => select(ids, make("p", {}, name));
    mark();
    show.addEventListener("click", () => { mark(); timeline.scrollIntoView({ block: "center" }); });
    return [make("p", {}, "On the timeline: ", show)];
  }

  // Tables

  const TABLES = {
    ops: { details: opDetails, names: (table, row) => [row[table.position.raw_name]] },
    groups: { details: groupDetails, names: (table, row) => table.members(row).flat().map((member) => member[ofMember.raw_name]) },
  };
  const SCOPES = new Set(["user_annotation", "python_function", "gpu_user_annotation"]), GPU_WORK = new Set(["kernel", "gpu_memcpy", "gpu_memset"]);
  const tabOf = (category) => (SCOPES.has(category) ? "scopes" : GPU_WORK.has(category) ? "kernels" : "ops");
  const isTime = (column) => column.endsWith("_us"), isChange = (column) => column.startsWith("delta");
  const isNumber = (column) => column === "count" || isTime(column);
  const tables = {};
  const ofMember = Object.fromEntries((data.members ?? []).map((name, k) => [name, k])); // the places of a member's columns

  class Table {
    constructor(place) {
      const key = place.dataset.table;
      Object.assign(this, { key, place, layout: TABLES[key], source: data[key], from: -1, falling: true, focus: 0, open: -1, tab: key });
      this.position = Object.fromEntries(this.source.columns.map((name, k) => [name, k]));
      this.sorted = this.source.shown.map(([column]) => column).find(isChange);
      this.columns = this.source.shown.filter(([column]) => !this.isText(column) || this.source.rows.some((row) => this.value(row, column)));
      this.input = place.querySelector("input[type=search]");
      this.box = place.querySelector(".rows");
      this.panel = place.querySelector(".details");
      this.found = place.querySelector(".found");
      this.body = make("tbody");
      this.box.append(make("table", {}, this.head(), this.body));
      this.input.addEventListener("input", () => this.search());
      this.box.addEventListener("scroll", () => this.show());
      this.box.addEventListener("keydown", (event) => this.move(event));
      this.place.addEventListener("keydown", (event) => {
        if (event.key === "Escape" && this.open >= 0 && event.target !== this.input) { event.preventDefault(); this.leave(); }
      });
      this.search();
    }

    value(row, column) {
      if (column === "count") return row[this.position.test_count] - row[this.position.control_count];
      const value = row[this.position[column]];
      return this.isText(column) ? data.names[value] ?? "" : value;
    }

    isText(column) { return !isNumber(column); }

    // The tab that shows row `k`.
    tabOf(k) { return this.key === "groups" ? this.key : tabOf(this.value(this.source.rows[k], "category")); }

    members(row) { return [row[this.position.control], row[this.position.test]]; }

    head() {
      const row = make("tr");
      const widths = this.columns.map(([column, , width]) => (column === "count" ? Math.max(width, this.widestCount()) : width));
      const whole = widths.reduce((sum, width) => sum + width, 0);
      for (const [k, [column, title, , help]] of this.columns.entries()) {
        const sort = make("button", { type: "button", textContent: title, title: help });
        sort.addEventListener("click", () => this.sort(column));
        const cell = make("th", { scope: "col", className: isNumber(column) ? "number" : "" }, sort);
        cell.style.width = `${100 * widths[k] / whole}%`;
        cell.dataset.column = column;
        row.append(cell);
      }
      return make("thead", {}, row);
    }

    widestCount() {
      return this.source.rows.reduce((most, row) => Math.max(most, this.countText(row).length), 0) * DIGIT + PADDING;
    }

    countText(row) { return counts(row[this.position.control_count], row[this.position.test_count]); }

    sort(column) {
      this.falling = this.sorted === column ? !this.falling : !this.isText(column);
      this.sorted = column;
      this.arrange();
    }

    arrange() {
      const sign = this.falling ? -1 : 1, column = this.sorted, rows = this.source.rows;
      this.body.parentNode.setAttribute("aria-rowcount", this.order.length + 1);
      const size = (k) => { const v = this.value(rows[k], column); return isChange(column) || column === "count" ? Math.abs(v) : v; };
      this.order.sort((a, b) => {
        const x = size(a), y = size(b);
        return (typeof x === "string" ? x.localeCompare(y) : x - y) * sign || a - b;
      });
      for (const cell of this.box.querySelectorAll("th")) {
        const isSorted = cell.dataset.column === column;
        if (isSorted) cell.setAttribute("aria-sort", this.falling ? "descending" : "ascending");
        else cell.removeAttribute("aria-sort");
        const sort = cell.firstChild;
        sort.textContent = sort.textContent.replace(/ [▲▼]$/, "") + (isSorted ? (this.falling ? " ▼" : " ▲") : "");
      }
      this.box.scrollTop = 0;
      this.from = -1;
      this.show();
    }

    texts() {
      this.haystack ??= this.source.rows.map((row) => {
        const words = this.source.words.map((column) => data.names[row[this.position[column]]] ?? "");
        if (this.key === "groups") {
          for (const member of this.members(row).flat()) words.push(...["name", "raw_name", "op"].map((column) => data.names[member[ofMember[column]]] ?? ""));
        }
        return words.join("\n").toLowerCase();
      });
      return this.haystack;
    }

    // The rows that hold every word of `text`.
    matches(text) {
      const wanted = text.trim().toLowerCase().split(/\s+/), texts = wanted[0] ? this.texts() : null;
      const rows = [...this.source.rows.keys()];
      return texts ? rows.filter((k) => wanted.every((word) => texts[k].includes(word))) : rows;
    }

    search(exactly = null) {
      if (exactly !== null) this.input.value = exactly;
      const inTab = (k) => this.tabOf(k) === this.tab, left = this.source.all - this.source.rows.length;
      this.order = this.matches(this.input.value).filter(inTab);
      const all = [...this.source.rows.keys()].filter(inTab).length + left;
      this.found.textContent = ` ${count(this.order.length)} of ${count(all)}; ${this.tab === "kernels" ? "GPU time" : this.source.time} in ${this.source.unit.name} ${data.per}` +
        (left ? `; the ${count(left)} with the smallest change are omitted here (--json has all)` : "");
      this.close();
      this.arrange();
    }

    show(most = null) {
      const height = Math.max(this.box.clientHeight, ROW * SHOWN);
      const first = Math.max(Math.floor(this.box.scrollTop / ROW) - SPARE, 0);
      const last = Math.min(first + (most ?? Math.ceil(height / ROW) + 2 * SPARE), this.order.length);
      if (most === null && this.from === first && this.until === last) return;
      Object.assign(this, { from: first, until: last });
      const hadFocus = this.body.contains(document.activeElement);
      const top = Math.ceil(this.box.scrollTop / ROW);
      this.stop = this.focus >= first && this.focus < last ? this.focus : top;
      this.body.replaceChildren(this.space(first), ...this.order.slice(first, last).map((k, i) => this.row(k, first + i)), this.space(most ? 0 : this.order.length - last));
      if (hadFocus) this.body.querySelector(`tr[data-place="${this.focus}"] button`)?.focus({ preventScroll: true });
    }

    space(rows) {
      const cell = make("td", { colSpan: this.columns.length });
      cell.style.height = `${rows * ROW}px`;
      const row = make("tr", { className: "space" }, cell);
      row.setAttribute("aria-hidden", "true");
      row.hidden = rows === 0;
      return row;
    }

    row(k, place) {
      const row = this.source.rows[k], unit = this.source.unit;
      const element = make("tr", { className: k === this.open ? "chosen" : "" });
      element.dataset.place = place;
      element.setAttribute("aria-rowindex", place + 2);
      for (const [column] of this.columns) {
        let cell;
        if (column === "name") {
          const open = make("button", { type: "button", title: this.value(row, this.position.raw_name === undefined ? "name" : "raw_name") }, ended(this.value(row, "name") || "(none)"));
          open.tabIndex = place === this.stop ? 0 : -1;
          open.addEventListener("click", () => { this.focus = place; this.choose(k); this.panel.scrollIntoView({ block: "nearest" }); });
          open.addEventListener("focus", () => { this.focus = place; });
          cell = make("td", {}, open);
        } else if (column === "count") cell = make("td", { textContent: this.countText(row) });
        else if (isChange(column)) cell = make("td", { textContent: signedIn(row[this.position[column]], unit) });
        else if (isTime(column)) cell = make("td", { textContent: plain(row[this.position[column]], unit) });
        else cell = make("td", { title: this.value(row, column) }, ended(this.value(row, column)));
        if (isNumber(column)) cell.className = "number";
        cell.dataset.column = column;
        element.append(cell);
      }
      return element;
    }

    move(event) {
      const step = { ArrowDown: 1, ArrowUp: -1, PageDown: SHOWN, PageUp: -SHOWN, Home: -Infinity, End: Infinity }[event.key];
      if (step === undefined || event.target.closest("thead") || !this.order.length) return;
      event.preventDefault();
      this.focus = Math.min(Math.max(this.focus + step, 0), this.order.length - 1);
      const top = this.focus * ROW, room = this.box.clientHeight - 2 * ROW;
      if (top < this.box.scrollTop) this.box.scrollTop = top;
      else if (top > this.box.scrollTop + room) this.box.scrollTop = top - room;
      this.from = -1;
      this.show();
      this.body.querySelector(`tr[data-place="${this.focus}"] button`)?.focus({ preventScroll: true });
    }

    choose(k) {
      this.open = k;
      this.from = -1;
      this.show();
      const close = make("button", { type: "button", textContent: "close" });
      close.addEventListener("click", () => this.leave());
      const row = this.source.rows[k];
      this.panel.replaceChildren(...this.layout.details(this, row), ...openOnTimeline(this, this.layout.names(this, row)), make("p", {}, close));
      this.panel.hidden = false;
    }

    leave() {
      this.close();
      this.body.querySelector("button[tabindex='0']")?.focus({ preventScroll: true });
    }

    close() {
      if (this.open < 0) return;
      this.open = -1;
      this.from = -1;
      this.show();
      this.panel.hidden = true;
      this.panel.replaceChildren();
      select();
    }

    // A link from elsewhere: the rows that hold `text`, and the details of row `k`, else of that name, else of the first.
    land(text, k = undefined) {
      const matches = this.matches(text), work = matches.filter((each) => this.tabOf(each) !== "scopes"), some = work.length ? work : matches;
      const row = k ?? some.find((each) => this.value(this.source.rows[each], "name") === text) ?? some[0];
      turn(row === undefined ? this.tab : this.tabOf(row), text);
      this.place.scrollIntoView();
      if (row !== undefined) this.choose(row);
      this.input.focus({ preventScroll: true });
    }
  }

  // The lists of work: one is shown at a time, and keeps what is searched.

  const tabs = [...document.querySelectorAll("[data-tab]")];

  function turn(tab, text) {
    for (const each of tabs) each.setAttribute("aria-pressed", each.dataset.tab === tab);
    for (const [key, table] of Object.entries(tables)) table.place.hidden = (key === "groups") !== (tab === "groups");
    const table = tables[tab === "groups" ? tab : "ops"];
    table.tab = tab;
    table.search(text);
  }

  // Links to the work: each is an entry of the browser's history, and “back” returns to the link.

  const followed = [];

  // Where the table that a link names has no row of it, the other may: operators that launch nothing are not matched.
  const tableOf = (key, text) => [key, ...Object.keys(tables)].find((each) => tables[each].matches(text).length) ?? key;

  function follow(link, named, text, k = undefined) {
    const key = k === undefined ? tableOf(named, text) : named;
    history.replaceState({ ...history.state, left: followed.push(link) - 1 }, "");
    history.pushState({ key, text, k }, "", `#${key}`);
    tables[key].land(text, k);
  }

  window.addEventListener("popstate", ({ state }) => {
    if (state?.key) tables[state.key].land(state.text, state.k);
    const link = followed[state?.left];
    if (link?.isConnected) requestAnimationFrame(() => { link.scrollIntoView({ block: "center" }); link.focus({ preventScroll: true }); });
  });

  // Details

  function facts(pairs) {
    const list = make("dl");
    for (const [what, value] of pairs) if (value !== "" && value !== null && value !== undefined) list.append(make("dt", { textContent: what }), make("dd", {}, named(value)));
    return list;
  }

  function times(table, row, a, b) {
    const unit = table.source.unit, from = row[table.position[a]], to = row[table.position[b]];
    return `${plain(from, unit)} → ${plain(to, unit)} ${unit.name} (${signedIn(to - from, unit)})`;
  }

  function jump(key, text, shown) {
    const link = make("button", { type: "button" }, named(shown ?? text));
    link.addEventListener("click", () => follow(link, key, text));
    return link;
  }

  function opDetails(table, row) {
    const value = (column) => table.value(row, column);
    const list = facts([["recorded name", value("raw_name")], ["kind", `${value("category")}, ${value("family")}`],
      ["count per step", counts(row[table.position.control_count], row[table.position.test_count])], ["self time per step", times(table, row, "control_self_us", "test_self_us")],
      ["total time per step", times(table, row, "control_total_us", "test_total_us")], ["significance", value("time_change")],
      ["p, q", row[table.position.p_value] === null ? "" : `${p(row[table.position.p_value])}, ${p(row[table.position.q_value])}`]]);
    return [list, make("h3", { textContent: "Matched groups" }), partners(row[table.position.raw_name])];
  }

  // The groups that hold work of the name with this code.
  function partners(code) {
    const { source, position } = tables.groups, unit = source.unit;
    const found = source.rows.filter((row) => tables.groups.members(row).flat().some((member) => member[ofMember.raw_name] === code || member[ofMember.op] === code));
    if (!found.length) return make("p", { textContent: "No group on this page contains it." });
    const list = make("ul");
    for (const row of found.slice(0, 20)) {
      const [a, b] = tables.groups.members(row).map((side) => side.map((member) => data.names[member[ofMember.name]]));
      const text = `${data.names[row[position.level]]}: ${a[0] ?? "–"} → ${b[0] ?? "–"}, ${plain(row[position.control_us], unit)} → ${plain(row[position.test_us], unit)} ${unit.name}`;
      const link = make("button", { type: "button" }, named(text));
      link.addEventListener("click", () => follow(link, "groups", data.names[row[position.name]], source.rows.indexOf(row)));
      list.append(make("li", {}, link));
    }
    if (found.length > 20) list.append(make("li", { textContent: `and ${count(found.length - 20)} more` }));
    return list;
  }

  function groupDetails(table, row) {
    const value = (column) => table.value(row, column), position = table.position, unit = table.source.unit;
    const call = value("operator") + value("shapes");
    const why = (data.why[value("level")] ?? "").replace("{call}", call || "an operator");
    const list = facts([["match level", `${value("level")}: ${why}`], ["operator", call], ["module", value("module")], ["phase", value("phase")], ["line of code", value("lines")],
      ["change", `${signedIn(row[position.delta_us], unit)} ${unit.name}: ${signedIn(row[position.count_part_us], unit)} by count, ${signedIn(row[position.mean_part_us], unit)} by mean duration`]]);
    const sides = make("div", { className: "sides" });
    table.members(row).forEach((side, k) => {
      const members = make("ul");
      for (const member of side) {
        const [name, raw, times, us] = ["name", "raw_name", "count", "us"].map((column) => member[ofMember[column]]);
        members.append(make("li", {}, `${count(times)} × `, jump("ops", data.names[raw], data.names[name]), `, ${plain(us, unit)} ${unit.name}`));
      }
      const more = row[position.all_members][k] - side.length;
      if (more > 0) members.append(make("li", { textContent: `and ${count(more)} smaller` }));
      if (!row[position.all_members][k]) members.append(make("li", { textContent: "no counterpart" }));
      sides.append(make("div", {}, make("h3", { textContent: data.sides[k] }), members));
    });
    return [list, sides];
  }

  // Perfetto

  function connectPerfetto() {
    const trace = () => unpacked("trace").arrayBuffer();
    const say = (words) => { document.querySelector(".perfetto [role=status]").textContent = words; };
    // Perfetto's documentation asks for a page that a server sends.
    const onDisk = location.protocol === "file:" ? " If it shows nothing, save the trace and drop it on Perfetto's page." : "";
    document.getElementById("perfetto").addEventListener("click", () => {
      window.openInPerfetto(document.title, trace, (words) => say(words + (words.endsWith("has the trace.") ? onDisk : "")));
    });
    document.getElementById("save-trace").addEventListener("click", async () => {
      const link = make("a", { href: URL.createObjectURL(new Blob([await trace()], { type: "application/json" })), download: "tracediff.json" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
      say("Drop the file on ui.perfetto.dev, or open it with tracediff open tracediff.json.");
    });
  }

  // Start

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-find]");
    if (link && tables[link.dataset.table]) {
      event.preventDefault();
      follow(link, link.dataset.table, link.dataset.find);
    }
    const section = event.target.closest("nav a")?.getAttribute("href");
    document.querySelector(`${section} > details`)?.setAttribute("open", "");
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented && chosen) select();
  });
  select();
  button.addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
  let before = null;
  window.addEventListener("beforeprint", () => {
    before ??= root.dataset.theme;
    document.querySelectorAll(".folded").forEach((one) => { one.open = true; });
    root.dataset.theme = "light";
    places.forEach((place) => draw(place, PAPER));
    Object.values(tables).forEach((table) => { table.box.scrollTop = 0; table.show(PRINTED); });
  });
  window.addEventListener("afterprint", () => {
    if (before !== null) setTheme(before).then(() => drawn.forEach((place) => Plotly.Plots.resize(place)));
    before = null;
    Object.values(tables).forEach((table) => { table.from = -1; table.show(); });
  });
  setTheme(window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  for (const place of document.querySelectorAll(".browse")) tables[place.dataset.table] = new Table(place);
  for (const each of tabs) {
    const table = tables[each.dataset.tab === "groups" ? "groups" : "ops"];
    each.hidden = !table.source.rows.some((_, k) => table.tabOf(k) === each.dataset.tab);
    each.addEventListener("click", () => turn(each.dataset.tab, document.querySelector(".browse:not([hidden]) input").value));
  }
  if (tabs.length) turn((tabs.find((each) => each.matches("[aria-pressed=true]:not([hidden])")) ?? tabs[0]).dataset.tab, "");
  places.forEach((place) => visibility.observe(place));
  const flame = document.getElementById("flame-graph");
  if (document.getElementById("trace")) connectPerfetto();
  if (flame) drawFlame(flame, data.flame);
  root.dataset.ready = "yes";
  performance.mark("interactive");
})().catch((error) => {
  const line = Object.assign(document.createElement("p"), { className: "caution", textContent: `This browser cannot show the charts and long tables: ${error.message}.` });
  document.getElementById("main").prepend(line);
  throw error;
});
