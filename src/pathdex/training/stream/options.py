"""How a stream is learned. Not part of the model."""

from __future__ import annotations

from dataclasses import dataclass

from pathdex.parameters import check_fields, parameter


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """Options of a stream; times are seconds of event time."""

    batch_events: int = parameter(256, "events per step", low=1)
    m_step_events: int = parameter(20_000, "events between two full M-steps; items that are seen move at once", low=1)
    replay: float = parameter(
        4.0,
        "samples per event from the kept histories of recent users, learned from again; 0: none",
        low=0.0,
        high=64.0,
    )
    replay_steps: int = parameter(1, "gradient steps that share the replayed samples of a batch", low=1, high=64)
    replay_events: int = parameter(1_000_000, "replayed users are those of the last so many events", low=1)
    replay_history: int = parameter(
        69,
        "latest items kept of a user, to replay windows of them; at least the `history_length` that the encoder reads",
        low=1,
        high=100_000,
    )
    learning_rate_scale: float = parameter(
        0.4,
        "constant learning rate of encoder and item vectors, relative to the first one of batch training",
        above=0.0,
    )
    expected_items: int = parameter(
        100_000, "items to plan the number of nodes for, if the stream starts without a model", low=1
    )
    admit_after: int = parameter(1, "an item joins the catalogue at its n-th event", low=1)
    expire_after: float | None = parameter(None, "items without an event for so long are removed", above=0.0)
    forget_users_after: float | None = parameter(None, "users without an event for so long are forgotten", above=0.0)

    def __post_init__(self) -> None:
        check_fields(self)
