// What Dash's components leave unnamed or hide from assistive technology although it takes the focus.
new MutationObserver(() => {
  for (const target of document.querySelectorAll("input.dash-dropdown-focus-target[aria-hidden]")) {
    target.removeAttribute("aria-hidden");
    target.setAttribute("aria-label", target.closest("div:has(> label)")?.querySelector("label").textContent ?? "choice");
  }
  const upload = document.querySelector("#upload input[type=file]:not([aria-label])");
  upload?.setAttribute("aria-label", "Drop or choose two traces");
}).observe(document, { childList: true, subtree: true });

// The marks of the timeline get their names whenever plotly has drawn them, in whichever plot the page has now.
{
  const listened = new WeakSet();  // what plotly makes anew with each plot
  new MutationObserver(() => {
    const plot = document.querySelector("#chart-timeline .js-plotly-plot");
    if (!plot?._fullLayout || listened.has(plot._ev)) return;
    listened.add(plot._ev);
    plot.on("plotly_afterplot", () => window.nameMarks(plot));
    window.nameMarks(plot);
  }).observe(document, { childList: true, subtree: true });
}

// Esc or a button closes what a click on the timeline has opened, and Esc ends the highlight of a row.
{
  const close = () => document.getElementById("followed") && window.dash_clientside.set_props("followed", { children: [] });
  document.addEventListener("click", (event) => { if (event.target.closest("#unfollow")) close(); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || document.querySelector(".dash-dropdown-content")) return;
    close();
    document.getElementById("unmark")?.click();
  });
}

// Light or dark: what the reader chose, else what the dashboard was started with, else what the system says.
window.dash_clientside = Object.assign({}, window.dash_clientside, {
  theme: {
    choose: function (clicks, asked, kept) {
      const system = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
      let theme = kept || (asked === "auto" ? system : asked);
      if (window.dash_clientside.callback_context.triggered.some((t) => t.prop_id === "theme-button.n_clicks") && clicks) {
        theme = theme === "dark" ? "light" : "dark";
      }
      document.documentElement.dataset.theme = theme;
      return [theme, theme === "dark" ? "Light" : "Dark"];
    },
  },
  // The address contains the whole view. Browsers allow the clipboard on this machine and over https only.
  link: {
    copy: async function () {
      const again = () => window.dash_clientside.set_props("copy", { children: "Copy link" });
      try {
        await navigator.clipboard.writeText(window.location.href);
      } catch {
        window.setTimeout(again, 4000);
        return "Copy the address bar";
      }
      window.setTimeout(again, 2000);
      return "Link copied";
    },
  },
  // The steps that the timeline shows, as one trace that the server writes.
  perfetto: {
    open: function (clicks) {
      const trace = async () => {
        const answer = await fetch("/merged-step" + window.location.search);
        if (!answer.ok) throw new Error(await answer.text());
        return answer.arrayBuffer();
      };
      const say = (text) => window.dash_clientside.set_props("perfetto-status", { children: text });
      if (clicks) window.openInPerfetto("tracediff: " + document.getElementById("caption-timeline").firstChild.textContent, trace, say);
      return window.dash_clientside.no_update;
    },
  },
  // Dropped files go to the server one after the other, which stores them and answers with the name of the set or an error.
  upload: {
    send: async function (contents, names) {
      const same = window.dash_clientside.no_update;
      const alert = (text) => [same, { namespace: "dash_html_components", type: "Div", props: { className: "alert", children: text } }];
      if (!contents) return [same, same];
      if (contents.length > 2) return alert("More than two files were dropped; drop a control and a test, or start the dashboard with their folder.");
      const stored = [];
      try {
        for (const [k, content] of contents.entries()) {
          const bytes = Uint8Array.from(atob(content.slice(content.indexOf(",") + 1)), (c) => c.charCodeAt(0));
          const headers = { "Content-Type": "application/octet-stream" };
          const answer = await fetch("/upload?name=" + encodeURIComponent(names[k]), { method: "POST", headers, body: bytes });
          const text = await answer.text();
          if (!answer.ok) return alert(text);
          stored.push(text);
        }
      } catch {
        return alert("The file could not be sent to the dashboard; drop it again.");
      }
      return [stored, ""];
    },
  },
  // The flame graph: its state goes into the URL, and the zoomed box to the panel below it.
  flame: {
    draw: function (data) {
      const select = (view, node) => window.dash_clientside.set_props("flame-view", { data: { ...view, node } });
      window.drawFlame(document.getElementById("flame-graph"), data.graph, data.view, select);
      return window.dash_clientside.no_update;
    },
  },
  // CSV from the grid; columns shown and pinned.
  grid: {
    download: function (clicks) {
      return Boolean(clicks);
    },
    count: function (listed, rows, all) {
      return listed && listed.length < rows.length ? window.numbers.count(listed.length) + " of " + all : all;
    },
    columns: function (shown, pinned, defs) {
      if (!shown.length) return window.dash_clientside.no_update;
      return defs.map((d) => ({ ...d, hide: !shown.includes(d.field), pinned: pinned.includes(d.field) ? "left" : null }));
    },
  },
});
