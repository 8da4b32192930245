"""The declared shapes are those of the torch modules."""

from __future__ import annotations

import pytest

from pathdex.config import Config
from pathdex.model.encoders import ENCODERS
from pathdex.model.network import ITEM_ROWS, Network
from pathdex.model.structure import STRUCTURES
from pathdex.recommenders import weight_specs
from pathdex.recommenders.weight_specs import ENCODER_SHAPES, STRUCTURE_SHAPES, network_specs, row_width

SIZES = {"embedding_dim": 6, "num_nodes": 5, "structure_hidden": 7, "node_dim": 3}


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("shared", [True, False])
def test_every_weight_has_its_shape(encoder: str, structure: str, depth: int, shared: bool) -> None:
    config = Config(encoder=encoder, structure=structure, depth=depth, shared_items=shared, **SIZES)  # type: ignore[arg-type]
    weights = Network(config, 4, config).export()
    rows = weights.pop(ITEM_ROWS)
    specs = network_specs(config, config)
    assert {name: spec.shape for name, spec in specs.items()} == {name: one.shape for name, one in weights.items()}
    assert all(spec.dtype == "float32" for spec in specs.values())
    assert rows.shape == (4, row_width(config))


def test_all_encoders_and_structures_are_declared() -> None:
    assert ENCODER_SHAPES.keys() == ENCODERS.keys()
    assert STRUCTURE_SHAPES.keys() == STRUCTURES.keys()


def test_an_encoder_without_an_entry_has_the_shapes_of_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(**SIZES)  # type: ignore[arg-type]
    declared = network_specs(config)
    monkeypatch.setattr(weight_specs, "ENCODER_SHAPES", {})
    assert network_specs(config) == declared
