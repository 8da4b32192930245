"""`python -m pathdex` is the `pathdex` command."""

from pathdex.cli import main

if __name__ == "__main__":
    main()
