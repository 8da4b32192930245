"""Generators of clients accept the OpenAPI document, and their clients call every endpoint: `make test-clients`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pathdex.server.routes import ROUTES
from tests.server.conftest import running

ROOT = Path(__file__).parents[2]
TOOLS = Path(os.environ.get("PATHDEX_CLIENT_TOOLS", ROOT / "build" / "clients-venv")) / "bin"
CALLS = Path(__file__).parent / "generated" / "calls.py"


@pytest.mark.slow
@pytest.mark.parametrize("generator", ["openapi-python-client", "openapi-generator"])
def test_a_generated_client_calls_every_endpoint(generator: str, deep: Path, tmp_path: Path) -> None:
    if not (TOOLS / "openapi-python-client").exists():
        pytest.skip("the generators are not installed; run `make test-clients`")
    if generator == "openapi-generator" and shutil.which("java") is None:
        pytest.skip("openapi-generator needs java")
    document = tmp_path / "openapi.json"
    with running(deep, user_store=str(tmp_path / "users.sqlite"), events=str(tmp_path / "events.jsonl")) as server:
        document.write_bytes(server.get("/openapi.json").body)
        made = _generate(generator, document, tmp_path)
        called = subprocess.run(
            [TOOLS / "python", CALLS, generator, made, server.url], capture_output=True, text=True, check=False
        )
    assert called.returncode == 0, called.stderr
    statuses = json.loads(called.stdout)
    assert set(statuses) == {route.name for route in ROUTES}
    assert {name: status for name, status in statuses.items() if status not in (200, 202)} == {}


def _generate(generator: str, document: Path, folder: Path) -> Path:
    """The folder from which the client is imported."""
    command = {
        "openapi-python-client": ["generate", "--path", document, "--meta", "none", "--output-path", folder / "made"],
        "openapi-generator": ["generate", "-i", document, "-g", "python", "-o", folder / "generated"],
    }[generator]
    tool = TOOLS / ("openapi-generator-cli" if generator == "openapi-generator" else generator)
    path = {**os.environ, "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([tool, *command], capture_output=True, text=True, check=False, env=path)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "will not be generated" not in said
    assert "Unable to parse" not in said
    return folder if generator == "openapi-python-client" else folder / "generated"
