"""model: `Trace`, the events of a file as columns, with its names, categories, times and health notes."""
