"""Health checks of the index after every M-step. `docs/warnings.md` explains the codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pathdex.config import Config
from pathdex.training.candidate_target import first_path_size

FALL, EVENNESS, CROWD, MISS = 0.25, 0.5, 20.0, 0.2
"""Limits: share of paths lost in one M-step, entropy share of a layer, top over mean size, deviation from path size."""

FULL = 0.5
"""Share of the K^D paths that a growing catalogue may need; batch training plans for an eighth."""


def outgrown_warning(num_items: int, config: Config) -> str | None:
    """A warning if a catalogue that grows has become too large for the number of nodes."""
    assert config.num_nodes is not None
    needed = num_items * config.paths_per_item / first_path_size(config)
    if needed <= FULL * config.num_nodes**config.depth:
        return None
    return (
        f"W301: {num_items:,} items need about {needed:,.0f} paths, and num_nodes={config.num_nodes} has "
        f"{config.num_nodes**config.depth:,}; train a model on more nodes and stream --from it"
    )


def index_warnings(
    figures: Mapping[str, Any], previous: Mapping[str, Any] | None, path_size: float | None
) -> list[str]:
    """Warnings for the figures of an M-step, given the previous figures and the target path size, if any."""
    found = []
    used = figures["used_paths"]
    if previous is not None and used < (1 - FALL) * previous["used_paths"]:
        found.append(
            f"W101: the paths in use fell from {previous['used_paths']:,} to {used:,} in one M-step; "
            "raise candidate_paths or path_size, or use scoring='item'"
        )
    if figures["entropy_share"] < EVENNESS:
        found.append(
            f"W102: a layer uses its nodes unevenly (entropy {figures['entropy_share']:.2f} of log K); "
            "lower num_nodes, or train the encoder for longer"
        )
    usual = figures["item_mean_size"]
    if figures["top_size"] > CROWD * max(usual, 1.0):
        found.append(
            f"W103: the fullest path holds {figures['top_size']:,} items, the path of an average item {usual:.1f}; "
            "raise penalty_degree or lower path_size"
        )
    if path_size is not None and abs(usual - path_size) > MISS * path_size:
        remedy = "raise candidate_paths or num_nodes" if usual > path_size else "lower num_nodes or depth"
        found.append(
            f"W104: path_size={path_size:g} is missed: the path of an average item holds {usual:.1f}; {remedy}"
        )
    return found
