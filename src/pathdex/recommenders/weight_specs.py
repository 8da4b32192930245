"""The weights of encoders and structure models by name, as rules for bundles; no torch is needed to check them."""

from __future__ import annotations

from collections.abc import Callable

from pathdex.config import Config, EncoderConfig
from pathdex.storage.array_spec import ArraySpec, weight_spec

WEIGHT_LIMIT = 1e4
"""Weights must not exceed this: below it, no sum over the layers of a network overflows 32-bit floats."""
Shapes = dict[str, tuple[int, ...]]


def network_specs(config: EncoderConfig, index: Config | None = None) -> dict[str, ArraySpec]:
    """The weights of a network except its item table; with `index`, also of the structure model."""
    dim = config.embedding_dim
    known = ENCODER_SHAPES.get(config.encoder)
    shapes = {"start": (dim,), **_under("encoder", _torch_shapes(config) if known is None else known(dim))}
    if index is not None:
        shapes |= _under("structure", STRUCTURE_SHAPES[index.structure](index))
    return {name: weight_spec(*shape, limit=WEIGHT_LIMIT) for name, shape in shapes.items()}


def row_width(config: EncoderConfig) -> int:
    """The width of the item table: input vector, output vector and bias."""
    return (config.embedding_dim if config.shared_items else 2 * config.embedding_dim) + 1


def _gru(dim: int) -> Shapes:
    gates = 3 * dim
    return {
        "recurrent.weight_ih_l0": (gates, dim),
        "recurrent.weight_hh_l0": (gates, dim),
        "recurrent.bias_ih_l0": (gates,),
        "recurrent.bias_hh_l0": (gates,),
        **_linear("project", dim, dim),
        "last.weight": (dim, dim),
        "mean.weight": (dim, dim),
    }


def _pooled(dim: int) -> Shapes:
    return {
        **_linear("network.0", 2 * dim, 2 * dim),
        **_linear("network.2", dim, 2 * dim),
        "last.weight": (dim, dim),
        "mean.weight": (dim, dim),
    }


def _attention(dim: int) -> Shapes:
    shapes: Shapes = {"norm.weight": (dim,), "norm.bias": (dim,), "last.weight": (dim, dim)}
    for block in ("blocks.0", "blocks.1"):
        shapes |= {f"{block}.norm.weight": (dim,), f"{block}.norm.bias": (dim,)}
        shapes |= {f"{block}.forward_network.0.weight": (dim,), f"{block}.forward_network.0.bias": (dim,)}
        shapes |= _linear(f"{block}.query_key_value", 3 * dim, dim)
        shapes |= _linear(f"{block}.merge", dim, dim)
        shapes |= _linear(f"{block}.forward_network.1", 2 * dim, dim)
        shapes |= _linear(f"{block}.forward_network.4", dim, 2 * dim)
    return shapes


def _mlp(config: Config) -> Shapes:
    depth, hidden = config.depth, config.structure_hidden
    shapes = {**_layers(config), **_linear("user", depth * hidden, config.embedding_dim)}
    later = {f"inputs.{layer}.weight": (depth - 1 - layer) * hidden for layer in range(depth - 1)}
    return {**shapes, **{name: (size, config.node_dim) for name, size in later.items()}}


def _recurrent(config: Config) -> Shapes:
    hidden, gates = config.structure_hidden, 3 * config.structure_hidden
    return {
        **_layers(config),
        **_linear("user", hidden, config.embedding_dim),
        "cell.weight_ih": (gates, config.node_dim),
        "cell.weight_hh": (gates, hidden),
        "cell.bias_ih": (gates,),
        "cell.bias_hh": (gates,),
    }


def _layers(config: Config) -> Shapes:
    assert config.num_nodes is not None
    nodes = {f"nodes.{layer}": (config.num_nodes, config.node_dim) for layer in range(config.depth - 1)}
    outputs = [_linear(f"outputs.{layer}", config.num_nodes, config.structure_hidden) for layer in range(config.depth)]
    return {**nodes, **{name: shape for one in outputs for name, shape in one.items()}}


ENCODER_SHAPES: dict[str, Callable[[int], Shapes]] = {"gru": _gru, "pooled": _pooled, "attention": _attention}
"""An encoder without an entry has the shapes of its torch module."""
STRUCTURE_SHAPES: dict[str, Callable[[Config], Shapes]] = {"mlp": _mlp, "recurrent": _recurrent}


def _linear(name: str, out: int, into: int) -> Shapes:
    return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}


def _under(prefix: str, shapes: Shapes) -> Shapes:
    return {f"{prefix}.{name}": shape for name, shape in shapes.items()}


def _torch_shapes(config: EncoderConfig) -> Shapes:
    import torch

    from pathdex.model.encoders import ENCODERS

    with torch.device("meta"):  # Without memory, whatever the configuration says.
        encoder = ENCODERS[config.encoder](config.embedding_dim, config.dropout)
    return {name: tuple(weight.shape) for name, weight in encoder.state_dict().items()}
