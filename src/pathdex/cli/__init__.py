"""The `pathdex` command. Each command parses, calls the library and prints."""

import sys

from pathdex.cli.interrupts import exit_code, farewell, handle_sigterm

__all__ = ["main"]


def main() -> None:
    """The entry point. Imports take seconds on a cold disk, and Ctrl-C within them is no reason for a traceback."""
    try:
        handle_sigterm()
        from pathdex.cli.app import main as run

        run()
    except KeyboardInterrupt as interrupt:
        sys.stderr.write(f"{farewell(interrupt)}\n")
        sys.exit(exit_code())
