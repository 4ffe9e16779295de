// plotly.js with the kinds of traces that the pages of tracediff/report/page draw; scatter is always in it.
const Plotly = require("plotly.js/lib/core");
Plotly.register([
  require("plotly.js/lib/bar"),
  require("plotly.js/lib/box"),
  require("plotly.js/lib/heatmap"),
]);
module.exports = Plotly;
