"""What each kind of step does. Every function takes the inputs of its step and returns what JSON can hold."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pathdex.data.describe import describe
from pathdex.data.splits import Queries
from pathdex.errors import IndexHealthWarning
from pathdex.evaluation import metrics
from pathdex.evaluation.decomposition import decompose
from pathdex.evaluation.popularity_bias import HEAD, decile_shares, novelty, popularity_deciles, tail_shares
from pathdex.evaluation.protocol import Method, Result, evaluate, rank_in_batches
from pathdex.experiments.context import Context
from pathdex.experiments.plan import BASE, WIDTHS
from pathdex.experiments.steps import Store, Work
from pathdex.experiments.timing import time_methods
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.capabilities import HasIndex, require
from pathdex.recommenders.deep_retrieval import DeepRetrieval

BATCH = 1024
Options = Mapping[str, Any]


class StepRunner:
    """The work of each kind, by name."""

    def __init__(self, workshop: Context) -> None:
        self.workshop = workshop
        self.request = workshop.request

    def __getitem__(self, kind: str) -> Work:
        found: Work = getattr(self, kind)
        return found

    def split(self, seed: int) -> dict[str, Any]:
        """Count what is trained on and what is asked, and look at the popularity of what the test users took."""
        split = self.workshop.split(seed)
        counts = split.train.item_counts()
        deciles = popularity_deciles(counts)
        return {
            "data": describe(self.workshop.data),
            "train_users": split.train.num_users,
            "train_interactions": split.train.num_interactions,
            "items": split.train.num_items,
            "valid_users": len(split.valid),
            "test_users": split.test.users.ids(np.arange(len(split.test))),
            "truth_items": len(split.test.truth.values),
            "truth_deciles": decile_shares(split.test.truth.values, deciles),
            "truth_tail": float((deciles[split.test.truth.values] >= HEAD).mean()),
            "truth_novelty": novelty(split.test.truth.values, counts),
        }

    def tune(self, trial: str, method: str, parameters: Options, seed: int, options: Options) -> dict[str, Any]:
        """Fit with some hyper-parameters and ask the validation users, seen items removed."""
        model, fitted = self.workshop.fit(method, parameters, seed)
        self.workshop.keep_trial(trial, model)
        return {**fitted, "figures": self._means(model, self.workshop.split(seed).valid, options)}

    def fit(
        self, method: str, parameters: Options, seed: int, options: Sequence[Options], tuned: Sequence[str]
    ) -> dict[str, Any]:
        """Fit with the chosen hyper-parameters, keep the model, and ask the test users in every way.

        The chosen trial was fitted with the first seed, so it is not fitted again.
        """
        model, fitted = self._chosen_trial(tuned, seed) or self.workshop.fit(
            method, {**parameters, **chosen_values(self.workshop.store, tuned)}, seed
        )
        self.workshop.keep(method, seed, model)
        split = self.workshop.split(seed)
        methods = [Method(method, model, one) for one in options]
        found = evaluate(
            methods,
            split.test,
            n=self.request.n,
            item_counts=split.train.item_counts(),
            batch=BATCH,
            progress=lambda _, done, total: self.workshop.watcher.advanced("answering", done, total),
        )
        popularity = self._popularity(model, options[0], seed)
        self.workshop.forget_trials(tuned)
        return {
            **fitted,
            "parameters": model.get_params(),
            "rows": [_row(result) for result in found.results],
            "f_measure_by_user": [result.per_user["f_measure"].tolist() for result in found.results],
            "popularity": popularity,
            "health": model.health().to_dict() if isinstance(model, HasIndex) else None,
        }

    def curve(self, method: str, seed: int, options: Sequence[Options]) -> dict[str, Any]:
        """Accuracy along the width of the search."""
        model, queries = self.workshop.model(method, seed), self.workshop.split(seed).test
        points = []
        for number, one in enumerate(options):
            points.append({"options": dict(one), **self._means(model, queries, one)})
            self.workshop.watcher.advanced("answering", number + 1, len(options))
        return {"points": points}

    def time(self, seed: int, queries: int, rounds: int, asked: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """Inference time of every method with every option, in one run."""
        histories = self.workshop.split(seed).test.history
        chosen = np.random.default_rng(seed).permutation(len(histories))[:queries]
        models = {name: self.workshop.model(name, seed) for name in dict.fromkeys(name for name, _ in asked)}
        timings = time_methods(
            [(models[name], options) for name, options in asked],
            histories.take(np.sort(chosen)),
            self.request.n,
            rounds=rounds,
            advanced=lambda done, total: self.workshop.watcher.advanced("timing", done, total),
        )
        rows = [
            {"method": name, "options": dict(options), **timing.to_dict()}
            for (name, options), timing in zip(asked, timings, strict=True)
        ]
        return {"queries": len(chosen), "rounds": rounds, "rows": rows}

    def loss(self, seed: int, options: Sequence[Options]) -> dict[str, Any]:
        """What brute force finds, what of it the paths lead to, what the final score keeps."""
        model, split = self._deep_retrieval(seed), self.workshop.split(seed)
        return decompose(
            model,
            BruteForce(model),
            split.test,
            n=self.request.n,
            item_counts=split.train.item_counts(),
            settings=options,
            batch=BATCH,
            progress=lambda _, done, total: self.workshop.watcher.advanced("taking apart", done, total),
        ).to_dict()

    def sensitivity(self, seed: int, changes: Options) -> dict[str, Any]:
        """Deep Retrieval with an index of another shape or penalty, on the comparison's encoder, without neighbours.

        alpha is held at what the comparison's model found, as the paper holds all others when it varies one; `changes`
        may multiply it (`penalty_factor`) and the number of nodes (`nodes_factor`, `nodes_power`).
        """
        base = self._deep_retrieval(seed).without_neighbours()
        config = base.config.replace(**shape(base, changes))
        if changes and config == base.config.replace(**shape(base, {})):
            return self.workshop.store.result(BASE)
        model = DeepRetrieval(config, seed=seed, device=self.request.device, threads=self.request.threads)
        train = self.workshop.split(seed).train
        shared = base if config.schedule == "warm" else None
        with warnings.catch_warnings():
            # Shapes that make a bad index are part of the study.
            warnings.simplefilter("ignore", IndexHealthWarning)
            model.fit(train, callbacks=[self.workshop.listener()], encoder_of=shared)
        health, beam = model.health(), self.workshop.store.result(WIDTHS)["beam"]
        return {
            "nodes": model.num_nodes,
            "depth": config.depth,
            "paths_per_item": config.paths_per_item,
            "penalty": config.penalty,
            "used_paths": health.used_paths,
            "item_mean_size": health.item_mean_size,
            "top_size": health.top_size,
            **self._widths(model, [beam], seed)[0],
        }

    def beams(self, seed: int, beams: Sequence[int], own: int | None) -> dict[str, Any]:
        """The comparison's Deep Retrieval, without neighbours, with every beam, and the beam for the study of the other
        hyper-parameters: `own`, or the one whose number of candidates is nearest to ten times n."""
        model = self._deep_retrieval(seed).without_neighbours()
        points = self._widths(model, beams, seed)
        wanted = 10 * self.request.n
        nearest = min(points, key=lambda point: abs(math.log(max(point["candidates"], 1) / wanted)))
        return {"points": points, "beam": own or nearest["beam"]}

    def _deep_retrieval(self, seed: int) -> DeepRetrieval:
        return require(self.workshop.model(DeepRetrieval.name, seed), DeepRetrieval)

    def _chosen_trial(self, trials: Sequence[str], seed: int) -> tuple[Recommender, dict[str, Any]] | None:
        """The model of the best trial, if it had this seed and is still there."""
        if not trials:
            return None
        best = chosen_trial(self.workshop.store, trials)
        model = self.workshop.take_trial(best["step"]) if best["inputs"]["seed"] == seed else None
        return None if model is None else (model, {key: best["result"][key] for key in ("fit_seconds", "records")})

    def _widths(self, model: DeepRetrieval, beams: Sequence[int], seed: int) -> list[dict[str, Any]]:
        """Figures with each beam, and beside them those of an equal budget of ten times n; F also by user."""
        queries = self.workshop.split(seed).test
        budget = self._means(model, queries, {"candidates": 10 * self.request.n})
        return [{"beam": beam, **self._figures(model, queries, {"beam": beam}), "at_budget": budget} for beam in beams]

    def _means(self, model: Recommender, queries: Queries, options: Options) -> dict[str, Any]:
        figures = self._figures(model, queries, options)
        figures.pop("f_measure_by_user")
        return figures

    def _figures(self, model: Recommender, queries: Queries, options: Options) -> dict[str, Any]:
        """Precision, recall, F and candidates with seen items removed."""
        ranking = rank_in_batches(
            model, queries.history, self.request.n, filter_seen=True, batch=BATCH, options=options
        )
        hits = metrics.hit_matrix(ranking.items, queries.truth)
        precision, recall = metrics.precision(hits), metrics.recall(hits, queries.truth)
        f = metrics.f_measure(precision, recall)
        return {
            "precision": float(precision.mean()),
            "recall": float(recall.mean()),
            "f_measure": float(f.mean()),
            "f_measure_by_user": f.tolist(),
            "candidates": float(ranking.candidates.mean()),
        }

    def _popularity(self, model: Recommender, options: Options, seed: int) -> dict[str, Any]:
        """Where the recommended items stand in the catalogue, seen items removed."""
        split = self.workshop.split(seed)
        counts = split.train.item_counts()
        deciles = popularity_deciles(counts)
        items = rank_in_batches(
            model, split.test.history, self.request.n, filter_seen=True, batch=BATCH, options=options
        ).items
        tails = tail_shares(items, deciles)
        return {
            "deciles": decile_shares(items, deciles),
            "tail": float(tails.mean()),
            "tail_by_user": tails.tolist(),
            "coverage": metrics.coverage(metrics.recommendation_counts(items, len(counts))),
            "novelty": novelty(items, counts),
        }


def chosen_trial(store: Store, trials: Sequence[str]) -> dict[str, Any]:
    """The record of the trial with the highest F on the validation users; the first of equals."""
    return max(map(store.record, trials), key=lambda record: record["result"]["figures"]["f_measure"])


def chosen_values(store: Store, trials: Sequence[str]) -> dict[str, Any]:
    """The hyper-parameters of the chosen trial; none where nothing was tuned."""
    values: dict[str, Any] = chosen_trial(store, trials)["inputs"]["parameters"] if trials else {}
    return values


def shape(base: DeepRetrieval, changes: Options) -> dict[str, Any]:
    """The changes of a sensitivity step as hyper-parameters, given the model that they start from."""
    values = dict(changes)
    nodes = base.num_nodes ** values.pop("nodes_power", 1.0) * values.pop("nodes_factor", 1.0)
    penalties = [record["penalty"] for record in base.records if "penalty" in record]
    penalty = base.config.penalty if base.config.penalty is not None or not penalties else penalties[-1]
    if penalty is not None:
        values = {"penalty": penalty * values.pop("penalty_factor", 1.0), "candidates_per_query": None, **values}
    return {"num_nodes": max(2, round(nodes)), **values}


def _row(result: Result) -> dict[str, Any]:
    return {**result.row(), "options": dict(result.options)}
