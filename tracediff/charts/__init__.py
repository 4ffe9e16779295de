"""charts: tables → plotly figures. Nothing here imports plotly before a figure is drawn."""
