from pathlib import Path
from typing import ClassVar

import pytest

from pathdex.recommenders import precompile
from pathdex.recommenders.precompile import QueryCompiler, is_compiled, main, small_model


def test_the_small_model_answers() -> None:
    model = small_model()
    assert len(model.recommend([0], 5)) == 5


def test_a_compilation_leaves_the_query_code_in_the_cache() -> None:
    main()
    assert is_compiled()


class _Process:
    """Records how it was started, and whether it was waited for."""

    started: ClassVar[list[list[str]]] = []
    waited = False

    def __init__(self, command: list[str], **_: object) -> None:
        self.started.append(command)

    def wait(self) -> None:
        type(self).waited = True


@pytest.mark.parametrize(
    ("cores", "compiled", "starts"), [(1, False, False), (2, False, True), (2, True, False), (None, False, False)]
)
def test_a_process_starts_if_it_saves_time(
    cores: int | None, compiled: bool, starts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Process, "started", [])
    monkeypatch.setattr(_Process, "waited", False)
    monkeypatch.setattr(precompile.subprocess, "Popen", _Process)
    monkeypatch.setattr(precompile.os, "cpu_count", lambda: cores)
    monkeypatch.setattr(precompile, "is_compiled", lambda: compiled)
    QueryCompiler().wait()
    assert [command[1:] for command in _Process.started] == [["-m", "pathdex.recommenders.precompile"]] * starts
    assert _Process.waited == starts


def test_without_a_cache_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Stats:
        cache_path: str | None = None

    class Dispatcher:
        stats = Stats()

    monkeypatch.setattr(precompile, "answer_queries", Dispatcher())
    assert not is_compiled()
    Dispatcher.stats.cache_path = str(tmp_path)
    assert not is_compiled()
    (tmp_path / "query.answer_queries-92.py311.nbi").touch()
    assert is_compiled()
