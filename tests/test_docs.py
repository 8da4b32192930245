"""The pages agree with the code: links, names, options and tables are right, and the examples run."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from docs.generate import GROUPS, commands, fill, finding_codes, without_generated

import pathdex
from pathdex.config import Config, RunOptions, tomllib
from pathdex.data.formats import FORMATS
from pathdex.evaluation.decomposition import Loss
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.registry import ESTIMATORS
from pathdex.recommenders.youtube_dnn import YouTubeDNN
from pathdex.training.callbacks import Callback
from pathdex.training.checkpointing import Checkpointer
from pathdex.training.loop import TrainingLoop
from tests.recommender_contract import TEXT_IDS, RecommenderContract, StopAfter, grouped_data
from tests.snippets import PAGES, ROOT, code_blocks, make_workbench, page_name, run_python, typed_lines
from tests.test_tutorials import GUIDES, TUTORIALS

DOCS = ROOT / "docs"
SOURCE = Path(pathdex.__file__).parent
DIFFERS = "Differs from the paper:"

each_page = pytest.mark.parametrize("page", PAGES, ids=page_name)


def without_code(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    """Targets of the page's links to files of the repository."""
    targets = re.findall(r"\]\(([^)\s]+)\)", without_code(page))
    return [target for target in targets if not target.startswith(("http://", "https://"))]


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings: lower case, punctuation dropped, spaces as hyphens."""
    headings = re.findall(r"^#+ (.+)$", without_code(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def names_in(file: Path) -> set[str]:
    """Functions, classes, constants and `Class.member`s that a module defines."""
    names: set[str] = set()

    def collect(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(prefix + node.name)
                if isinstance(node, ast.ClassDef):
                    collect(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names.update(prefix + target.id for target in targets if isinstance(target, ast.Name))

    collect(ast.parse(file.read_text()).body, "")
    return names


def table_names(page: Path, section: str) -> list[str]:
    """Names in backquotes in the first column of a section's tables."""
    text = page.read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    cells = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


@each_page
def test_links_resolve(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} does not exist"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


def test_every_page_is_reachable_from_the_readme() -> None:
    reached, queue = set(), [ROOT / "README.md"]
    while queue:
        page = queue.pop()
        if page not in reached:
            reached.add(page)
            targets = [(page.parent / link.partition("#")[0]).resolve() for link in links(page)]
            queue += [target for target in targets if target.suffix == ".md"]
    assert set(PAGES) <= reached


@each_page
def test_code_references_exist(page: Path) -> None:
    for path, name in re.findall(r"`([\w/]+\.py)(?:::([\w.]+))?`", without_code(page)):
        file = next((base / path for base in (SOURCE, ROOT, DOCS) if (base / path).is_file()), None)
        if path == "recommenders/markov.py":  # the worked example
            continue
        assert file is not None, f"{path} does not exist"
        assert not name or name in names_in(file), f"{path} has no {name}"


def test_every_deviation_from_the_paper_has_a_row() -> None:
    in_code: Counter[str] = Counter()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                number = (ast.get_docstring(node) or "").count(DIFFERS)
                in_code[f"{file.relative_to(SOURCE)}::{getattr(node, 'name', '')}"] += number
    text = (DOCS / "paper-to-code.md").read_text().split("## Where the code differs on purpose")[1].split("\n## ")[0]
    listed = Counter(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))
    assert +in_code == listed


def test_generated_tables_are_up_to_date() -> None:
    stale = [page.name for page in DOCS.glob("*.md") if fill(page.read_text()) != page.read_text()]
    assert not stale, "run: .venv/bin/python -m docs.generate"


@pytest.mark.parametrize("kind", [Config, RunOptions])
def test_every_parameter_has_advice(kind: type[Any]) -> None:
    advice = without_generated((DOCS / "parameters.md").read_text())
    missing = [spec.name for spec in dataclasses.fields(kind) if f"`{spec.name}`" not in advice]
    assert not missing


def test_every_hyper_parameter_is_in_exactly_one_group() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(spec.name for spec in dataclasses.fields(Config))


def test_every_command_has_a_section() -> None:
    sections = re.findall(r"^## pathdex (.+)$", (DOCS / "cli.md").read_text(), re.MULTILINE)
    assert sorted(sections) == sorted(name for name, _ in commands())


@each_page
def test_command_lines_parse(page: Path) -> None:
    known = dict(commands())
    for line in typed_lines(page, "pathdex"):
        length = 2 if " ".join(line[:2]) in known else 1
        command = known[" ".join(line[:length])]
        command.make_context(command.name, line[length:])


@each_page
def test_make_targets_and_extras_exist(page: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {target for line in typed_lines(page, "make") for target in line} <= targets
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"(?:\.|pathdex)\[([\w,]+)\]", page.read_text())
    assert {extra for group in named for extra in group.split(",")} <= set(extras)


def test_every_dependency_has_a_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[^\w-]", one)[0] for one in project["dependencies"]}
    page = (DOCS / "decisions" / "dependencies.md").read_text()
    table = page.split("| package | reason |\n| --- | --- |\n")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| ([\w-]+) \|", table, re.MULTILINE)) == needed


def test_every_finding_code_is_listed() -> None:
    used = {code for file in (SOURCE / "data").glob("*.py") for code in re.findall(r'"(D\d{3})"', file.read_text())}
    assert used == set(finding_codes())


def test_every_format_is_listed() -> None:
    page = (DOCS / "data-formats.md").read_text()
    assert [name for name in FORMATS if f"| `{name}` |" not in page] == []


def test_evaluation_page_lists_every_json_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_workbench(tmp_path, monkeypatch)
    run_python(DOCS / "evaluation.md")
    written = json.loads((tmp_path / "figures.json").read_text())
    result = {*written["results"][0]}
    values = {spec.name: {} if spec.name == "kept_by_popularity" else 1 for spec in dataclasses.fields(Loss)}
    loss = {*Loss(**values).row()}  # type: ignore[arg-type]
    documented = set(table_names(DOCS / "evaluation.md", "JSON"))
    assert set(written) == {"n", "users", "results"}
    assert documented - set(ESTIMATORS) == result | loss


def test_bundle_page_lists_every_manifest_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_workbench(tmp_path, monkeypatch)
    run_python(DOCS / "bundle-format.md")
    manifest = json.loads((tmp_path / "popular.pathdex" / "manifest.json").read_text())
    text = (DOCS / "bundle-format.md").read_text().split("| key of the manifest | content |")[1].split("\n\n")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == sorted(manifest)


def test_data_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_workbench(tmp_path, monkeypatch)
    assert run_python(DOCS / "data-formats.md")["data"].num_items == 2


def test_event_source_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_workbench(tmp_path, monkeypatch)
    assert len(run_python(DOCS / "event-sources.md")["events"]) == 4


def test_filter_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_workbench(tmp_path, monkeypatch)
    names = run_python(DOCS / "filters.md")
    assert [one.id for one in names["found"]] == [1210]
    assert [one.id for one in names["forest_or_city"]] == [1210]


def test_query_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_workbench(tmp_path, monkeypatch)
    names = run_python(DOCS / "queries.md")
    assert names["state"].history.tolist() == names["model"].items.codes([260, 1196, 1210]).tolist()


def test_streaming_examples_run() -> None:
    names = run_python(DOCS / "streaming.md")
    assert "bread" not in names["model"].items
    assert names["model"].item_paths("coffee")


def test_every_page_with_examples_is_run() -> None:
    pages = (
        "bundle-format",
        "data-formats",
        "evaluation",
        "event-sources",
        "extending",
        "filters",
        "queries",
        "server",
        "streaming",
    )
    run = {"README.md", *(f"docs/{name}.md" for name in pages), *map(page_name, TUTORIALS), *map(page_name, GUIDES)}
    assert {page_name(page) for page in PAGES if code_blocks(page, "python")} == run


def test_decision_pages_have_the_same_sections() -> None:
    for page in sorted((DOCS / "decisions").glob("*.md")):
        sections = re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)
        assert page.name == "index.md" or sections == ["Context", "Decision", "Evidence", "Consequences"], page.name


def test_config_choices_match_the_registries() -> None:
    from pathdex.model.encoders import ENCODERS
    from pathdex.model.rerankers import RERANKERS
    from pathdex.model.structure import STRUCTURES

    choices = {spec.name: spec.metadata["choices"] for spec in dataclasses.fields(Config)}
    for name, registry in (("encoder", ENCODERS), ("structure", STRUCTURES), ("reranker", RERANKERS)):
        assert sorted(choices[name]) == sorted(registry)


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    """The examples of extending.md as a module, with the baseline registered."""
    module = ModuleType("worked_example")
    vars(module).update(run_python(DOCS / "extending.md"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "worked_example", module)
        patch.setitem(ESTIMATORS, "markov", "worked_example:Markov")
        yield module


def test_example_encoder_is_causal(example: ModuleType) -> None:
    import torch

    encoder = example.DecayedEncoder(4, 0.5).eval()
    vectors = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))
    changed = vectors.clone()
    changed[:, 3:] += 1
    torch.testing.assert_close(encoder(vectors)[:, :3], encoder(changed)[:, :3])
    assert not torch.allclose(encoder(vectors)[:, 3:], encoder(changed)[:, 3:])


def test_example_loss_by_hand(example: ModuleType) -> None:
    import torch

    loss = example.pairwise_loss(torch.tensor([1.0]), torch.tensor([[1.0, -torch.inf]]))
    assert loss.item() == pytest.approx(0.6931472 / 2)


def test_example_callback_keeps_the_losses(example: ModuleType) -> None:
    history = example.LossHistory()
    YouTubeDNN(embedding_dim=4, epochs=2, threads=1).fit(grouped_data(TEXT_IDS), callbacks=[history])
    assert {phase: len(losses) for phase, losses in history.losses.items()} == {"encoder": 2}


def test_example_phase_learns_the_frequencies_and_resumes_exactly(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = grouped_data(TEXT_IDS)
    monkeypatch.setattr("pathdex.training.checkpointing.CHECKPOINT_SECONDS", 0.0)  # a checkpoint after every step

    def train(callbacks: list[Callback], *, resume: bool = False) -> Any:
        phase = example.BiasPhase(data, epochs=30, batch_size=256, seed=0)
        loop = TrainingLoop([phase], callbacks, Checkpointer(tmp_path / "state", {"seed": 0}))
        if resume:
            loop.resume()
        loop.run()
        return phase.bias.detach()

    whole = train([])
    (tmp_path / "state").unlink()
    shares = data.item_counts() / data.num_interactions
    np.testing.assert_allclose(whole.softmax(dim=0).numpy(), shares, atol=0.005)
    with pytest.raises(KeyboardInterrupt):
        train([StopAfter(100)])
    assert train([], resume=True).equal(whole)


@pytest.mark.usefixtures("example")
class TestExampleBaseline(RecommenderContract):
    def make(self) -> Recommender:
        made: Recommender = sys.modules["worked_example"].Markov()
        return made
