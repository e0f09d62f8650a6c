"""Cases of pods to schedule: a cluster, a configuration, pods one after another, a queue."""

from typing import Any

from bayplan.engine.cycle import Cycle
from bayplan.framework.cluster_rules import pod_rules
from bayplan.framework.types import QueuedPodInfo
from bayplan.plugins.dynamic_resources import DynamicResources
from bayplan.state.pods import PodInfo
from bayplan.testing.clusters import SampleCluster
from tests.parity.cached_answers import SUITE, compare_cached
from tests.parity.device_answers import claim_updates, compare_allocations
from tests.parity.filter_answers import compare_gates, gates
from tests.parity.objects import load, read_pod, started
from tests.parity.pod_answers import compare_pod, compare_reserve
from tests.parity.question import PodQuestion
from tests.parity.signature_answers import compare_signatures
from tests.parity.tally import Sheet
from tests.parity.world import Remarks, World, compare_config

Json = dict[str, Any]

#: ``gates``: gates that are not at their defaults, by name. ``unknownFields``: fields of the case
#: that the version does not have.
CASE_FIELDS = frozenset(
    (
        "id",
        "suite",
        "note",
        "cluster",
        "config",
        "gates",
        "pending",
        "queue",
        "answers",
        "unknownFields",
    )
)
_GATED_FIELDS = frozenset(("pod", "signature", "preEnqueue", "feasible"))
_ANSWER_FIELDS = frozenset(("pods", "queueOrder", "queueGated", "configError", "PANIC"))


def compare_case(case: Json, sheet: Sheet) -> None:
    """Every answer of one case."""
    for name in sorted(set(case) - CASE_FIELDS):
        sheet.not_understood(f"case.{name}", is_answer=False)
    answers: Json = case.get("answers") or {}
    for name in sorted(set(answers) - _ANSWER_FIELDS):
        sheet.not_understood(name, is_answer=True)
    world = compare_config(case, sheet)
    if world is None:
        return
    load(world.cluster, case.get("cluster") or {}, sheet)
    contents: list[Json] = case.get("pending") or []
    rules = pod_rules(world.cluster.gates)
    pending = [read_pod(content, rules) for content in contents]
    for pod in pending:
        if not pod.node_name:
            world.cluster.nominator.add_nominated_pod(pod)
    recorded: list[Json] = answers.get("pods") or []
    sheet.compare("pods", len(recorded), len(pending))
    sheet.tally.cases[SUITE.format(sheet.suite)] += bool(pending)
    if world.cluster.gates.enabled("OpportunisticBatching"):
        compare_signatures(world, contents, recorded, sheet)
    for index, (pod, expected) in enumerate(zip(pending, recorded, strict=False)):
        _compare_pending(world, index, pod, expected, sheet.at(pod.key))
    _compare_queue(world, case, sheet)


def _compare_pending(world: World, index: int, pod: PodInfo, expected: Json, sheet: Sheet) -> None:
    """Compare one pod, and place it for the next ones."""
    sheet.compare("pod", expected.get("pod"), pod.key)
    profile = world.profiles[pod.scheduler_name]
    recorded = expected.get("preEnqueue") or {}
    compare_gates("preEnqueue", recorded, gates(profile.plugins, pod), sheet)
    if "feasible" not in expected:
        sheet.compare("feasible", "nothing", "always something")
    if recorded:
        _compare_gated(expected, sheet)
        return
    snapshot = world.cluster.lend()
    question = PodQuestion(profile, snapshot, pod, expected, sheet)
    cycle = compare_pod(question)
    compare_cached(question)
    _compare_claim_updates(question, cycle, world.cluster)
    chosen = expected.get("chosen")
    if chosen and snapshot.nodes.position(chosen) is not None:
        assumed = started(pod, index, chosen)
        world.cluster.cache.assume(assumed)
        world.cluster.nominator.delete_nominated_pod_if_exists(assumed)
        stays = compare_reserve(question, cycle.state, assumed)
        compare_allocations(question, world.cluster)
        if not stays:
            world.cluster.cache.forget(assumed)
    world.cluster.take_back()


def _compare_claim_updates(question: PodQuestion, cycle: Cycle, cluster: SampleCluster) -> None:
    """Compare the claims that the first PostFilter plugin deallocates for the pod."""
    cluster.writes.clear()
    plugins = question.profile.plugins.post_filter
    for plugin in plugins if question.has_no_fit(cycle) else ():
        if isinstance(plugin, DynamicResources):
            plugin.post_filter(cycle.state, question.pod, cycle.node_to_status())
    recorded: Json = question.expected.get("postFilter") or {}
    expected = recorded.get("claimUpdates") or []
    question.sheet.compare("claimUpdates", expected, claim_updates(cluster))


def _compare_gated(expected: Json, sheet: Sheet) -> None:
    """Compare a gated pod, of which nothing else is recorded."""
    for name in sorted(set(expected) - _GATED_FIELDS):
        sheet.compare(name, expected[name], None)
    sheet.compare("feasible", expected.get("feasible"), None)


# ---- the queue -----------------------------------------------------------------------------


def _compare_queue(world: World, case: Json, sheet: Sheet) -> None:
    """Compare the order in which pods leave the real queue, and the reasons of gated pods."""
    answers: Json = case.get("answers") or {}
    rules = pod_rules(world.cluster.gates)
    items = [
        (read_pod(item["pod"], rules), float(item["timestamp"])) for item in case.get("queue") or ()
    ]
    recorded_gates: Json = answers.get("queueGated") or {}
    actual_gates: dict[str, Json] = {}
    for pod, _ in items:
        actual_gates[pod.key] = gates(world.profiles[pod.scheduler_name].plugins, pod)
    for key in sorted({*actual_gates, *recorded_gates}):
        at = sheet.at(key)
        compare_gates("queueGated", recorded_gates.get(key, {}), actual_gates.get(key, {}), at)
    recorded: list[str] = answers.get("queueOrder") or []
    if not items and not recorded:
        return
    sheet.compare("queueOrder", recorded, _popped(world, items))


def _popped(world: World, items: list[tuple[PodInfo, float]]) -> list[str]:
    """Keys of the pods in the order in which the real queue pops them."""
    now = [0.0]
    queue = world.queue(lambda: now[0], Remarks())
    for pod, timestamp in sorted(items, key=lambda item: item[1]):
        now[0] = timestamp
        queue.add(pod)
    popped: list[QueuedPodInfo] = []
    while (queued := queue.pop()) is not None:
        popped.append(queued)
    return [queued.pod.key for queued in popped]
