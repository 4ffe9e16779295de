"""The command line: one file a command: options in, the library's answer out."""
