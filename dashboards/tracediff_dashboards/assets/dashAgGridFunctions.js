// What the table calls to word its cells. Plain functions of numbers and text: nothing of a trace is run.
window.dashAgGridFunctions = Object.assign({}, window.dashAgGridFunctions, {
  // As tracediff/formatting.py, which chose the unit and the decimals: 0 has no sign.
  number: (value, decimals) => {
    if (value == null) return "";
    const text = value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
    return /[1-9]/.test(text) ? text.replace("-", "−") : text.replace("-", "");
  },
  count: (n) => (n == null ? "" : n.toLocaleString("en-US", { maximumFractionDigits: 1 }).replace("-", "−")),
  tail: (path, length) => (path.length > length ? "…" + path.slice(1 - length) : path),
  // A spreadsheet takes text that begins so for a formula: names are untrusted.
  plainCell: (params) => (typeof params.value === "string" && /^[^\p{L}\p{N}\p{P}\p{S}]*[=+\-@＝＋－＠﹢﹣﹦﹫]/u.test(params.value) ? "'" + params.value : params.value),
});
