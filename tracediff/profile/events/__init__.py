"""events: those of one file, joined and nested (`Context`), their division of each step into states, and their work."""
