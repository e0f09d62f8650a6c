"""Checks of what runs once per pod: gates, order, PostFilter, Reserve, Permit and the binding.

`SamplePort` is the API that PreBind and Bind write to in these checks.
"""

from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any, Final, cast, final

import msgspec

from bayplan.adapters.embedded.json_merge import merge_patch
from bayplan.api.objects import ApiObject, Pod, decode
from bayplan.clock import cpu_seconds
from bayplan.framework import validation
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import (
    BindPlugin,
    JointPlacementScore,
    PermitPlugin,
    PlacementAssignments,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
)
from bayplan.framework.runtime import PERMIT_RESULT, POST_FILTER_RESULT, wait_seconds
from bayplan.framework.status import (
    Code,
    NodeToStatus,
    Status,
    code_of,
    is_skip,
    is_success,
    unschedulable,
)
from bayplan.framework.types import MAX_NODE_SCORE, QueuedPodInfo
from bayplan.objects.object_store import ObjectStore
from bayplan.ports import PatchPodStatus
from bayplan.state.pod_groups import GroupKey, GroupState
from bayplan.state.pods import PodInfo
from bayplan.testing.cases import PluginSubject, Scene
from bayplan.testing.evaluation import CheckFailed
from bayplan.testing.fingerprints import fingerprint

# ---- sample port ----------------------------------------------------------------------------


@final
class SamplePort:
    """ports.BindPort of a cluster in which everything succeeds at once."""

    def __init__(self, objects: ObjectStore[Any]) -> None:
        self._objects = objects
        self._bound: dict[tuple[str, str], Pod] = {}
        #: Writes about pods: statuses, and the keys of evicted pods.
        self.patches: list[PatchPodStatus] = []
        self.deleted: list[str] = []

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        self._bound[(pod.namespace, pod.name)] = pod.on_node(node_name).pod

    def is_bound(self, pod: PodInfo) -> bool:
        return (pod.namespace, pod.name) in self._bound

    async def get_pod(self, namespace: str, name: str) -> Pod:
        return self._bound[(namespace, name)]

    async def read(self, kind: str, namespace: str, name: str) -> ApiObject:
        stored = self._objects.of(kind).get(name, namespace)
        assert stored is not None, f"there is no {kind} {namespace}/{name}"
        return stored

    async def patch(
        self, kind: str, namespace: str, name: str, patch: dict[str, Any], subresource: str = ""
    ) -> ApiObject:
        old = await self.read(kind, namespace, name)
        return self._put(kind, merge_patch(msgspec.to_builtins(old), patch))

    async def create_object(self, kind: str, content: dict[str, Any]) -> ApiObject:
        meta = {"name": "created", "uid": "created", **content.get("metadata", {})}
        return self._put(kind, {**content, "metadata": meta})

    async def delete_object(self, kind: str, namespace: str, name: str, uid: str) -> None:
        self._objects.of(kind).remove(await self.read(kind, namespace, name))

    async def patch_pod_status(self, patch: PatchPodStatus) -> None:
        self.patches.append(patch)

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        self.deleted.append(f"{namespace}/{name}")

    def _put(self, kind: str, content: dict[str, Any]) -> ApiObject:
        stored = decode(kind, content)
        self._objects.of(kind).put(stored)
        return stored

    async def sleep(self, seconds: float) -> None: ...


# ---- state checks ---------------------------------------------------------------------------


#: PreEnqueue runs on every move to activeQ: its mean time must not exceed this.
PRE_ENQUEUE_CPU_SECONDS_MAX: Final = 0.001
_ROUNDS: Final = 20

_REJECTIONS: Final = frozenset(validation.REJECTION_CODES)
#: Attributes that are not the plugin's own state.
_NOT_ITS_OWN: Final = ("handle", "args")


def answers_with_its_codes(subject: PluginSubject, scene: Scene) -> None:
    """PreFilter, PreScore and PreEnqueue return codes that these points allow."""
    plugin, nodes = scene.plugin, scene.cluster.lend().nodes
    for _, each in scene.pods:
        state = CycleState()
        if isinstance(plugin, PreEnqueuePlugin):
            _status(subject, plugin.pre_enqueue, (each,), _REJECTIONS)
        if isinstance(plugin, PreFilterPlugin):
            status = _result(subject, plugin.pre_filter, (state, each, nodes))
            if isinstance(status, Status):
                allowed = {*_REJECTIONS, Code.SKIP} - {Code.PENDING}
                _check_code(subject, plugin.pre_filter, status, allowed)
                if status.code is not Code.SUCCESS:
                    continue
        if isinstance(plugin, PreScorePlugin):
            _status(subject, plugin.pre_score, (state, each, nodes), {Code.SKIP})


def post_filters_with_its_codes(subject: PluginSubject, scene: Scene) -> None:
    """PostFilter rejects, or succeeds with a nomination."""
    plugin = scene.plugin
    if not isinstance(plugin, PostFilterPlugin):
        return
    nodes = scene.cluster.lend().nodes
    framework = scene.cluster.framework(plugin.handle.profile_name)
    rejected = {name: unschedulable("full").with_plugin(subject.name) for name in nodes.names()}
    for _, each in scene.pods:
        state = CycleState()
        if not is_success(framework.run_pre_filter(state, each, nodes)[1]):
            continue
        nomination, status = _pair(
            subject, plugin.post_filter, (state, each, NodeToStatus(rejected)), POST_FILTER_RESULT
        )
        _check_code(subject, plugin.post_filter, status, _REJECTIONS)
        if code_of(status) is Code.SUCCESS and nomination is None:
            raise subject.failed("post_filter succeeds without a nomination: it must say where")


def sorts_its_queue(subject: PluginSubject, scene: Scene) -> None:
    """Keys of any two pods can be compared, and a pod has the same key each time."""
    plugin = scene.plugin
    if not isinstance(plugin, QueueSortPlugin):
        return
    queued = [QueuedPodInfo(each, float(n), n) for n, (_, each) in enumerate(scene.pods)]
    keys = [plugin.key(each) for each in queued]
    if keys != [plugin.key(each) for each in queued]:
        raise subject.failed("key says something else when it is asked again")
    try:
        sorted(keys)
    except TypeError as problem:
        place = validation.place_of(plugin.key)
        raise subject.failed(f"keys cannot be compared: {problem}{place}") from problem


def gates_quickly(subject: PluginSubject, scene: Scene) -> float:
    """Mean CPU seconds of one pre_enqueue; 0 without PreEnqueue."""
    plugin = scene.plugin
    if not isinstance(plugin, PreEnqueuePlugin):
        return 0.0
    began = cpu_seconds()
    for _ in range(_ROUNDS):
        for _, each in scene.pods:
            plugin.pre_enqueue(each)
    taken = (cpu_seconds() - began) / (_ROUNDS * len(scene.pods))
    if taken > PRE_ENQUEUE_CPU_SECONDS_MAX:
        raise subject.failed(
            f"pre_enqueue takes {1000 * taken:.1f} ms of CPU: it is asked on every move to "
            f"activeQ, so prepare what it needs in setup, or move the question to PreFilter"
        )
    return taken


# ---- reserve and unreserve -----------------------------------------------------------------


def unreserve_undoes_reserve(subject: PluginSubject, scene: Scene) -> None:
    """Unreserve is harmless without a Reserve before it, and if repeated."""
    plugin = scene.plugin
    if not isinstance(plugin, ReservePlugin):
        return
    names = sorted(scene.nodes)
    pods = [each.on_node(scene.draws.one(names)) for _, each in scene.pods]
    scene.cluster.lend()
    for each in pods:
        state, before = CycleState(), _own(plugin)
        plugin.unreserve(state, each, each.node_name)
        if _own(plugin) != before:
            raise subject.failed("unreserve changes its state where no reserve came before it")
    _reserve_and_undo(subject, plugin, pods)


def _reserve_and_undo(subject: PluginSubject, plugin: ReservePlugin, pods: list[PodInfo]) -> None:
    for index, each in enumerate(pods):
        state, before = CycleState(), _own(plugin)
        _status(subject, plugin.reserve, (state, each, each.node_name), _REJECTIONS)
        plugin.unreserve(state, each, each.node_name)
        if _own(plugin) != before:
            raise subject.failed(
                "unreserve does not undo reserve: its state is another than before"
            )
        plugin.unreserve(state, each, each.node_name)
        if _own(plugin) != before:
            raise subject.failed(
                "unreserve is not idempotent: a second one changes its state again"
            )
        if index % 2:
            # The next ones find a reservation that stays.
            plugin.reserve(CycleState(), each, each.node_name)


def _own(plugin: ReservePlugin) -> str:
    return fingerprint(plugin, leave_out=_NOT_ITS_OWN)


# ---- placements of groups -------------------------------------------------------------------


def scores_placements(subject: PluginSubject, scene: Scene) -> None:
    """PlacementScore gives each placement an int in 0..100, and the same one when called again."""
    plugin = scene.plugin
    if not isinstance(plugin, PlacementScorePlugin) or not scene.nodes or not scene.pods:
        return
    nodes, pods = scene.cluster.lend().nodes, [each for _, each in scene.pods]
    group = GroupState(GroupKey("", "default", "group"))
    placements = [PlacementAssignments("", nodes, pods[:count]) for count in (1, len(pods))]

    def scores() -> Any:
        method, normalize = plugin.score_placement, plugin.normalize_placements
        raw = [_result(subject, method, (group, placement)) for placement in placements]
        if isinstance(plugin, JointPlacementScore):
            together = _result(subject, plugin.score_placements, (group, placements))
            if list(together) != raw:
                raise subject.failed(f"score_placements gives {together}, one by one {raw}")
        return _result(subject, normalize, (group, raw))

    first = scores()
    if not all(isinstance(score, int) and 0 <= score <= MAX_NODE_SCORE for score in first):
        expected = (
            f"wanted ints in 0..{MAX_NODE_SCORE}{validation.place_of(plugin.score_placement)}"
        )
        raise subject.failed(f"the scores of placements are {first}; {expected}")
    if list(scores()) != list(first):
        raise subject.failed("the scores of equal placements differ")


def generates_placements(subject: PluginSubject, scene: Scene) -> None:
    """PlacementGenerate returns placements on nodes of the view, or a status that rejects."""
    plugin = scene.plugin
    if not isinstance(plugin, PlacementGeneratePlugin):
        return
    nodes, method = scene.cluster.lend().nodes, plugin.generate_placements
    group = GroupState(GroupKey("", "default", "group"))
    answer = _result(subject, method, (group, nodes))
    if isinstance(answer, Status):
        _check_code(subject, method, answer, _REJECTIONS)
        return
    try:
        validation.PlacementCheck().check(answer, nodes)
    except validation.WrongAnswer as problem:
        raise subject.failed(problem.message_of(method)) from problem


# ---- permit and binding --------------------------------------------------------------------


def permits_and_binds(subject: PluginSubject, scene: Scene) -> None:
    """Permit and the steps of the binding cycle return codes that these points allow."""
    plugin, port = scene.plugin, SamplePort(scene.cluster.store)
    scene.cluster.lend()
    for _, unplaced in scene.pods:
        name = scene.draws.one(sorted(scene.nodes))
        each, state = unplaced.on_node(name), CycleState()
        if isinstance(plugin, PermitPlugin):
            status, seconds = _pair(subject, plugin.permit, (state, each, name), PERMIT_RESULT)
            _check_code(subject, plugin.permit, status, {*_REJECTIONS, Code.WAIT})
            if code_of(status) is Code.WAIT:
                _check_wait(subject, plugin, seconds)
        if isinstance(plugin, PreBindPlugin):
            preflight = plugin.pre_bind_preflight
            if not is_skip(_status(subject, preflight, (state, each, name), {Code.SKIP})):
                _status(subject, plugin.pre_bind, (state, each, name, port), _REJECTIONS)
        if isinstance(plugin, BindPlugin):
            allowed = {*_REJECTIONS, Code.SKIP}
            status = _status(subject, plugin.bind, (state, each, name, port), allowed)
            if is_success(status) and not port.is_bound(each):
                raise subject.failed(
                    f"bind succeeded, and the pod is not bound: write await port.bind(pod, "
                    f"node_name), or return SKIP{validation.place_of(plugin.bind)}"
                )
        if isinstance(plugin, PostBindPlugin):
            _result(subject, plugin.post_bind, (state, each, name, port))


def _check_wait(subject: PluginSubject, plugin: PermitPlugin, seconds: Any) -> None:
    try:
        wait_seconds(seconds)
    except validation.WrongAnswer as problem:
        raise _failed(subject, plugin.permit, problem) from None


# ---- one call ------------------------------------------------------------------------------


def _result(subject: PluginSubject, method: Callable[..., Any], values: Sequence[Any]) -> Any:
    """What a method returns. Raises CheckFailed where it raises."""
    try:
        answer = method(*values)
        return _ended(cast("Steps", answer)) if isinstance(answer, Coroutine) else answer
    except Exception as problem:
        raise _failed(subject, method, problem) from problem


Steps = Coroutine[Any, Any, Any]


def _ended(steps: Steps) -> Any:
    """Nothing here waits, so a coroutine ends at its first step."""
    try:
        steps.send(None)
    except StopIteration as ended:
        return ended.value
    steps.close()
    raise AssertionError("awaits something other than its port")


def _status(
    subject: PluginSubject,
    method: Callable[..., Any],
    values: Sequence[Any],
    allowed: Collection[Code],
) -> Status | None:
    """The status that a method returns. Raises CheckFailed for anything else."""
    status = _result(subject, method, values)
    _check_code(subject, method, status, allowed)
    return status


def _pair(
    subject: PluginSubject, method: Callable[..., Any], values: Sequence[Any], expected: str
) -> tuple[Any, Any]:
    answer = _result(subject, method, values)
    try:
        return validation.checked_pair(answer, expected)
    except validation.WrongAnswer as problem:
        raise _failed(subject, method, problem) from None


def _check_code(
    subject: PluginSubject, method: Callable[..., Any], answer: Any, allowed: Collection[Code]
) -> None:
    try:
        status = validation.checked(answer)
        if code_of(status) not in {*allowed, Code.SUCCESS, Code.ERROR}:
            expected = validation.codes_text((Code.SUCCESS, *sorted(allowed)))
            raise validation.WrongAnswer(str(code_of(status)), expected, method)
    except validation.WrongAnswer as problem:
        raise _failed(subject, method, problem) from None


def _failed(subject: PluginSubject, method: Callable[..., Any], problem: Exception) -> CheckFailed:
    if isinstance(problem, validation.WrongAnswer):
        return subject.failed(problem.message_of(problem.method or method))
    name = method.__name__
    return subject.failed(
        f"{name} raised {type(problem).__name__}: {problem}{validation.line_of(problem)}"
    )
