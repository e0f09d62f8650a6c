"""Cases of the suite `hints`: one pending pod, one change of one object."""

from collections.abc import Mapping, Sequence
from typing import Any

from bayplan.api.objects import NODE, POD
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
from tests.parity.missing import DEVICES, Missing, behind_fit
from tests.parity.objects import KINDS, cluster_objects, cluster_pods, read_object, read_pod
from tests.parity.tally import Sheet, Tally
from tests.parity.world import World, compare_config, make_world

Json = dict[str, Any]

CASE_FIELDS = frozenset(("id", "suite", "note", "cluster", "config", "pod", "event", "answers"))
_ANSWER_FIELDS = frozenset(
    ("configError", "events", "hints", "hintsByEvent", "preCheck", "gatedBy", "move")
)
_ALWAYS = frozenset(("events", "hints"))
_TAINT_RULE = "DeviceTaintRule"
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
#: An answer that counts for less comes earlier.
_RANKS = ("QueueSkip", "Queue", "error")
#: Where a pod goes that is worth another attempt, by the state it was in.
_WOKEN: Mapping[str, str] = {
    IN_BACKOFF: "backoffQ",
    BACKOFF_OVER: "activeQ",
    PENDING: "activeQ",
    IN_FLIGHT: "backoffQ",
}
#: The versions that the recorder gave objects before and after the change.
_OLD, _NEW = "1", "2"


def compare_case(case: Json, sheet: Sheet) -> None:
    """Every answer of one case."""
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
    held = _held(case, world, sheet)
    missing = Missing(world.missing, answers, _behind_fit(case, held))
    held.wait(_compare_gate(held, answers, missing, sheet))
    held.listen()
    _change(case, held)
    _compare_events(case, held, missing, sheet)
    sheet.compare("preCheck", answers.get("preCheck"), held.tap.pre_check)
    deviating = _compare_hints(case, held, missing, sheet)
    _compare_moves(held, answers, missing, deviating, sheet)


def _behind_fit(case: Json, held: HintWorld) -> tuple[str, ...]:
    """Who is missing where NodeResourcesFit is asked about the change."""
    if case["event"]["resource"] == "DeviceClass" and DEVICES in held.world.missing:
        return (DEVICES,)
    return behind_fit(held.world.missing, held.tap.pod, held.world.cluster)


def _held(case: Json, world: World, sheet: Sheet) -> HintWorld:
    """The cluster of a case before its change."""
    pod = read_pod(case["pod"], _OLD)
    held = HintWorld(world, pod)
    held.add_all(_before(case, pod, sheet))
    return held


def _change(case: Json, held: HintWorld) -> None:
    event = case["event"]
    changed, version = (event["new"], _NEW) if event["new"] else (event["old"], _OLD)
    kind = _KIND_OF[event["resource"]]
    held.tell(kind, _EVENT_TYPES[event["action"]], read_object(kind, changed, version))


def _hint_of(case: Json, plugin: str) -> str | None:
    """What one plugin's hint says to the change of a case."""
    held = _held(case, make_world(case.get("config")), Sheet(Tally(), "", ""))
    held.listen()
    _change(case, held)
    return _strongest(held.tap.answers).get(plugin)


def _before(case: Json, pod: PodInfo, sheet: Sheet) -> list[tuple[str, Any]]:
    """What the API holds before the change."""
    cluster: Json = case.get("cluster") or {}
    found = cluster_objects(cluster, sheet, _OLD)
    for name in ("pods", "nominatedPods"):
        found += [(POD, each) for each in cluster_pods(cluster, name, _OLD)]
    found.append((POD, pod.pod))
    old = case["event"]["old"]
    kind = _KIND_OF[case["event"]["resource"]]
    if old is not None:
        before = read_object(kind, old, _OLD)
        if before.metadata.uid != pod.uid:
            found.append((kind, before))
    return found


def _compare_gate(held: HintWorld, answers: Json, missing: Missing, sheet: Sheet) -> list[str]:
    """Which plugin holds the pod back before the change; one that is missing here does not."""
    found = list(gates(held.built.plugins, held.tap.pod))
    shared = missing.among([answers.get("gatedBy", "")])
    if shared:
        sheet.pass_over("gatedBy", shared)
    else:
        sheet.compare("gatedBy", answers.get("gatedBy"), found[0] if found else None)
    return found


def _compare_events(case: Json, held: HintWorld, missing: Missing, sheet: Sheet) -> None:
    """What the change amounts to.

    Where only plugins listen that are missing here, nobody does: then what is announced counts.
    """
    answers: Json = case["answers"]
    recorded = [(each["resource"], each["action"]) for each in answers.get("events") or ()]
    listening = [plugin for plugin in answers.get("hints") or {} if missing.behind(plugin)]
    if case["event"]["resource"] == _TAINT_RULE and DEVICES in missing.plugins:
        sheet.pass_over("events", [DEVICES])  # it watches them, and tells of slices instead
        return
    found = held.tap.events if recorded and listening else held.heard_events()
    sheet.compare("events", recorded, [(str(e.resource), str(e.action)) for e in found])


def _compare_hints(case: Json, held: HintWorld, missing: Missing, sheet: Sheet) -> dict[str, str]:
    """Plugin by plugin. Returns those that deviate on purpose, with the kind."""
    answers: Json = case["answers"]
    recorded = {name: _plain(hint) for name, hint in (answers.get("hints") or {}).items()}
    found = _strongest(held.tap.answers)
    deviating: dict[str, str] = {}
    for plugin in sorted({*recorded, *found}):
        wanted, ours = recorded.get(plugin), found.get(plugin)
        if missing.behind(plugin):
            sheet.pass_over("hints", missing.behind(plugin))
        elif kind := _deviation(plugin, wanted, ours, case):
            deviating[plugin] = kind
            sheet.deviates("hints", kind)
        else:
            sheet.compare("hints", *_as_counted(wanted, ours), plugin)
    recorded_apart: Sequence[Mapping[str, str]] = answers.get("hintsByEvent") or ()
    for index, by_plugin in enumerate(recorded_apart):
        each = held.tap.answers[index] if index < len(held.tap.answers) else {}
        for plugin in sorted({*by_plugin, *each} - set(deviating)):
            if not missing.behind(plugin):
                wanted, ours = _plain(by_plugin.get(plugin, "none")), each.get(plugin, "none")
                where = f"event {index} {plugin}"
                sheet.compare("hintsByEvent", *_as_counted(wanted, ours), where)
    return deviating


def _deviation(plugin: str, wanted: str | None, ours: str | None, case: Json) -> str:
    if (wanted, ours) != ("QueueSkip", "Queue"):
        return ""
    return deviation(plugin, case, _hint_of)


def _as_counted(wanted: str | None, ours: str | None) -> tuple[str | None, str | None]:
    """An error counts as Queue for the queue: where upstream's fails, ours may say Queue."""
    return (
        ("Queue", "Queue") if wanted == "error" and ours in ("error", "Queue") else (wanted, ours)
    )


def _plain(hint: str) -> str:
    """Of an error only the fact is compared."""
    return "error" if hint.startswith("error") else hint


def _strongest(by_event: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Of several events: an error counts more than Queue, Queue more than QueueSkip."""
    found: dict[str, str] = {}
    for answers in by_event:
        for plugin, answer in answers.items():
            found[plugin] = max(found.get(plugin, answer), answer, key=_RANKS.index)
    return found


def _compare_moves(
    held: HintWorld, answers: Json, missing: Missing, deviating: Mapping[str, str], sheet: Sheet
) -> None:
    """Where the real queues have the pod after the change."""
    recorded: Mapping[str, Mapping[str, str]] = answers.get("move") or {}
    gated_by = answers.get("gatedBy", "")
    if gated_by in missing.plugins:
        sheet.pass_over("move", [gated_by])  # nobody holds the pod back here
        return
    hints: Mapping[str, str] = answers.get("hints") or {}
    expected: dict[tuple[str, str], str | None] = {
        (room.state, room.plugin): None if room.plugin in hints else "unschedulable"
        for room in held.tap.rooms
    }
    for state, places in recorded.items():
        expected.update({(state, plugin): place for plugin, place in places.items()})
    newest = held.tap.pod
    found = {(room.state, room.plugin): room.place_after(newest) for room in held.tap.rooms}
    for (state, plugin), place in expected.items():
        ours = found.get((state, plugin))
        if missing.behind(plugin):
            sheet.pass_over("move", missing.behind(plugin))
        elif plugin in deviating and ours == _WOKEN.get(state):
            sheet.deviates("move", deviating[plugin])
        else:
            sheet.compare("move", place, ours, f"{state} {plugin}")
