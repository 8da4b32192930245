"""What the coverage-guided fuzzer calls: each target takes bytes and raises only if the library breaks a promise.

An input is refused with a `PathdexError` or a status from 400 to 499, or it is accepted and the answer is valid.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Check = Callable[[bytes], None]


class BrokenPromiseError(Exception):
    """An accepted input with a wrong answer, or a response that the OpenAPI document does not describe."""


@dataclass(frozen=True)
class Target:
    """A way into the library for data of others."""

    prepare: Callable[[Path], Check]
    """Builds what the check needs in an empty folder, and returns the check."""
    seeds: Callable[[], list[bytes]]
    """Valid inputs to start from."""
    instrument: tuple[str, ...]
    """Modules whose branches guide the fuzzer. Compiled kernels cannot be instrumented."""
    max_bytes: int = 4096


def choose(data: bytes, number: int) -> tuple[int, bytes]:
    """The first byte chooses one of `number` variants; the rest is the input."""
    return (data[0] % number, data[1:]) if data else (0, b"")


def prepare_manifest(folder: Path) -> Check:
    import pathdex
    from pathdex.errors import PathdexError
    from pathdex.storage.array_folder import DIGEST, MANIFEST, manifest_checksum

    bundles = [Path(shutil.copytree(one, folder / one.name)) for one in _golden()]

    def check(data: bytes) -> None:
        variant, text = choose(data, 2 * len(bundles))
        bundle, sign = bundles[variant // 2], variant % 2
        if sign:
            try:
                manifest = json.loads(text)
                manifest[DIGEST] = manifest_checksum(manifest)
                text = json.dumps(manifest).encode()
            except (ValueError, TypeError, AttributeError, RecursionError):
                pass  # Written as it is.
        (bundle / MANIFEST).write_bytes(text)
        try:
            model = pathdex.load(bundle)
            answer = model.recommend([], 5)
        except PathdexError:
            return
        if len({item for item, _ in answer}) != len(answer):
            raise BrokenPromiseError(f"repeated items: {answer}")

    return check


def manifest_seeds() -> list[bytes]:
    found = []
    for place, bundle in enumerate(_golden()):
        compact = json.dumps(json.loads((bundle / "manifest.json").read_text()), separators=(",", ":")).encode()
        found += [bytes([2 * place]) + compact, bytes([2 * place + 1]) + compact]
    return found


def _golden() -> list[Path]:
    bundles = Path(__file__).parents[1] / "golden" / "bundles"
    return [bundles / name for name in ("popularity", "item-cf", "deep-retrieval")]


CATALOGUE = "item_id,genre,price,year,new\n" + "\n".join(
    f"{100 + row},{'drama|crime' if row % 3 else 'comedy'},{row}.5,{1990 + row % 9},{str(row % 2 == 0).lower()}"
    for row in range(32)
)


def prepare_http(folder: Path) -> Check:
    import msgspec

    from pathdex.server.app import App
    from pathdex.server.event_feed import EventFeed
    from pathdex.server.limits import ServerLimits
    from pathdex.server.metrics import ServerMetrics
    from pathdex.server.model_loader import ModelLoader
    from pathdex.server.model_manager import ModelManager
    from pathdex.server.openapi import describe
    from pathdex.server.routes import ROUTES
    from pathdex.server.stores import open_store
    from pathdex.server.worker_context import WorkerContext
    from tests.random_model import random_model

    warnings.simplefilter("ignore")
    logging.getLogger("pathdex.server").addHandler(_RaisingHandler())
    (folder / "shop.csv").write_text(CATALOGUE)
    model = random_model(32)
    loader = ModelLoader(model.save(folder / "model"), folder / "shop.csv")
    limits, metrics = ServerLimits(max_n=50, max_batch=8), ServerMetrics()
    manager = ModelManager(loader, metrics, 0.0)
    manager.current = loader.load()
    document = msgspec.json.decode(msgspec.json.encode(describe(ROUTES, limits)))
    routes = [route for route in ROUTES if route.request is not None and not route.internal]
    agrees = [_agreement(document, route) for route in routes]
    loop = asyncio.new_event_loop()

    async def nothing() -> None:
        pass

    async def make() -> App:
        store = open_store(str(folder / "users.sqlite"), limits.max_history)
        feed = EventFeed(str(folder / "events.jsonl"), metrics, limits.timeout)
        return App(
            WorkerContext(limits, metrics, store, b"{}", feed), manager, ROUTES, startup=nothing, shutdown=nothing
        )

    app = loop.run_until_complete(make())
    events = folder / "events.jsonl"

    def check(data: bytes) -> None:
        variant, body = choose(data, len(routes))
        route = routes[variant]
        status, answer = loop.run_until_complete(_call(app, route.method, route.path, body))
        if status >= 500:
            raise BrokenPromiseError(f"status {status}: {answer[:300]!r}")
        found = json.loads(answer)
        if (status >= 400) != ("error" in found):
            raise BrokenPromiseError(f"status {status} with {answer[:300]!r}")
        agrees[variant](status, body, answer)
        if events.stat().st_size > 10_000_000:
            events.write_bytes(b"")

    return check


def _agreement(document: dict[str, Any], route: Any) -> Callable[[int, bytes, bytes], None]:
    """A check that the OpenAPI document describes every body that the server accepts."""
    try:
        import jsonschema_rs
    except ImportError:
        return lambda *_: None
    name = route.request.__name__
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    validator = jsonschema_rs.Draft202012Validator(schema)

    def check(status: int, body: bytes, answer: bytes) -> None:
        import msgspec

        try:
            value = msgspec.json.decode(body)
        except (ValueError, RecursionError):
            if status != 400:
                raise BrokenPromiseError(f"status {status} for a body that is not JSON") from None
            return
        if status in (200, 202) and not validator.is_valid(value):
            raise BrokenPromiseError(f"{name}: the document refuses {body[:300]!r}, which the server accepts")
        if status == 400:
            raise BrokenPromiseError(f"{name}: status 400 for JSON: {body[:300]!r} {answer[:300]!r}")

    return check


async def _call(app: Any, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    sent: list[dict[str, Any]] = []
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, Any]:
        return next(messages)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "headers": headers}
    await app(scope, receive, send)
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:])


class _RaisingHandler(logging.Handler):
    """Turns the log entry of an internal error into the error itself, with its traceback."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is not None and record.exc_info[1] is not None:
            raise record.exc_info[1]


def http_seeds() -> list[bytes]:
    bodies: list[tuple[int, dict[str, Any]]] = [
        (0, {"history": [100, 103], "n": 5, "deny": [106], "allow": [109, "112"], "explain": True, "beam": 3}),
        (0, {"history": [], "where": {"genre": ["drama", "comedy"], "year": {"min": 1990, "max": 1995.0}}}),
        (0, {"queries": [{"user": "ada", "n": 3}, {"history": [100], "candidates": 9, "exclude_seen": False}]}),
        (1, {"item": 100, "n": 10}),
        (2, {"item": 100, "history": [103], "beam": 2}),
        (3, {"item": 100, "user": "ada", "n": 3, "exclude_seen": False}),
        (4, {"user": "ada", "items": [100, "x"], "time": 1767225600.5}),
        (4, {"events": [{"user": 1, "items": [100]}, {"user": "2", "items": []}]}),
        (5, {"id": 1210, "like": [100], "attributes": {"genre": "drama", "price": [1.5, 2], "new": True}}),
        (5, {"new_items": [{"id": 1}, {"id": "2", "like": [100]}]}),
        (6, {"ids": [100, "103"]}),
    ]
    return [bytes([route]) + json.dumps(body).encode() for route, body in bodies]


def prepare_reader(folder: Path, suffix: str) -> Check:
    import pathdex
    from pathdex.data.attributes import Attributes
    from pathdex.errors import PathdexError

    warnings.simplefilter("ignore")
    file = folder / f"table.{suffix}"

    def check(data: bytes) -> None:
        variant, content = choose(data, 4)
        file.write_bytes(content)
        try:
            if variant == 0:
                found = pathdex.read(file)
            elif variant == 1:
                found = pathdex.read(file, min_rating=3, min_interactions=2)
            elif variant == 2:
                pathdex.validate(file)
                return
            else:
                Attributes.read(file)
                return
        except PathdexError:
            return
        codes = found.sequences.values
        if found.num_interactions < 1 or (len(codes) and not 0 <= codes.min() <= codes.max() < found.num_items):
            raise BrokenPromiseError(f"{found} has items outside the catalogue")

    return check


def csv_seeds() -> list[bytes]:
    texts = [
        "user_id,item_id,timestamp,rating\n1,10,100,4\n2,11,101,5\n1,11,102,3\n",
        'userId,movieId,timestamp\n"a ""b""",x,1e9\n\xe9,y,2020-01-01T00:00:00Z\n',
        "user,item\n1,2\n,3\n4,\n",
        "A1,B1,5.0,1400000000\nA2,B2,1.0,1400000001\n",
        CATALOGUE,
    ]
    return [bytes([variant]) + text.encode() for text in texts for variant in range(4)]


def parquet_seeds() -> list[bytes]:
    import polars as pl

    frames = [
        pl.DataFrame(
            {"user_id": [1, 2, 1], "item_id": [10, 11, 11], "timestamp": [1, 2, 3], "rating": [4.0, 5.0, 3.0]}
        ),
        pl.DataFrame({"user": ["a", "b"], "item": ["x", None], "time": [1.5, 2.5]}),
        pl.DataFrame({"item_id": [1, 2], "genre": [["a", "b"], ["c"]], "new": [True, None]}),
    ]
    found = []
    for frame in frames:
        for compression in ("uncompressed", "snappy"):
            buffer = io.BytesIO()
            frame.write_parquet(buffer, compression=compression)  # type: ignore[arg-type]
            found += [bytes([variant]) + buffer.getvalue() for variant in range(4)]
    return found


def prepare_filters(folder: Path) -> Check:
    import numpy as np
    import polars as pl

    from pathdex.data.attributes import Attributes
    from pathdex.data.vocabulary import Vocabulary
    from pathdex.errors import QueryError

    table = pl.DataFrame(
        {
            "item_id": range(20),
            "text": [None, "a", "b", "1", "true"] * 4,
            "whole": [None, 0, 2**53, -(2**63), 2**63 - 1] * 4,
            "flag": [None, True, False, True, False] * 4,
            "number": [None, 0.5, -0.0, 1e300, -1.0] * 4,
            "many": [[], ["a"], ["a", "b"], ["c"], None] * 4,
            "numbers": [[], [1], [1, 2], [3], None] * 4,
        }
    )
    aligned = Attributes.read(table).align(Vocabulary(np.arange(20)))

    def check(data: bytes) -> None:
        try:
            where = json.loads(data)
        except (ValueError, RecursionError):
            return
        try:
            mask = aligned.mask(where)
        except QueryError as error:
            str(error)
            return
        if mask.shape != (20,) or mask.dtype != np.bool_:
            raise BrokenPromiseError(f"{where} gives {mask}")
        both = aligned.mask({name: given for name, given in where.items() if name != "text"})
        if (mask & ~both).any():
            raise BrokenPromiseError(f"{where} selects items that a part of its conditions excludes")

    return check


def filter_seeds() -> list[bytes]:
    given: list[Any] = [
        {"text": "a", "whole": [0, 9007199254740993]},
        {"whole": {"min": -1, "max": 1e30}, "number": {"min": 0.5}},
        {"flag": True, "many": ["a", "c"], "numbers": {"max": 2}},
        {"number": ["0.5", -0.0, 1e999], "flag": "false"},
        {"text": 1, "whole": "12", "number": None},
    ]
    return [json.dumps(one).encode() for one in given]


TARGETS = {
    "manifest": Target(
        prepare_manifest,
        manifest_seeds,
        ("pathdex.storage", "pathdex.recommenders", "pathdex.parameters", "pathdex.config", "pathdex.data.vocabulary"),
        16_384,
    ),
    "http": Target(prepare_http, http_seeds, ("pathdex.server", "pathdex.data.attribute", "pathdex.data.event_values")),
    "csv": Target(lambda folder: prepare_reader(folder, "csv"), csv_seeds, ("pathdex.data",), 8192),
    "parquet": Target(lambda folder: prepare_reader(folder, "parquet"), parquet_seeds, ("pathdex.data",), 16_384),
    "filters": Target(prepare_filters, filter_seeds, ("pathdex.data.attribute", "pathdex.data.vocabulary"), 2048),
}
