"""What a plugin may use: from its start on all of the handle, but the snapshot only in a cycle."""

from typing import Any

import pytest

from bayplan.api.objects import NAMESPACE, NODE, POD
from bayplan.config import ConfigError
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from bayplan.framework.handle import FilterRunner, Handle, SnapshotNotLent, UndeclaredKind
from bayplan.framework.plugin import ReservePlugin
from bayplan.framework.status import Code, code_of, unschedulable
from bayplan.ports import EmitEvent
from bayplan.testing import api_pod, node, pod
from tests.engine.kit import Engine, uid, waiting_pod
from tests.framework.answering import answering
from tests.scenarios.world import PROFILE

NODE_ADDED = ClusterEvent(EventResource.NODE, ActionType.ADD)


def handle_reader(seen: list[Any], **answers: Any) -> type[Any]:
    """A plugin named HandleReader that stores its handle in ``seen``."""

    def setup(self: Any) -> None:
        seen.append(self.handle)

    return answering("HandleReader", setup=setup, **answers)


# ---- from the constructor on ----------------------------------------------------------------


class Eager(ReservePlugin):
    """Calls every method of its handle while it starts."""

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
        # The stored runner works now.
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
    seen: list[Handle] = []
    verb = {"filterVerb": "filter"}
    config = {"extenders": [{**entry, **verb} for entry in entries]}
    Engine(plugins=["HandleReader"], classes=[handle_reader(seen, filter=[])], config=config)
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

    plugin = handle_reader(
        seen,
        pre_filter=looks("pre_filter"),
        filter_node=looks("filter"),
        pre_score=looks("pre_score"),
        score_node=looks("score", 0),
        reserve=looks("reserve"),
        permit=looks("permit", (None, 0.0)),
    )
    engine = Engine(plugins=[("HandleReader", 1)], classes=[plugin])
    engine.add(node("n1"), node("n2"), waiting_pod("p"))
    assert list(engine.bound()) == ["p"]
    assert set(points) == {"pre_filter", "filter", "pre_score", "score", "reserve", "permit"}


@pytest.mark.parametrize("point", ["pre_enqueue", "unreserve", "pre_bind_preflight"])
def test_outside_of_a_cycle_the_snapshot_is_refused(point: str) -> None:
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
    engine = Engine(plugins=["HandleReader"], classes=[handle_reader(seen, **answers)])
    engine.add(node("n1"), waiting_pod("p"))
    engine.run()
    assert len(raised) == 1
    assert raised[0].startswith(
        "plugin HandleReader read handle.snapshot outside a scheduling cycle"
    )


def test_a_hint_has_no_snapshot_even_at_the_end_of_an_attempt() -> None:
    """The hints see an event of the attempt after the attempt has failed."""
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

    plugin = handle_reader(
        seen,
        filter_node=fails,
        events_to_register=[ClusterEventWithHint(NODE_ADDED, hint)],
    )
    engine = Engine(plugins=["HandleReader"], classes=[plugin])
    engine.add(node("n1"), waiting_pod("p"))
    engine.scheduler.schedule_one()
    assert len(raised) == 1


def test_an_event_during_a_cycle_changes_the_snapshot_of_the_next_cycle() -> None:
    counts: list[int] = []

    def adds_node(*_: Any) -> None:
        if len(counts) == 0:
            engine.add(node("n2"))

    def looks(state: Any, pod: Any, nodes: Any) -> None:
        counts.append(len(nodes.all()))

    first = answering("First", pre_filter=adds_node)
    second = answering("Second", pre_filter=looks)
    engine = Engine(plugins=["First", "Second"], classes=[first, second])
    engine.add(node("n1"), waiting_pod("p"), waiting_pod("q"))
    engine.run()
    assert counts == [1, 2]


# ---- objects, other plugins, trying placements ----------------------------------------------


def test_only_declared_kinds_can_be_looked_up() -> None:
    seen: list[Handle] = []
    Engine(
        plugins=["HandleReader"], classes=[handle_reader(seen, filter=[], kinds=("v1 Service",))]
    )
    assert seen[0].objects("v1 Service").list() == ()
    with pytest.raises(UndeclaredKind) as caught:
        seen[0].objects("example.com/v1 Quota")
    for word in ("HandleReader", "example.com/v1 Quota", "kinds", "list", "watch"):
        assert word in str(caught.value)


def test_pods_and_nodes_can_be_looked_up_where_there_is_no_snapshot() -> None:
    seen: list[Handle] = []
    results: list[tuple[list[str], list[str]]] = []

    def looks(pod: Any) -> None:
        nodes, pods = (seen[0].objects(kind).list() for kind in (NODE, POD))
        results.append(([each.metadata.name for each in nodes], [each.key for each in pods]))

    engine = Engine(
        plugins=["HandleReader"],
        classes=[handle_reader(seen, pre_enqueue=looks, kinds=(NODE, POD))],
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


def test_a_wrong_plugin_for_composition_is_refused_with_its_path() -> None:
    seen: list[Handle] = []
    Engine(plugins=["HandleReader"], classes=[handle_reader(seen, filter=[])])
    with pytest.raises(ConfigError, match=r"HandleReader\.make\(PrioritySrt\).*PrioritySort"):
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

    seen: list[Handle] = []
    notes = answering("Notes", pre_filter=None, add_pod=None, filter_node=unschedulable("no"))
    plugin = handle_reader(seen, post_filter=tries)
    engine = Engine(plugins=["Notes", "HandleReader"], classes=[notes, plugin])
    engine.add(node("n1"), waiting_pod("p"))
    engine.run()
    assert [code_of(verdict) for verdict in verdicts] == [
        Code.UNSCHEDULABLE,
        Code.SUCCESS,
        Code.SUCCESS,
    ]
    assert notes.calls[-2:] == [("Notes", "add_pod"), ("Notes", "remove_pod")]
