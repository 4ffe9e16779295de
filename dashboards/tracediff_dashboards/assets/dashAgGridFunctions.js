// What the table calls to word its cells. Plain functions of numbers and text: nothing of a trace is run.
window.dashAgGridFunctions = Object.assign({}, window.dashAgGridFunctions, {
  time: (us) => (us == null ? "" : us.toLocaleString("en-US", { minimumFractionDigits: 3, maximumFractionDigits: 3 }).replace("-", "−")),
  count: (n) => (n == null ? "" : n.toLocaleString("en-US", { maximumFractionDigits: 1 })),
  bySize: (a, b) => Math.abs(a) - Math.abs(b),
  // A spreadsheet takes text that begins so for a formula: names are untrusted.
  plainCell: (params) => (typeof params.value === "string" && /^\s*[=+\-@\t\r＝＋－＠]/.test(params.value) ? "'" + params.value : params.value),
});
