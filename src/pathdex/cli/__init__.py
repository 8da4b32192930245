"""The `pathdex` command. Each command is one file: parse, call the library, print."""

from pathdex.cli.app import main

__all__ = ["main"]
