"""PreFilter and PreScore run once for pods with equal signatures, until something changes."""

from collections.abc import Hashable
from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.api.objects import SERVICE, OwnerReference
from bayplan.framework.plugin import (
    Caching,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    SignPlugin,
)
from bayplan.framework.status import SKIP, Status
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo
from bayplan.testing import api_pod, node
from tests.engine.kit import Engine, waiting_pod

FIT = "NodeResourcesFit"
#: The first two attempts at pods of a signature call the plugins.
CALLS_MIN = 2
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class CountedPreparation(PreFilterPlugin, PreScorePlugin, ReservePlugin, SignPlugin):
    """Counts its calls, writes a note, and stores the state of each attempt."""

    name = "Counted"
    caching = Caching(signs_template=True, pre_state_per_template=True)

    def setup(self) -> None:
        self.pre_filter_count = self.pre_score_count = 0
        self.states: list[Any] = []

    def pre_filter(self, state: Any, pod: PodInfo, nodes: NodeView) -> Status | None:
        self.pre_filter_count += 1
        state[self.name] = pod.shape
        return None

    def pre_score(self, state: Any, pod: PodInfo, nodes: NodeView) -> Status | None:
        self.pre_score_count += 1
        return SKIP

    def reserve(self, state: Any, pod: PodInfo, node_name: str) -> Status | None:
        self.states.append(state)
        return None

    def unreserve(self, state: Any, pod: PodInfo, node_name: str) -> None: ...

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return ""


def engine_of() -> Engine:
    engine = Engine(plugins=[(FIT, 1), "Counted", "InterPodAffinity"], classes=[CountedPreparation])
    engine.add(*(node(f"n{number}", cpu="8") for number in range(4)))
    return engine


def place(engine: Engine, *names: str, **options: Any) -> None:
    for name in names:
        engine.add(waiting_pod(name, **{"cpu": "100m", **options}))
        assert set(engine.bound()) == {name}


def counts(engine: Engine) -> tuple[int, int]:
    plugin = engine.plugin("Counted")
    return plugin.pre_filter_count, plugin.pre_score_count


def prepared() -> tuple[Engine, int]:
    """(the engine after attempts until no call is needed, the number of calls so far)."""
    engine = engine_of()
    place(engine, "a", "b", "c", "d")
    before, _ = counts(engine)
    assert counts(engine) == (before, before) and before > CALLS_MIN
    return engine, before


def test_pods_with_equal_signatures_are_prepared_once() -> None:
    engine, before = prepared()
    place(engine, *(f"p{number}" for number in range(20)))
    assert counts(engine) == (before, before)


def test_a_plugin_without_cacheable_preparation_is_called_for_each_pod(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CountedPreparation, "caching", Caching(signs_template=True))
    engine = engine_of()
    place(engine, *(f"p{number}" for number in range(10)))
    assert counts(engine) == (10, 10)


def test_a_new_object_causes_one_more_preparation() -> None:
    engine, before = prepared()
    engine.put(SERVICE, {"metadata": {"name": "s", "namespace": "default"}, "spec": {}})
    place(engine, "p", "q")
    assert counts(engine) == (before + 1, before + 1)


@pytest.mark.parametrize("goes", [False, True])
def test_adding_or_deleting_a_pod_with_affinity_terms_causes_one_more_preparation(
    goes: bool,
) -> None:
    engine = engine_of()
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "no"}}}
    lonely = api_pod("lonely", node="n1", affinity={"podAntiAffinity": {_REQUIRED: [term]}})
    if goes:
        engine.add(lonely)
    place(engine, "a", "b", "c", "d")
    before, _ = counts(engine)
    (engine.delete if goes else engine.add)(lonely)
    place(engine, "p", "q")
    assert counts(engine)[0] == before + 1


def test_a_pod_of_another_shape_is_prepared_again() -> None:
    engine, before = prepared()
    place(engine, "p", labels={"unread": "label"})
    assert counts(engine) == (before + 1, before + 1)


def test_a_pod_of_another_owner_is_prepared_again() -> None:
    engine, before = prepared()
    waiting = waiting_pod("p", cpu="100m")
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="r", uid="r")
    engine.add(replace(waiting, metadata=replace(waiting.metadata, owner_references=(owner,))))
    assert engine.bound()
    assert counts(engine) == (before + 1, before + 1)


def test_each_attempt_has_its_own_cycle_state() -> None:
    engine = engine_of()
    states = engine.plugin("Counted").states
    place(engine, *(f"p{number}" for number in range(8)))
    assert len({id(state) for state in states}) == 8
    assert all(state["Counted"] is states[0]["Counted"] for state in states)
    states[-2]["Counted"] = None
    place(engine, "q")
    assert states[-1]["Counted"] is not None
    assert len({id(state.pods_to_activate) for state in states}) == 9


def test_a_pod_that_fits_nowhere_is_prepared_once() -> None:
    engine, result = engine_of(), list[tuple[int, int]]()
    for number in range(6):
        engine.add(waiting_pod(f"p{number}", cpu="100"))
        assert not engine.bound()
        result.append(counts(engine))
    assert result[CALLS_MIN:] == [result[-1]] * (6 - CALLS_MIN)
    assert engine.attempts("p5")[0].message == engine.attempts("p0")[0].message
