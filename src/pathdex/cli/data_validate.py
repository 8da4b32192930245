"""`pathdex data validate`."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import typer

from pathdex.cli.command import FAILED
from pathdex.cli.console import out
from pathdex.cli.reading import DataPath, takes_reading

STYLES = {"error": "red", "warning": "yellow", "info": ""}


@takes_reading
def validate(
    source: DataPath,
    reading: dict[str, Any],
    valid_users: Annotated[int, typer.Option(help="Check that this many validation users can be held out.")] = 0,
    test_users: Annotated[int, typer.Option(help="Check that this many test users can be held out.")] = 0,
) -> None:
    """Validate a data set and list all problems. Exits with code 1 if training would reject it.

    Examples:

        pathdex data validate ratings.csv --min-rating 4 --min-interactions 10

        pathdex data validate events.parquet --user visitor --valid-users 500 --test-users 500
    """
    from pathdex.data import validate as findings_of

    findings = findings_of(source, **reading, valid_users=valid_users, test_users=test_users)
    console = out()
    for finding in findings:
        console.print(str(finding), style=STYLES[finding.level])
    counts = Counter(finding.level for finding in findings)
    console.print(f"{counts['error']} errors, {counts['warning']} warnings")
    if counts["error"]:
        raise typer.Exit(FAILED)
