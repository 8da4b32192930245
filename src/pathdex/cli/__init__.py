"""The `pathdex` command. Each command parses, calls the library and prints."""

from pathdex.cli.app import main

__all__ = ["main"]
