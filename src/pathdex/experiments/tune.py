"""Tuning Deep Retrieval on validation users with Optuna (extra `tune`): trials that can be stopped and resumed.

FOLDER/study.sqlite   all trials, an Optuna study; `optuna-dashboard` opens it
FOLDER/best.toml      the best hyper-parameters so far, for `pathdex train --config`
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pathdex.config import Config, RunOptions
from pathdex.data.splits import Queries, Split
from pathdex.errors import AccuracyWarning, ConfigError, DataError, IndexHealthWarning, PathdexError, Problem, RunError
from pathdex.experiments.search_space import SearchSpace, describe_axis, holds, make_space, suggest
from pathdex.experiments.study_checks import check_best, check_values, readable_study
from pathdex.experiments.trials import DEFAULT_TRIALS, FAILED, FINISHED, PRUNED, TuneProgress, TuneResult, TuneTrial
from pathdex.recommenders.arguments import check_positive
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.retrieval.filters import Filters
from pathdex.storage.atomic import atomic_write
from pathdex.storage.folder_lock import folder_lock
from pathdex.system import OPTUNA
from pathdex.training.callbacks import Callback
from pathdex.training.held_out import f_measures

if TYPE_CHECKING:
    import optuna

STUDY, BEST = "study.sqlite", "best.toml"
IDENTITY = "pathdex"
STARTUP_TRIALS = 5
"""So many trials are drawn at random, and none is pruned before so many are finished."""
CANDIDATES = 10
"""Items scored per recommended item."""


def tune(
    split: Split,
    folder: str | Path,
    *,
    search: Sequence[str] | Mapping[str, Any] | None = None,
    trials: int = DEFAULT_TRIALS,
    minutes: float | None = None,
    n: int = 10,
    parameters: Mapping[str, Any] | None = None,
    options: RunOptions | None = None,
    identity: Mapping[str, Any] | None = None,
    progress: TuneProgress | None = None,
) -> TuneResult:
    """Search for hyper-parameters of Deep Retrieval with the highest F@n on `split.valid`; test users are not used.

    The first trial has the defaults. `trials` counts those of earlier calls with the same folder, which are not
    repeated; no trial begins after `minutes`. Trials whose encoder is worse on the validation users than the median of
    the earlier ones at the same epoch are pruned. `search` is described at `make_space`; `parameters` are fixed.
    `identity` is checked when a study is resumed, as the data and the search space are.
    """
    OPTUNA.require()
    fixed = dict(parameters or {})
    Config.from_dict(fixed)
    space, options = make_space(search, fixed), options or RunOptions()
    check_limits(n, trials, minutes)
    if not len(split.valid):
        rule = "the split has no validation users, so there is nothing to compare trials on"
        raise DataError(Problem(rule, remedy="hold some out with valid_users (--valid-users)"))
    data = [split.train.num_users, split.train.num_items, split.train.num_interactions, len(split.valid)]
    described = {name: describe_axis(axis) for name, axis in space.items()}
    facts = {"search": described, "fixed": fixed, "n": n, "seed": options.seed, "data": data, **(identity or {})}
    with folder_lock(Path(folder), "pathdex tune"), readable_study(Path(folder) / STUDY):
        with readable_study(Path(folder) / STUDY, opening=True):
            study = _open_study(Path(folder), facts, space)
        runner = _Runner(study, Path(folder), split, space, fixed, options, n, progress or TuneProgress())
        return runner.run(trials, math.inf if minutes is None else time.monotonic() + 60 * minutes)


def check_limits(n: int, trials: int, minutes: float | None) -> None:
    """`ConfigError` for a number of items, trials or minutes that is not positive."""
    check_positive("n", n, "ask for one item or more")
    check_positive("trials", trials, "run one trial or more")
    if minutes is not None and not minutes > 0:
        raise ConfigError([Problem("must be greater than 0", "minutes", minutes, "leave it out for no limit")])


class _Runner:
    def __init__(
        self,
        study: optuna.Study,
        folder: Path,
        split: Split,
        space: SearchSpace,
        fixed: dict[str, Any],
        options: RunOptions,
        n: int,
        progress: TuneProgress,
    ) -> None:
        self.study, self.folder, self.split, self.space, self.fixed = study, folder, split, space, fixed
        self.options, self.n, self.progress = options, n, progress

    def run(self, trials: int, deadline: float) -> TuneResult:
        result = self._result()
        self.progress.on_begin(len(result.trials), trials)
        while len(result.trials) < trials and time.monotonic() < deadline:
            self._run_trial()
            result = self._result()
            best = result.best if any(one.state == FINISHED for one in result.trials) else None
            if best is not None:
                self._write(result)
            self.progress.on_trial_end(result.trials[-1], best)
        return result

    def _run_trial(self) -> None:
        from optuna.trial import TrialState

        trial = self.study.ask()
        values = suggest(trial, self.space)
        self.progress.on_trial_begin(len(self._result().trials), values)
        try:
            f_measure = self._fit({**self.fixed, **values}, trial)
        except _PrunedError:
            self.study.tell(trial, state=TrialState.PRUNED)
        except (PathdexError, MemoryError) as error:
            trial.set_user_attr("error", str(error))
            self.study.tell(trial, state=TrialState.FAIL)
        else:
            self.study.tell(trial, f_measure)

    def _fit(self, parameters: Mapping[str, Any], trial: optuna.Trial) -> float:
        model = DeepRetrieval(Config.from_dict(parameters), **vars(self.options))
        callback = _Pruning(trial, self.progress)
        with warnings.catch_warnings():
            # Poor trials are to be expected; `train` warns if the best one is poor.
            warnings.simplefilter("ignore", AccuracyWarning)
            warnings.simplefilter("ignore", IndexHealthWarning)
            model.fit(self.split.train, validation=self.split.valid, callbacks=[callback])
        return mean_f_measure(model, self.split.valid, self.n)

    def _result(self) -> TuneResult:
        return TuneResult(tuple(_trials(self.study)), self.fixed, self.folder / BEST)

    def _write(self, result: TuneResult) -> None:
        best = result.best
        lines = [
            f"# Trial {best.number}: F@{self.n} {best.f_measure:.4f} on {len(self.split.valid):,} validation users.",
            *(f"{name} = {toml_value(value)}" for name, value in {**self.fixed, **best.parameters}.items()),
        ]
        with atomic_write(self.folder / BEST) as stream:
            stream.write(("\n".join(lines) + "\n").encode())


class _PrunedError(Exception):
    """The trial is not promising."""


class _Pruning(Callback):
    """Reports the validation figure of every encoder epoch, and ends the training if the study prunes it."""

    def __init__(self, trial: optuna.Trial, progress: TuneProgress) -> None:
        self.trial, self.progress = trial, progress

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        self.progress.on_epoch(record)
        if "held_out_f" in record:
            self.trial.report(record["held_out_f"], record["number"])
            if self.trial.should_prune():
                raise _PrunedError


def mean_f_measure(model: DeepRetrieval, queries: Queries, n: int) -> float:
    """Mean F@n with seen items removed, of `CANDIDATES` scored items per recommended one."""
    found = model.rank(queries.history, n, Filters(exclude=queries.history), candidates=CANDIDATES * n)
    return float(f_measures(found.items, queries, (n,)).mean())


def toml_value(value: Any) -> str:
    """A number, a text or a truth value as TOML writes it."""
    return json.dumps(value)


def _open_study(folder: Path, facts: Mapping[str, Any], space: SearchSpace) -> optuna.Study:
    """The study of a folder, new or resumed. A trial that was interrupted is run again."""
    import optuna
    from optuna.trial import TrialState

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    file, facts = folder / STUDY, json.loads(json.dumps(facts))
    check_best(folder / BEST, file.exists())
    storage = optuna.storages.RDBStorage(f"sqlite:///{file.resolve()}")
    study = optuna.create_study(storage=storage, study_name=IDENTITY, direction="maximize", load_if_exists=True)
    known = study.user_attrs.get(IDENTITY)
    check_best(folder / BEST, bool(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))))
    if known is None:
        study.set_user_attr(IDENTITY, facts)
    elif known != facts:
        differing = [
            f"{name}={facts.get(name)!r}, but the study has {known.get(name)!r}"
            for name in sorted({*known, *facts})
            if known.get(name) != facts.get(name)
        ]
        raise RunError(
            f"{folder} cannot be resumed with other options: {'; '.join(differing)}; "
            "use the same options or a new folder (only --trials and --minutes can change)"
        )
    done = len(_trials(study))
    check_values(file, study)
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        study.tell(trial.number, state=TrialState.FAIL)
        if trial.params:
            study.enqueue_trial(trial.params)
    if not study.trials:
        study.enqueue_trial(_defaults(space))
    # A resumed study must not draw the same values again.
    study.sampler = optuna.samplers.TPESampler(seed=facts["seed"] + done, n_startup_trials=STARTUP_TRIALS)
    study.pruner = optuna.pruners.MedianPruner(n_startup_trials=STARTUP_TRIALS, n_warmup_steps=1)
    return study


def _defaults(space: SearchSpace) -> dict[str, Any]:
    config = Config()
    return {name: getattr(config, name) for name, axis in space.items() if holds(axis, getattr(config, name))}


def _trials(study: optuna.Study) -> list[TuneTrial]:
    """The trials that count: finished, pruned and failed by themselves."""
    from optuna.trial import TrialState

    names = {TrialState.COMPLETE: FINISHED, TrialState.PRUNED: PRUNED, TrialState.FAIL: FAILED}
    return [
        TuneTrial(
            number,
            names[trial.state],
            trial.params,
            trial.value if trial.state == TrialState.COMPLETE else None,
            0.0 if trial.duration is None else trial.duration.total_seconds(),
            trial.user_attrs.get("error"),
        )
        for number, trial in enumerate(
            one
            for one in study.get_trials(deepcopy=False)
            if one.state in names and (one.state != TrialState.FAIL or "error" in one.user_attrs)
        )
    ]
