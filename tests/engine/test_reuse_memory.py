"""Cached results stay within their memory bound, as counted and as measured by Python."""

import gc
import tracemalloc
from dataclasses import dataclass

import pytest

from bayplan.engine.reuse.cache import ResultCache
from bayplan.testing import node
from tests.engine.kit import Engine, waiting_pod
from tests.scenarios.world import PROFILE
from tests.seeded import depth

NODE_COUNT, SHAPE_COUNT = depth((2000, 300), (5000, 1000))
BYTES_MAX = depth(2**20, 4 * 2**20)
PLUGINS = ("NodeResourcesFit", 1), ("NodeAffinity", 1), ("TaintToleration", 1), "NodePorts"


@dataclass(frozen=True)
class Growth:
    """Growth of Python's memory after one pod of each shape, with the table and with it emptied."""

    with_table_bytes: int
    without_table_bytes: int
    counted_bytes: int
    dropped_count: int


def growth(node_count: int, *, is_on: bool) -> Growth:
    """Bindings stay in flight, so that pods must not refer to the results of their placement."""
    gates = {"OpportunisticBatching": is_on}
    engine = Engine(plugins=PLUGINS, gates=gates, config={"reuse": {"maxBytes": BYTES_MAX}})
    engine.add(*(node(f"n{k}", cpu=640, memory="640Gi") for k in range(node_count)))
    gc.collect()
    tracemalloc.start()
    try:
        for index in range(SHAPE_COUNT):
            engine.add(waiting_pod(f"p{index}", cpu=f"{index + 1}m"))
            engine.run()
            engine.journal.records.clear()
        reuse = engine.scheduler.reuse(PROFILE)
        counted, dropped = reuse.bytes_used, reuse.dropped_counts["bytes"]
        with_table = _traced_bytes()
        _empty(reuse)
        return Growth(with_table, _traced_bytes(), counted, dropped)
    finally:
        tracemalloc.stop()


def _empty(reuse: ResultCache) -> None:
    for part in (reuse._entries, reuse._filters._caches, reuse._scores._caches):
        part.clear()


def _traced_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def test_many_shapes_on_many_nodes_stay_within_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B-078. Every shape is cached, although that does not pay."""
    monkeypatch.setattr("bayplan.engine.reuse.cache._BALANCE_MAX", 10**9)
    # Caches of the whole process (quantities, requests) are filled before anything is measured.
    growth(5, is_on=False)
    on, off = growth(NODE_COUNT, is_on=True), growth(NODE_COUNT, is_on=False)
    assert 0 < on.counted_bytes <= BYTES_MAX
    # The bound was reached, so this is about the bound.
    assert on.dropped_count > 0
    assert on.with_table_bytes - on.without_table_bytes <= 1.1 * BYTES_MAX
    # Results that left the table are not referenced elsewhere.
    assert on.without_table_bytes <= 1.1 * off.with_table_bytes
