"""figures: one chart a file; a file and the function in it bear the chart's name."""
