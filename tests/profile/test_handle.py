"""What a plugin may use: the same from its first moment on, and nothing at the wrong time."""

from typing import Any

import pytest

from bayplan.api.objects import NAMESPACE, NODE, POD
from bayplan.config import ConfigError
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from bayplan.framework.handle import FilterRunner
from bayplan.framework.plugin import ReservePlugin
from bayplan.framework.status import Code, code_of, unschedulable
from bayplan.ports import EmitEvent
from bayplan.profile.handle import PluginHandle, SnapshotNotLent
from bayplan.state.cluster_objects import UndeclaredKind
from bayplan.testing import api_pod, node, pod
from tests.engine.kit import Engine, uid, waiting_pod
from tests.framework.answering import answering
from tests.scenarios.world import PROFILE

NODE_ADDED = ClusterEvent(EventResource.NODE, ActionType.ADD)


def keeping(seen: list[Any], **answers: Any) -> type[Any]:
    """A plugin that keeps its handle, and is called Keeps."""

    def setup(self: Any) -> None:
        seen.append(self.handle)

    return answering("Keeps", setup=setup, **answers)


# ---- from the constructor on ----------------------------------------------------------------


class Eager(ReservePlugin):
    """Uses everything its handle has while it starts."""

    name = "Eager"
    kinds = (NAMESPACE,)

    def setup(self) -> None:
        handle = self.handle
        self.seen = (
            handle.profile_name,
            handle.seed,
            handle.now_seconds,
            list(handle.objects(NAMESPACE).list()),
            list(handle.waiting_pods()),
            handle.waiting_pod("nobody"),
            handle.reject_waiting_pod("nobody"),
            handle.nominator.nominated_nodes(),
        )
        self.runner: FilterRunner = handle.runner
        self.other = handle.make("PrioritySort")
        handle.activate([pod("made-up")])
        handle.emit(pod("p"), "Normal", "Started", "Starting", "here I am")
        with pytest.raises(SnapshotNotLent, match="Eager"):
            _ = handle.snapshot

    def reserve(self, state: CycleState, pod: Any, node_name: str) -> Any:
        # The runner that was kept works now.
        return self.runner.filter_with_nominated(state, pod, node_name)

    def unreserve(self, state: CycleState, pod: Any, node_name: str) -> None: ...


def test_a_plugin_may_use_its_handle_while_it_starts() -> None:
    engine = Engine(plugins=["Eager"], classes=[Eager], seed=7)
    eager = engine.plugin("Eager")
    assert eager.seen == (PROFILE, 7, 0.0, [], [], None, False, [])
    assert eager.other.instance_name == "Eager.PrioritySort"
    assert [e.note for e in engine.run() if isinstance(e, EmitEvent)] == ["here I am"]
    engine.add(node("n1"), waiting_pod("p"))
    assert engine.bound() == {"p": "n1"}


def test_a_plugin_sees_the_extenders_in_the_order_of_their_calls() -> None:
    entries = [{"urlPrefix": "http://easy", "ignorable": True}, {"urlPrefix": "http://strict"}]
    seen: list[PluginHandle] = []
    verb = {"filterVerb": "filter"}
    config = {"extenders": [{**entry, **verb} for entry in entries]}
    Engine(plugins=["Keeps"], classes=[keeping(seen, filter=[])], config=config)
    assert [each.name for each in seen[0].extenders] == ["http://strict", "http://easy"]


def test_activating_a_made_up_pod_changes_nothing() -> None:
    engine = Engine(plugins=["Eager"], classes=[Eager])
    before = engine.scheduler.queue.counts()
    engine.plugin("Eager").handle.activate([pod("made-up")])
    assert engine.scheduler.queue.counts() == before


# ---- the snapshot ---------------------------------------------------------------------------


def test_the_snapshot_is_lent_from_pre_filter_to_permit() -> None:
    seen: list[Any] = []
    points: list[str] = []

    def looks(name: str, answer: Any = None) -> Any:
        def method(*_: Any) -> Any:
            (handle,) = seen
            assert handle.snapshot.node("n1").name == "n1"
            points.append(name)
            return answer

        return method

    plugin = keeping(
        seen,
        pre_filter=looks("pre_filter"),
        filter_node=looks("filter"),
        pre_score=looks("pre_score"),
        score_node=looks("score", 0),
        reserve=looks("reserve"),
        permit=looks("permit", (None, 0.0)),
    )
    engine = Engine(plugins=[("Keeps", 1)], classes=[plugin])
    engine.add(node("n1"), node("n2"), waiting_pod("p"))
    assert list(engine.bound()) == ["p"]
    assert set(points) == {"pre_filter", "filter", "pre_score", "score", "reserve", "permit"}


@pytest.mark.parametrize("point", ["pre_enqueue", "unreserve", "pre_bind_preflight"])
def test_elsewhere_it_is_not(point: str) -> None:
    seen: list[Any] = []
    raised: list[str] = []

    def looks(*_: Any) -> None:
        with pytest.raises(SnapshotNotLent) as caught:
            _ = seen[0].snapshot
        raised.append(str(caught.value))

    answers: dict[str, Any] = {point: looks}
    if point == "unreserve":
        answers["reserve"] = unschedulable("no")
    if point == "pre_bind_preflight":
        answers["pre_bind"] = None
    engine = Engine(plugins=["Keeps"], classes=[keeping(seen, **answers)])
    engine.add(node("n1"), waiting_pod("p"))
    engine.run()
    assert len(raised) == 1
    assert raised[0].startswith("plugin Keeps read handle.snapshot outside a scheduling cycle")


def test_a_hint_has_no_snapshot_even_at_the_end_of_an_attempt() -> None:
    """An event that came while the pod was tried is looked at when the attempt has failed."""
    seen: list[Any] = []
    raised: list[str] = []

    def hint(pod: Any, old: Any, new: Any) -> Any:
        try:
            return seen[0].snapshot
        except SnapshotNotLent as problem:
            raised.append(str(problem))
            raise

    def fails(*_: Any) -> Any:
        engine.add(node("n2"))
        return unschedulable("no")

    plugin = keeping(
        seen,
        filter_node=fails,
        events_to_register=[ClusterEventWithHint(NODE_ADDED, hint)],
    )
    engine = Engine(plugins=["Keeps"], classes=[plugin])
    engine.add(node("n1"), waiting_pod("p"))
    engine.scheduler.schedule_one()
    assert len(raised) == 1


def test_what_is_handed_in_during_a_cycle_is_seen_by_the_next_one() -> None:
    counts: list[int] = []

    def hands_in(*_: Any) -> None:
        if len(counts) == 0:
            engine.add(node("n2"))

    def looks(state: Any, pod: Any, nodes: Any) -> None:
        counts.append(len(nodes.all()))

    first = answering("First", pre_filter=hands_in)
    second = answering("Second", pre_filter=looks)
    engine = Engine(plugins=["First", "Second"], classes=[first, second])
    engine.add(node("n1"), waiting_pod("p"), waiting_pod("q"))
    engine.run()
    assert counts == [1, 2]


# ---- objects, other plugins, trying placements ----------------------------------------------


def test_only_declared_kinds_can_be_looked_up() -> None:
    seen: list[PluginHandle] = []
    Engine(plugins=["Keeps"], classes=[keeping(seen, filter=[], kinds=("v1 Service",))])
    assert seen[0].objects("v1 Service").list() == ()
    with pytest.raises(UndeclaredKind) as caught:
        seen[0].objects("example.com/v1 Quota")
    for word in ("Keeps", "example.com/v1 Quota", "kinds", "list", "watch"):
        assert word in str(caught.value)


def test_pods_and_nodes_can_be_looked_up_where_there_is_no_snapshot() -> None:
    seen: list[PluginHandle] = []
    results: list[tuple[list[str], list[str]]] = []

    def looks(pod: Any) -> None:
        nodes, pods = (seen[0].objects(kind).list() for kind in (NODE, POD))
        results.append(([each.metadata.name for each in nodes], [each.key for each in pods]))

    engine = Engine(
        plugins=["Keeps"], classes=[keeping(seen, pre_enqueue=looks, kinds=(NODE, POD))]
    )
    engine.add(node("n1"), api_pod("placed", node="n1"), waiting_pod("p"))
    engine.delete(node("n1"), api_pod("placed", node="n1"))
    engine.add(waiting_pod("q"))
    assert results == [
        (["n1"], ["default/p", "default/placed"]),
        ([], ["default/p", "default/q"]),
    ]
    assert [each.uid for each in seen[0].objects(POD).list("default")][1] == uid("q")
    # The runner follows them in any case.
    assert not {NODE, POD}.intersection(engine.scheduler.kinds)


def test_a_wrong_plugin_for_composition_is_refused_by_its_path() -> None:
    seen: list[PluginHandle] = []
    Engine(plugins=["Keeps"], classes=[keeping(seen, filter=[])])
    with pytest.raises(ConfigError, match=r"Keeps\.make\(PrioritySrt\).*PrioritySort"):
        seen[0].make("PrioritySrt")


def test_the_runner_tries_one_node_in_the_cycles_own_snapshot() -> None:
    verdicts: list[Any] = []

    def tries(self_state: CycleState, pod_info: Any, statuses: Any) -> Any:
        runner = seen[0].runner
        info = seen[0].snapshot.node("n1")
        verdicts.append(runner.filter_with_nominated(self_state, pod_info, "n1"))
        verdicts.append(runner.add_pod(self_state, pod_info, pod("other"), info))
        verdicts.append(runner.remove_pod(self_state, pod_info, pod("other"), info))
        return None, unschedulable()

    seen: list[PluginHandle] = []
    notes = answering("Notes", pre_filter=None, add_pod=None, filter_node=unschedulable("no"))
    keeps = keeping(seen, post_filter=tries)
    engine = Engine(plugins=["Notes", "Keeps"], classes=[notes, keeps])
    engine.add(node("n1"), waiting_pod("p"))
    engine.run()
    assert [code_of(verdict) for verdict in verdicts] == [
        Code.UNSCHEDULABLE,
        Code.SUCCESS,
        Code.SUCCESS,
    ]
    assert notes.calls[-2:] == [("Notes", "add_pod"), ("Notes", "remove_pod")]
