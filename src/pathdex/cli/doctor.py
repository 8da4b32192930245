"""`pathdex doctor`."""

from __future__ import annotations

from pathdex.cli.command import write_result
from pathdex.cli.console import out
from pathdex.cli.options import JsonFile
from pathdex.tables import TextTable, pairs

GIGABYTE = 1e9


def doctor(json_file: JsonFile = None) -> None:
    """Show versions, hardware and optional features, and how to install missing ones.

    Examples:

        pathdex doctor

        pathdex doctor --json doctor.json
    """
    from pathdex.system import FEATURES, examine

    system = examine()
    console = out()
    console.print(pairs("Versions", {name: version or "missing" for name, version in system.versions.items()}))
    console.print(
        pairs(
            "\nMachine",
            {
                "cores": str(system.cores),
                "threads": f"{system.torch_threads} in torch, {system.compiled_threads} in compiled code",
                "devices": ", ".join(system.devices),
                "memory": "unknown" if system.memory is None else f"{system.memory / GIGABYTE:.1f} GB",
                "disk": f"{system.disk_free / GIGABYTE:.1f} GB free in {system.folder}",
            },
        )
    )
    machine = {name: value for name, value in vars(system).items() if name != "versions"}
    features = [
        {"feature": one.purpose, "package": one.package, "installed": one.available, "install": one.install}
        for one in FEATURES
    ]
    machine["folder"] = str(system.folder)
    write_result(json_file, {"versions": system.versions, "machine": machine, "features": features})
    rows = [
        [feature.purpose, feature.package, "yes" if feature.available else f"no: {feature.install}"]
        for feature in FEATURES
    ]
    console.print(TextTable("\nOptional features", ["feature", "package", "installed"], rows, text_columns=3))
