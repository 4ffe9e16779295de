"""The command line, one file per command: it parses options, calls the library and prints or writes the result."""
