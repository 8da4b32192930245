"""The function of each kind of step. Each takes the inputs of its step and returns what JSON can hold."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex import metrics
from pathdex.data.describe import describe
from pathdex.errors import IndexHealthWarning
from pathdex.evaluation.comparison import held_out_queries
from pathdex.evaluation.decomposition import decompose
from pathdex.evaluation.protocol import Method, evaluate, evaluate_method, rank_in_batches, standard_error
from pathdex.experiments.context import Context, TrainingProgress
from pathdex.experiments.plan import BASE_STEP, BEAM_STEP
from pathdex.experiments.steps import StepFunction, StepStore
from pathdex.experiments.timing import time_methods
from pathdex.progress import Progress
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.capabilities import HasIndex, require
from pathdex.recommenders.deep_retrieval import DeepRetrieval

Options = Mapping[str, Any]


class StepRunner:
    """The step functions by kind."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.request = context.request

    def __getitem__(self, kind: str) -> StepFunction:
        found: StepFunction = getattr(self, kind)
        return found

    def split(self, seed: int) -> dict[str, Any]:
        """Sizes of the split, and the popularity of the test users' truth."""
        split = self.context.split(seed)
        counts = split.train.item_counts()
        deciles = metrics.popularity_deciles(counts)
        return {
            "data": describe(self.context.data),
            "train_users": split.train.num_users,
            "train_interactions": split.train.num_interactions,
            "items": split.train.num_items,
            "valid_users": len(split.valid),
            "test_users": split.test.users.ids(np.arange(len(split.test))),
            "truth_items": len(split.test.truth.values),
            "truth_deciles": metrics.decile_shares(split.test.truth.values, deciles),
            "truth_tail": float((deciles[split.test.truth.values] >= metrics.HEAD).mean()),
            "truth_novelty": metrics.novelty(split.test.truth.values, counts),
        }

    def tune(self, trial: str, method: str, parameters: Options, seed: int, options: Options) -> dict[str, Any]:
        """Fit with some hyper-parameters and evaluate on the validation users, seen items removed."""
        model, fitted = self.context.fit(method, parameters, seed)
        self.context.keep_trial(trial, model)
        return {**fitted, "figures": self._figures(model, options, seed, "valid")[0]}

    def fit(
        self, method: str, parameters: Options, seed: int, options: Sequence[Options], trials: Sequence[str]
    ) -> dict[str, Any]:
        """Fit with the selected hyper-parameters, keep the model, and evaluate it with every set of options.

        The selected trial was fitted with the first seed and is not fitted again.
        """
        model, fitted = self._selected_model(trials, seed) or self.context.fit(
            method, {**parameters, **selected_values(self.context.store, trials)}, seed
        )
        self.context.keep(method, seed, model)
        split = self.context.split(seed)
        found = evaluate(
            [Method(method, model, one) for one in options],
            split.test,
            n=self.request.n,
            item_counts=split.train.item_counts(),
            progress=self._progress("evaluating"),
        )
        popularity = self._popularity(model, options[0], seed)
        self.context.forget_trials(trials)
        return {
            **fitted,
            "parameters": model.get_params(),
            "rows": [{**result.row(), "options": dict(result.options)} for result in found.results],
            "f_measure_by_user": [result.per_user["f_measure"].tolist() for result in found.results],
            "popularity": popularity,
            "health": model.health().to_dict() if isinstance(model, HasIndex) else None,
        }

    def curve(self, method: str, seed: int, options: Sequence[Options]) -> dict[str, Any]:
        """Accuracy along a series of query options."""
        model, progress = self.context.model(method, seed), self._progress()
        points = []
        for number, one in enumerate(options, start=1):
            points.append({"options": dict(one), **self._figures(model, one, seed)[0]})
            progress(number, len(options))
        return {"points": points}

    def time(self, seed: int, queries: int, rounds: int, methods: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """Inference time of every method with every set of options, in one run."""
        histories = self.context.split(seed).test.history
        chosen = np.random.default_rng(seed).permutation(len(histories))[:queries]
        models = {name: self.context.model(name, seed) for name in dict.fromkeys(name for name, _ in methods)}
        timings = time_methods(
            [(models[name], options) for name, options in methods],
            histories.take(np.sort(chosen)),
            self.request.n,
            rounds=rounds,
            progress=self._progress("timing"),
        )
        rows = [
            {"method": name, "options": dict(options), **timing}
            for (name, options), timing in zip(methods, timings, strict=True)
        ]
        return {"queries": len(chosen), "rounds": rounds, "rows": rows}

    def loss(self, seed: int, options: Sequence[Options]) -> dict[str, Any]:
        """The retrieval loss of Deep Retrieval."""
        model, split = self._deep_retrieval(seed), self.context.split(seed)
        return decompose(
            model,
            BruteForce(model),
            split.test,
            n=self.request.n,
            item_counts=split.train.item_counts(),
            options=options,
            progress=self._progress("evaluating"),
        ).to_dict()

    def sensitivity(self, seed: int, changes: Options) -> dict[str, Any]:
        """Deep Retrieval with another index shape or penalty, on the comparison's encoder, without neighbours.

        alpha is fixed to the comparison's value, since the paper also varies one hyper-parameter at a time. `changes`
        can multiply it (`penalty_factor`) and the number of nodes (`nodes_factor`, `nodes_power`).
        """
        base = self._deep_retrieval(seed).without_neighbours()
        config = base.config.replace(**changed_values(base, changes))
        if changes and config == base.config.replace(**changed_values(base, {})):
            return self.context.store.result(BASE_STEP)
        model = DeepRetrieval(config, seed=seed, device=self.request.device, threads=self.request.threads)
        with warnings.catch_warnings():
            # The study includes shapes that give a bad index.
            warnings.simplefilter("ignore", IndexHealthWarning)
            model.fit(
                self.context.split(seed).train,
                callbacks=[TrainingProgress(self.context.progress)],
                encoder_of=base if config.schedule == "warm" else None,
            )
        health, beam = model.health(), self.context.store.result(BEAM_STEP)["beam"]
        return {
            "nodes": model.num_nodes,
            "depth": config.depth,
            "paths_per_item": config.paths_per_item,
            "penalty": config.penalty,
            "used_paths": health.used_paths,
            "item_mean_size": health.item_mean_size,
            "top_size": health.top_size,
            **self._beam_points(model, [beam], seed)[0],
        }

    def beams(self, seed: int, beams: Sequence[int], beam: int | None) -> dict[str, Any]:
        """The comparison's Deep Retrieval, without neighbours, with every beam; and the beam of the other studies:
        `beam`, or the one whose number of candidates is closest to ten times n."""
        model = self._deep_retrieval(seed).without_neighbours()
        points = self._beam_points(model, beams, seed)
        target = 10 * self.request.n
        closest = min(points, key=lambda point: abs(math.log(max(point["candidates"], 1) / target)))
        return {"points": points, "beam": beam or closest["beam"]}

    def _deep_retrieval(self, seed: int) -> DeepRetrieval:
        return require(self.context.model(DeepRetrieval.name, seed), DeepRetrieval)

    def _progress(self, part: str = "evaluating") -> Progress:
        return partial(self.context.progress.on_step_progress, part)

    def _selected_model(self, trials: Sequence[str], seed: int) -> tuple[Recommender, dict[str, Any]] | None:
        """The model of the best trial, if it has this seed and still exists."""
        if not trials:
            return None
        best = selected_trial(self.context.store, trials)
        model = self.context.take_trial(best["step"]) if best["inputs"]["seed"] == seed else None
        return None if model is None else (model, {key: best["result"][key] for key in ("fit_seconds", "records")})

    def _beam_points(self, model: DeepRetrieval, beams: Sequence[int], seed: int) -> list[dict[str, Any]]:
        """Figures with each beam, with F by user, and with ten times n candidates (`at_budget`)."""
        equal, _ = self._figures(model, {"candidates": 10 * self.request.n}, seed)
        points = []
        for beam in beams:
            figures, f = self._figures(model, {"beam": beam}, seed)
            points.append({"beam": beam, **figures, "f_measure_by_user": f.tolist(), "at_budget": equal})
        return points

    def _figures(
        self, model: Recommender, options: Options, seed: int, on: str = "test"
    ) -> tuple[dict[str, float], NDArray[np.float64]]:
        """Precision, recall, F and candidates with standard errors, seen items removed; and F by user."""
        split, method = self.context.split(seed), Method(model.name, model, options)
        queries, counts = held_out_queries(split, on), split.train.item_counts()
        found = evaluate_method(method, queries, n=self.request.n, item_counts=counts, filter_seen=True)
        keys = ("precision", "recall", "f_measure")
        errors = {f"{key}_standard_error": standard_error(found.per_user[key]) for key in keys}
        figures = {key: found.figures[key] for key in (*keys, "candidates")}
        return {**figures, **errors}, found.per_user["f_measure"]

    def _popularity(self, model: Recommender, options: Options, seed: int) -> dict[str, Any]:
        """Popularity of the recommended items, seen items removed."""
        split = self.context.split(seed)
        counts = split.train.item_counts()
        deciles = metrics.popularity_deciles(counts)
        method = Method(model.name, model, options)
        items = rank_in_batches(method, split.test.history, self.request.n, filter_seen=True).items
        tails = metrics.tail_shares(items, deciles)
        return {
            "deciles": metrics.decile_shares(items, deciles),
            "tail": float(tails.mean()),
            "tail_by_user": tails.tolist(),
            "coverage": metrics.coverage(metrics.recommendation_counts(items, len(counts))),
            "novelty": metrics.novelty(items, counts),
        }


def selected_trial(store: StepStore, trials: Sequence[str]) -> dict[str, Any]:
    """The record of the trial with the highest F on validation data; the first of equals."""
    return max(map(store.record, trials), key=lambda record: record["result"]["figures"]["f_measure"])


def selected_values(store: StepStore, trials: Sequence[str]) -> dict[str, Any]:
    """The hyper-parameters of the selected trial; empty without trials."""
    values: dict[str, Any] = selected_trial(store, trials)["inputs"]["parameters"] if trials else {}
    return values


def changed_values(base: DeepRetrieval, changes: Options) -> dict[str, Any]:
    """The changes of a sensitivity step as hyper-parameters, relative to the base model."""
    values = dict(changes)
    nodes = base.num_nodes ** values.pop("nodes_power", 1.0) * values.pop("nodes_factor", 1.0)
    penalties = [record["penalty"] for record in base.records if "penalty" in record]
    penalty = base.config.penalty if base.config.penalty is not None or not penalties else penalties[-1]
    if penalty is not None:
        values = {"penalty": penalty * values.pop("penalty_factor", 1.0), "candidates_per_query": None, **values}
    return {"num_nodes": max(2, round(nodes)), **values}
