"use strict";
// Numbers as tracediff/formatting.py writes them: `browser_format` of that module fills in its tables.
window.numbers = ((format) => {
  const decimalsOf = (table, amount) => table.find(([least]) => Math.abs(amount) >= least)[1];
  const sign = (text) => (/[1-9]/.test(text) ? text.replace("-", format.minus) : text.replace("-", ""));
  // A tie is rounded to even, as Python does it; toFixed rounds it away from 0.
  function rounded(value, decimals) {
    const size = Math.abs(value), text = size.toFixed(decimals);
    const isTie = (size * 2 ** (decimals + 1)) % 2 === 1;  // only eighths, quarters and halves have one that is exact
    return isTie && text.at(-1) % 2 ? (size - 0.5 / 10 ** decimals).toFixed(decimals) : text;
  }
  function digits(value, decimals) {
    const [whole, part] = rounded(value, decimals).split(".");
    const grouped = whole.replace(/\B(?=(?:\d{3})+$)/g, ",");
    return sign((value < 0 ? "-" : "") + grouped + (part ? `.${part}` : ""));
  }
  const plain = (amount, unit) => digits(amount / unit.size, unit.decimals);
  const signed = (value, text) => (value > 0 && /[1-9]/.test(text) ? `+${text}` : text);
  const isWhole = (n) => Math.abs(n - Math.round(n)) < format.integral || !decimalsOf(format.decimals, n);
  const count = (n) => digits(n, isWhole(n) ? 0 : 1);
  const counts = (a, b) => (a === b ? count(a) : `${count(a)} → ${count(b)}`);
  const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
  const percent = (share) => `${digits(100 * share, share ? decimalsOf(format.percent_decimals, share) : 0)} %`;
  const p = (value) => (value === null ? "–" : value < format.least_p ? `< ${format.least_p}` : digits(value, 3));
  // In the unit of the largest of it and the `others` of the same sentence.
  function time(us, ...others) {
    const largest = Math.max(...[us, ...others].map(Math.abs));
    const [name, size, least] = format.times.find(([, unit, atLeast]) => largest >= format.next_unit * unit * atLeast);
    return `${digits(us / size, least ? decimalsOf(format.decimals, largest / size) : 0)} ${name}`;
  }
  // `digits` and `plain` write a number with given decimals or in a given unit; `signed` puts a plus before its text.
  return { digits, plain, signed, count, counts, plural, percent, p, time };
})(/*browser_format*/);
