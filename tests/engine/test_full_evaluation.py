"""After many changes all nodes are evaluated, and not only changed ones; decisions are equal."""

from typing import Any

import pytest

from bayplan.engine.ranking.evaluation_plan import TOO_MUCH_CHANGED
from bayplan.engine.ranking.ranked_nodes import CHANGES_MAX
from bayplan.engine.reuse import cache as module
from tests.engine.cached_attempts import FIT, OFF, CountingFilter, nodes
from tests.engine.kit import Engine, waiting_pod
from tests.scenarios.world import PROFILE

NODES = 40
KINDS = CHANGES_MAX + 4


@pytest.fixture(autouse=True)
def caching_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are few pods of many signatures; everything is cached anyway."""
    monkeypatch.setattr(module, "_BALANCE_MAX", 10**9)


def engine_of(*plugins: Any, **options: Any) -> Engine:
    engine = Engine(plugins=[*plugins, (FIT, 1)], classes=[CountingFilter], **options)
    engine.add(*nodes(NODES))
    return engine


def place(engine: Engine, count: int, *, kinds: int, first: int = 0) -> dict[str, str]:
    """Place a number of pods, with signatures in turn."""
    places: dict[str, str] = {}
    for number in range(count):
        engine.add(waiting_pod(f"p{first + number}", cpu=f"{10 + number % kinds}m"))
        places |= engine.bound()
    return places


def evaluated_rows(engine: Engine, name: str = FIT) -> int:
    return engine.scheduler.reuse(PROFILE).row_counts()[name].evaluated


def test_many_alternating_signatures_are_evaluated_in_full() -> None:
    on, off = engine_of(), engine_of(gates=OFF)
    assert place(on, 3 * KINDS, kinds=KINDS) == place(off, 3 * KINDS, kinds=KINDS)
    # Once as a Filter and once as a Score, in every attempt.
    assert evaluated_rows(on) == 2 * NODES * 3 * KINDS


def test_a_signature_that_returns_soon_is_brought_up_to_date() -> None:
    on, off = engine_of(), engine_of(gates=OFF)
    for engine in (on, off):
        place(engine, 2 * KINDS, kinds=KINDS)
    before = evaluated_rows(on)
    assert place(on, 4, kinds=1, first=100) == place(off, 4, kinds=1, first=100)
    # The first attempt evaluates all rows, the second one all rows that changed since, and each
    # further one a single row.
    assert evaluated_rows(on) - before < 2 * 4 * NODES - 2 * NODES


def test_a_ranking_that_is_too_far_behind_leaves() -> None:
    engine = engine_of()
    place(engine, 3, kinds=1)
    reuse = engine.scheduler.reuse(PROFILE)
    [entry] = reuse.entries()
    assert entry.rankings
    for number in range(CHANGES_MAX + 1):
        engine.add(waiting_pod(f"other{number}", cpu=f"{100 + number}m"))
        engine.bound()
    place(engine, 1, kinds=1, first=100)
    # Otherwise the next pod of this signature would try to bring the ranking forward, and make
    # another one, whether or not caching pays.
    assert not entry.rankings and reuse.flushed_counts[TOO_MUCH_CHANGED] == 1


def test_with_a_scalar_plugin_only_changed_nodes_are_evaluated() -> None:
    engine = engine_of("CountingFilter")
    place(engine, 2 * KINDS, kinds=KINDS)
    before = evaluated_rows(engine)
    place(engine, 1, kinds=1, first=100)
    assert evaluated_rows(engine) - before == 2 * KINDS
    # A plugin that does not distinguish these signatures evaluates one row per placement.
    assert evaluated_rows(engine, "CountingFilter") == NODES + 2 * KINDS


def test_in_a_large_cluster_changed_nodes_are_updated_individually(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "STEP_ASIDE_NODES_MAX", NODES - 1)
    engine = engine_of()
    place(engine, 2 * KINDS, kinds=KINDS)
    before = evaluated_rows(engine)
    place(engine, 1, kinds=1, first=100)
    assert evaluated_rows(engine) - before == 2 * KINDS
