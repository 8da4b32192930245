"""Answer the calls of a router with a shard; no HTTP here. Every function is thread-safe."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from pathdex.data.vocabulary import UNKNOWN
from pathdex.errors import QueryError
from pathdex.index.paths import decode_paths
from pathdex.index.postings import NO_PATH
from pathdex.kernels.types import Ints, Mask
from pathdex.recommenders.shard import DeepRetrievalShard
from pathdex.retrieval.part_search import PartQuery, find_part
from pathdex.retrieval.similar import cosines, items_under
from pathdex.server.errors import detail_of, from_library
from pathdex.server.examples import PLACEHOLDERS
from pathdex.server.shard_messages import (
    DescribeAnswer,
    DescribeCall,
    FindAnswer,
    FindCall,
    FindQuery,
    FoundItems,
    ItemAnswer,
    ItemCall,
    NearAnswer,
    NearCall,
    OnPathAnswer,
    OnPathCall,
    ResolveAnswer,
    ResolveCall,
    ResolvedQuery,
    ResolveQuery,
    SharedParts,
    Tensor,
    floats,
    ints,
    longs,
    to_bytes,
)


def shared_parts(shard: DeepRetrievalShard, columns: tuple[str, ...]) -> SharedParts:
    ids = shard.items.first_ids(len(PLACEHOLDERS))
    codes = shard.paths[shard.items.codes(ids[:1])].ravel()
    used, postings = codes[codes != NO_PATH][:1], shard.postings
    return SharedParts(
        asdict(shard.facts),
        shard.config.to_dict(),
        shard.items.kind,
        list(columns),
        {name: Tensor.pack(np.asarray(weight)) for name, weight in shard.model_state.weights.items()},
        Tensor.pack(shard.postings.paths),
        Tensor.pack(shard.path_sizes),
        ids,
        decode_paths(used, postings.num_nodes, postings.depth).ravel().tolist(),
    )


def resolve(shard: DeepRetrievalShard, call: ResolveCall) -> ResolveAnswer:
    return ResolveAnswer([_resolve(shard, query) for query in call.queries])


def _resolve(shard: DeepRetrievalShard, query: ResolveQuery) -> ResolvedQuery:
    codes = shard.items.codes(query.history) if query.history else np.empty(0, np.int64)
    places = np.flatnonzero(codes != UNKNOWN)
    codes = codes[places]
    distinct = np.unique(codes[-shard.config.history_length :])
    rows = shard.retriever.table[distinct, : shard.config.embedding_dim]
    answer = ResolvedQuery(
        to_bytes(places, "int32"), to_bytes(codes, "int32"), to_bytes(distinct, "int32"), rows.tobytes()
    )
    if shard.facts.neighbours and len(distinct):
        near = shard.near
        spans = [slice(near.offsets[code], near.offsets[code + 1]) for code in distinct]
        answer.lengths = to_bytes(near.offsets[distinct + 1] - near.offsets[distinct], "int32")
        answer.near = b"".join(near.items[span].tobytes() for span in spans)
        answer.similarities = b"".join(near.similarities[span].tobytes() for span in spans)
    try:
        mask = eligible(shard, query.allow, query.where)
    except QueryError as error:
        answer.problem = detail_of(from_library(error))
    else:
        if mask is not None:
            answer.eligible = int(np.count_nonzero(mask))
    return answer


def eligible(shard: DeepRetrievalShard, allow: list[str | int] | None, where: dict[str, object] | None) -> Mask | None:
    """The items of the shard that pass the filters; None if there are no filters."""
    mask = shard.where_mask(where)
    if allow is None:
        return mask
    codes = shard.items.codes(allow)
    allowed = np.zeros(len(shard.items), np.bool_)
    allowed[codes[codes != UNKNOWN]] = True
    return allowed if mask is None else allowed & mask


def find(shard: DeepRetrievalShard, call: FindCall) -> FindAnswer:
    return FindAnswer([_find(shard, query) for query in call.queries])


def _find(shard: DeepRetrievalShard, query: FindQuery) -> FoundItems:
    exclude = ints(query.exclude)
    if query.deny:
        denied = shard.items.codes(query.deny)
        exclude = np.concatenate([exclude, denied[denied != UNKNOWN]])
    retriever = shard.retriever
    part = find_part(
        retriever,
        retriever.weights,
        PartQuery(
            floats(query.user),
            ints(query.positions),
            floats(query.log_p),
            exclude,
            eligible(shard, query.allow, query.where),
            ints(query.similar),
            floats(query.similarity),
            query.n,
            query.candidates,
            query.reserved,
            shard.facts.neighbours,
            query.listed,
        ),
    )
    return FoundItems(
        shard.facts.whole(part.items).tobytes(),
        shard.items.ids(part.items),
        part.log_probability.tobytes(),
        part.similarity.tobytes(),
        part.base.tobytes(),
        part.total,
        part.least if part.total else None,
    )


def describe(shard: DeepRetrievalShard, call: DescribeCall) -> DescribeAnswer:
    ids, details = shard.items.ids(call.codes), shard.details
    if details is None:
        return DescribeAnswer([None] * len(ids), [None] * len(ids))
    return DescribeAnswer([details.title(one) for one in ids], [details.details(one) or None for one in ids])


def item(shard: DeepRetrievalShard, call: ItemCall) -> ItemAnswer:
    code = shard.items.code(call.id)
    if code == UNKNOWN:
        return ItemAnswer()
    id, paths = shard.items.id(code), shard.paths[code]
    [whole] = shard.facts.whole(np.array([code])).tolist()
    answer = ItemAnswer(
        whole, id, to_bytes(paths[paths != NO_PATH], "int64"), shard.retriever.item_vectors[code].tobytes()
    )
    if shard.details is not None:
        answer.title, answer.details = shard.details.title(id), shard.details.details(id) or None
    return answer


def near(shard: DeepRetrievalShard, call: NearCall) -> NearAnswer:
    others = items_under(shard.postings, longs(call.paths), call.depth)
    own: Ints = shard.facts.own(np.array([call.item]))
    others = others[~np.isin(others, own)]
    found = cosines(shard.retriever, floats(call.vector), others)
    best = np.lexsort((others, -found))[: call.n]
    chosen = others[best]
    return NearAnswer(
        len(others), shard.facts.whole(chosen).tobytes(), shard.items.ids(chosen), to_bytes(found[best], "float32")
    )


def on_path(shard: DeepRetrievalShard, call: OnPathCall) -> OnPathAnswer:
    codes = shard.postings.items_on(call.path)
    ids, details = shard.items.ids(codes), shard.details
    titles = [None if details is None else details.title(one) for one in ids]
    return OnPathAnswer(shard.facts.whole(codes).tolist(), ids, titles)
