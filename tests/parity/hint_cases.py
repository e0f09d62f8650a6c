"""Cases of the suite `hints`: one pending pod, one change of one object."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from bayplan.api.objects import NODE, POD
from bayplan.config.kubernetes_versions import KubernetesVersion
from bayplan.framework.cluster_rules import pod_rules
from bayplan.ports import EventType
from bayplan.state.pods import PodInfo
from tests.parity.deviations import deviation
from tests.parity.filter_answers import gates
from tests.parity.hint_world import (
    BACKOFF_OVER,
    IN_BACKOFF,
    IN_FLIGHT,
    PENDING,
    HintWorld,
)
from tests.parity.objects import KINDS, cluster_objects, cluster_pods, read_object, read_pod
from tests.parity.tally import Sheet, Tally
from tests.parity.world import World, compare_config, make_world

Json = dict[str, Any]

CASE_FIELDS = frozenset(
    (
        "id",
        "suite",
        "note",
        "cluster",
        "config",
        "gates",
        "pod",
        "event",
        "answers",
        "unknownFields",
    )
)
_ANSWER_FIELDS = frozenset(
    ("configError", "events", "hints", "hintsByEvent", "preCheck", "gatedBy", "move")
)
_ALWAYS = frozenset(("events", "hints"))
_KIND_OF: Mapping[str, str] = {
    "Node": NODE,
    "Pod": POD,
    **{kind.partition(" ")[2]: kind for kind in KINDS.values()},
}
_EVENT_TYPES: Mapping[str, EventType] = {
    "Add": EventType.ADDED,
    "Update": EventType.MODIFIED,
    "Delete": EventType.DELETED,
}
#: From the answer that counts least to the answer that counts most.
_RANKS = ("QueueSkip", "Queue", "error")
#: State → the queue of a pod after a helpful event.
_WOKEN: Mapping[str, str] = {
    IN_BACKOFF: "backoffQ",
    BACKOFF_OVER: "activeQ",
    PENDING: "activeQ",
    IN_FLIGHT: "backoffQ",
}
#: The versions that the recorder gave objects before and after the change.
_OLD, _NEW = "1", "2"


def compare_case(case: Json, sheet: Sheet) -> None:
    """Compare every answer of one case."""
    for name in sorted(set(case) - CASE_FIELDS):
        sheet.not_understood(f"case.{name}", is_answer=False)
    answers: Json = case.get("answers") or {}
    for name in sorted(set(answers) - _ANSWER_FIELDS):
        sheet.not_understood(name, is_answer=True)
    for name in sorted(_ALWAYS - set(answers) if "configError" not in answers else ()):
        sheet.compare(name, "nothing", "always something")
    resource = case["event"]["resource"]
    if resource not in _KIND_OF:
        sheet.not_understood(f"event.resource {resource}", is_answer=True)
        return
    world = compare_config(case, sheet)
    if world is not None:
        _compare(case, world, answers, sheet)


def _compare(case: Json, world: World, answers: Json, sheet: Sheet) -> None:
    scene = _scene(case, world, sheet)
    scene.wait(_compare_gate(scene, answers, sheet))
    scene.listen()
    _change(case, scene)
    _compare_events(case, scene, sheet)
    sheet.compare("preCheck", answers.get("preCheck"), scene.tap.pre_check)
    deviating = _compare_hints(case, scene, sheet)
    _compare_moves(scene, answers, deviating, sheet)


def _scene(case: Json, world: World, sheet: Sheet) -> HintWorld:
    """The cluster of a case before its change."""
    pod = read_pod(case["pod"], pod_rules(world.cluster.gates), _OLD)
    scene = HintWorld(world, pod)
    scene.add_all(_before(case, pod, sheet))
    return scene


def _change(case: Json, scene: HintWorld) -> None:
    event = case["event"]
    changed, version = (event["new"], _NEW) if event["new"] else (event["old"], _OLD)
    kind = _KIND_OF[event["resource"]]
    scene.apply(kind, _EVENT_TYPES[event["action"]], read_object(kind, changed, version))


def _hint_of(kubernetes: KubernetesVersion, case: Json, plugin: str) -> str | None:
    """The result of one plugin's hint for the change of a case."""
    world = make_world(case.get("config"), kubernetes, case.get("gates") or {})
    scene = _scene(case, world, Sheet(Tally(), "", ""))
    scene.listen()
    _change(case, scene)
    return _strongest(scene.tap.answers).get(plugin)


def _before(case: Json, pod: PodInfo, sheet: Sheet) -> list[tuple[str, Any]]:
    """The objects of the API before the change."""
    cluster: Json = case.get("cluster") or {}
    objects = cluster_objects(cluster, sheet, _OLD)
    for name in ("pods", "nominatedPods"):
        objects += [(POD, each) for each in cluster_pods(cluster, name, _OLD)]
    objects.append((POD, pod.pod))
    old = case["event"]["old"]
    kind = _KIND_OF[case["event"]["resource"]]
    if old is not None:
        before = read_object(kind, old, _OLD)
        if before.metadata.uid != pod.uid:
            objects.append((kind, before))
    return objects


def _compare_gate(scene: HintWorld, answers: Json, sheet: Sheet) -> list[str]:
    """Compare the plugins that gate the pod before the change. Returns them."""
    gating = list(gates(scene.built.plugins, scene.tap.pod))
    sheet.compare("gatedBy", answers.get("gatedBy"), gating[0] if gating else None)
    return gating


def _compare_events(case: Json, scene: HintWorld, sheet: Sheet) -> None:
    """Compare the events of the change.

    If no plugin listens for the event, the announced events are compared.
    """
    answers: Json = case["answers"]
    recorded = [(each["resource"], each["action"]) for each in answers.get("events") or ()]
    actual = scene.heard_events()
    sheet.compare("events", recorded, [(str(e.resource), str(e.action)) for e in actual])


def _compare_hints(case: Json, scene: HintWorld, sheet: Sheet) -> dict[str, str]:
    """Compare hints plugin by plugin. Returns intended deviations as plugin → kind."""
    answers: Json = case["answers"]
    recorded = {name: _plain(hint) for name, hint in (answers.get("hints") or {}).items()}
    actual = _strongest(scene.tap.answers)
    deviating: dict[str, str] = {}
    for plugin in sorted({*recorded, *actual}):
        expected, ours = recorded.get(plugin), actual.get(plugin)
        if kind := _deviation(plugin, expected, ours, case, sheet):
            deviating[plugin] = kind
            sheet.deviates("hints", kind)
        else:
            sheet.compare("hints", *_as_counted(expected, ours), plugin)
    recorded_apart: Sequence[Mapping[str, str]] = answers.get("hintsByEvent") or ()
    for index, by_plugin in enumerate(recorded_apart):
        each = scene.tap.answers[index] if index < len(scene.tap.answers) else {}
        for plugin in sorted({*by_plugin, *each} - set(deviating)):
            expected, ours = _plain(by_plugin.get(plugin, "none")), each.get(plugin, "none")
            where = f"event {index} {plugin}"
            sheet.compare("hintsByEvent", *_as_counted(expected, ours), where)
    return deviating


def _deviation(
    plugin: str, expected: str | None, ours: str | None, case: Json, sheet: Sheet
) -> str:
    if (expected, ours) != ("QueueSkip", "Queue"):
        return ""
    return deviation(plugin, case, partial(_hint_of, sheet.kubernetes))


def _as_counted(expected: str | None, ours: str | None) -> tuple[str | None, str | None]:
    """An error counts as Queue: if upstream's hint fails, Queue is an equal answer."""
    return (
        ("Queue", "Queue")
        if expected == "error" and ours in ("error", "Queue")
        else (expected, ours)
    )


def _plain(hint: str) -> str:
    """The answer without the text of an error."""
    return "error" if hint.startswith("error") else hint


def _strongest(by_event: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The strongest answer of several events: error, then Queue, then QueueSkip."""
    strongest: dict[str, str] = {}
    for answers in by_event:
        for plugin, answer in answers.items():
            strongest[plugin] = max(strongest.get(plugin, answer), answer, key=_RANKS.index)
    return strongest


def _compare_moves(
    scene: HintWorld, answers: Json, deviating: Mapping[str, str], sheet: Sheet
) -> None:
    """Compare the queue of the pod after the change."""
    recorded: Mapping[str, Mapping[str, str]] = answers.get("move") or {}
    hints: Mapping[str, str] = answers.get("hints") or {}
    expected: dict[tuple[str, str], str | None] = {
        (room.state, room.plugin): None if room.plugin in hints else "unschedulable"
        for room in scene.tap.rooms
    }
    for state, places in recorded.items():
        expected.update({(state, plugin): place for plugin, place in places.items()})
    newest = scene.tap.pod
    actual = {(room.state, room.plugin): room.place_after(newest) for room in scene.tap.rooms}
    for (state, plugin), place in expected.items():
        ours = actual.get((state, plugin))
        if plugin in deviating and ours == _WOKEN.get(state):
            sheet.deviates("move", deviating[plugin])
        else:
            sheet.compare("move", place, ours, f"{state} {plugin}")
