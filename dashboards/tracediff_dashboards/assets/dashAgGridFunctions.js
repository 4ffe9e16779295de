// What the table calls to word its cells. Plain functions of numbers and text: nothing of a trace is run.
window.dashAgGridFunctions = Object.assign({}, window.dashAgGridFunctions, {
  number: (value, decimals) => (value == null ? "" : window.numbers.digits(value, decimals)),
  change: (value, decimals) => (value == null ? "" : window.numbers.signed(value, window.numbers.digits(value, decimals))),
  count: (n) => (n == null ? "" : window.numbers.count(n)),
  p: (value) => (value == null ? "" : window.numbers.p(value)),
  shortened: (text, length, end) => (text.length > length ? text.slice(0, length - end) + "…" + text.slice(1 - end) : text),
  // A spreadsheet takes text that begins so for a formula: names are untrusted.
  plainCell: (params) => (typeof params.value === "string" && /^[^\p{L}\p{N}\p{P}\p{S}]*[=+\-@＝＋－＠﹢﹣﹦﹫]/u.test(params.value) ? "'" + params.value : params.value),
});
