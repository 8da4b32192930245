"""The `pathdex` command: one file per command; parse, call the library, print."""
