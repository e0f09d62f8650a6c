"""PreFilter and PreScore run once for pods with equal signatures, until something changes."""

from collections.abc import Hashable
from typing import Any

import pytest

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
