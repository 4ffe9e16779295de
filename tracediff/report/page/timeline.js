"use strict";
// The names of a timeline's marks, written on those that are wide enough: plotly shows no name in rows as low as these.
window.nameMarks = (place) => {
  const NARROWEST = 36;  // pixels of a mark with a name
  const STYLE = "position: absolute; box-sizing: border-box; padding: 0 3px; border: solid var(--paper); border-width: 0 1px; font-size: 11px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap";
  const parser = new DOMParser();
  const { xaxis: time, ...layout } = place._fullLayout, names = [];
  for (const { base, x, y, yaxis = "y", text, textfont, selectedpoints } of place.data) {
    const rows = layout[yaxis.replace("y", "yaxis")], height = rows.d2p(1) - rows.d2p(0);
    for (const k of selectedpoints ?? text.keys()) {
      const start = Math.max(time.d2p(base[k]), 0), width = Math.min(time.d2p(base[k] + x[k]), time._length) - start;
      if (width < NARROWEST || !text[k]) continue;
      const name = Object.assign(document.createElement("span"), { textContent: parser.parseFromString(text[k], "text/html").body.textContent });
      name.style.cssText = `${STYLE}; left: ${time._offset + start}px; top: ${rows._offset + rows.d2p(y[k]) - height / 2}px; width: ${width}px; line-height: ${height}px; color: ${textfont.color}`;
      names.push(name);
    }
  }
  const layer = place.querySelector(".mark-names") ?? document.createElement("div");
  layer.className = "mark-names";
  layer.style.cssText = "position: absolute; inset: 0; pointer-events: none";
  layer.ariaHidden = true;  // the text below the chart has them
  layer.replaceChildren(...names);
  place.querySelector(".main-svg").after(layer);  // below the hover texts
};
