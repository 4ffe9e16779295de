"""files: the bytes of trace files, of small documents, and whether a text is JSON."""
