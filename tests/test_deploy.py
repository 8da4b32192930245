"""The files in `deploy/`: they parse, and they name options, metrics and routes that exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer.main

from pathdex.cli.app import app
from pathdex.server import metrics
from pathdex.server.routes import ROUTES

yaml = pytest.importorskip("yaml")
DEPLOY = Path(__file__).parent.parent / "deploy"
FILES = sorted(file for file in DEPLOY.rglob("*") if file.is_file())


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def serve_options() -> set[str]:
    command = typer.main.get_command(app).commands["serve"]  # type: ignore[attr-defined]
    return {name for parameter in command.params for name in parameter.opts}


def known_metrics() -> set[str]:
    text = Path(metrics.__file__).read_text()
    names = set(re.findall(r"pathdex_\w+", text))
    return names | {f"{metrics.DURATION}_{ending}" for ending in ("bucket", "sum", "count")}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(DEPLOY)))
def test_options_of_serve_exist(file: Path) -> None:
    text = file.read_text()
    used = set(re.findall(r"(?<=[\s\"'])--[a-z][a-z-]*", text)) if "serve" in text else set()
    # Those of other programs in the same files.
    others = {"--appendonly", "--appendfsync", "--interval", "--timeout", "--start-period", "--retries", "--from"}
    others |= {"--constraint", "--no-cache-dir", "--no-install-recommends", "--uid", "--no-create-home", "--shell"}
    others |= {"--build", "--from-literal"}
    assert used - others <= serve_options()


@pytest.mark.parametrize("name", ["prometheus-alerts.yaml", "grafana-dashboard.json"])
def test_metrics_exist(name: str) -> None:
    named = set(re.findall(r"pathdex_\w+", (DEPLOY / name).read_text()))
    assert len(named) > 8
    assert named <= known_metrics()


def test_alerts_have_what_prometheus_needs() -> None:
    [content] = documents("prometheus-alerts.yaml")
    rules = [rule for group in content["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules) > 5
    assert all(rule["expr"] and rule["annotations"]["summary"] for rule in rules)
    assert all(rule["expr"].count("(") == rule["expr"].count(")") for rule in rules)


def test_the_dashboard_has_distinct_panels() -> None:
    panels = json.loads((DEPLOY / "grafana-dashboard.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    assert all(target["expr"] for panel in panels for target in panel["targets"])


def test_kubernetes_probes_ask_for_routes_and_pods_are_selected() -> None:
    found = documents("kubernetes/pathdex.yaml")
    [deployment] = [one for one in found if one["kind"] == "Deployment"]
    [service] = [one for one in found if one["kind"] == "Service"]
    pod = deployment["spec"]["template"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert deployment["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    [container] = pod["spec"]["containers"]
    paths = {route.path for route in ROUTES}
    assert all(
        container[name]["httpGet"]["path"] in paths for name in ("startupProbe", "readinessProbe", "livenessProbe")
    )
    flags = dict(one.removeprefix("--").partition("=")[::2] for one in container["args"] if one.startswith("--"))
    assert pod["spec"]["terminationGracePeriodSeconds"] > int(flags["drain"]) + int(flags["grace"])
    claims = {one["metadata"]["name"] for one in found if one["kind"] == "PersistentVolumeClaim"}
    mounted = [one["persistentVolumeClaim"] for one in pod["spec"]["volumes"] if "persistentVolumeClaim" in one]
    assert {one["claimName"] for one in mounted} == claims


def test_compose_starts_the_dockerfile_of_the_folder() -> None:
    [content] = documents("compose.yaml")
    build = content["services"]["pathdex"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).resolve() == (DEPLOY / "Dockerfile").resolve()
    assert set(content["services"]["pathdex"]["depends_on"]) < set(content["services"])


def test_a_wrong_model_path_is_an_error_of_compose_and_no_empty_folder() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    # Compose resolves relative paths against the folder of the file, not against the working directory.
    assert "MODEL=$PWD/" in text
    assert "MODEL=$PWD/" in (DEPLOY.parent / "docs" / "production.md").read_text()
    [mount] = [one for one in yaml.safe_load(text)["services"]["pathdex"]["volumes"] if isinstance(one, dict)]
    assert mount["source"].startswith("${MODEL:?")
    assert mount["target"] in yaml.safe_load(text)["services"]["pathdex"]["command"]
    assert (mount["type"], mount["read_only"], mount["bind"]) == ("bind", True, {"create_host_path": False})


def test_the_image_copies_what_exists_and_does_not_run_as_root() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    allowed = {line[1:] for line in (DEPLOY.parent / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [line.split()[1:-1] for line in text.splitlines() if line.startswith("COPY ") and "--from" not in line]
    assert {name for names in copied for name in names} == allowed
    assert all((DEPLOY.parent / name).exists() for name in allowed)
    assert re.search(r"^USER (?!0|root)", text, re.MULTILINE)
    assert "HEALTHCHECK" in text


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "pathdex.service"
    unit.write_text((DEPLOY / "pathdex.service").read_text().replace("/opt/pathdex/bin/pathdex", "/bin/true"))
    checked = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    complaints = [line for line in checked.stderr.splitlines() if "pathdex.service" in line]
    assert not complaints
