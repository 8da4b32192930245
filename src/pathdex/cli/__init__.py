"""The `pathdex` command: one file per command; parse, call the library, print."""

from pathdex.cli.app import main

__all__ = ["main"]
