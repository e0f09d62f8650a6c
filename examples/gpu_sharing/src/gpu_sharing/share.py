"""GpuShare: rejects nodes without the GPUs that a pod requests, and assigns devices.

The devices are chosen in Reserve and written on the pod, as an annotation, before it is bound. See
`gpu_sharing.devices` for how they are counted from then on.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Literal, final

import numpy as np

from bayplan import (
    SKIP,
    ActionType,
    BindPort,
    Caching,
    ClusterEvent,
    ClusterEventWithHint,
    Code,
    CycleState,
    EnqueueExtensions,
    EventResource,
    Facet,
    FilterPlugin,
    NodeMask,
    NodeView,
    PluginArgs,
    PodInfo,
    PreBindPlugin,
    PreFilterPlugin,
    Rejection,
    ReservePlugin,
    Status,
    unresolvable,
    unschedulable,
)
from gpu_sharing.asks import GPU, MODEL_LABEL, AskError, GpuAsk, ask_of
from gpu_sharing.chance import number
from gpu_sharing.devices import (
    DEVICES_ANNOTATION,
    FACETS,
    Devices,
    best_fit,
    devices_of,
    show,
    written,
)
from gpu_sharing.fragmentation import least_fragmenting
from gpu_sharing.typical_pods import CONFIG_MAP, typical_pods

WRONG_MODEL = "node(s) had no GPU of a model the pod may use"
TOO_LITTLE = "Insufficient free GPU share"

#: The devices that Reserve gave, for PreBind.
_GIVEN: Final = "gpu-sharing.bayplan.dev/given"


class GpuShareArgs(PluginArgs, frozen=True):
    """Which of the devices that will do a pod is given: those with the least free, any, or those
    that leave the least fragmentation."""

    pick: Literal["bestFit", "random", "leastFragmentation"] = "bestFit"


@final
class GpuShare(
    PreFilterPlugin[GpuShareArgs], FilterPlugin, ReservePlugin, PreBindPlugin, EnqueueExtensions
):
    """Results are not cached: pods request GPUs in annotations, which signatures do not contain."""

    name = "GpuShare"
    caching = Caching(facets=FACETS | Facet.LABELS)
    kinds = (CONFIG_MAP,)

    def setup(self) -> None:
        #: Node → uid → devices, of pods whose annotation the API has not reported yet.
        self._reserved: dict[str, dict[str, tuple[int, ...]]] = {}
        self._devices = Devices(self._reserved)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        show(state, self._devices)
        try:
            return None if ask_of(pod).count else SKIP
        except AskError as problem:
            return unresolvable(str(problem))

    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        ask = ask_of(pod)
        if ask.models:
            models = nodes.labels.values(MODEL_LABEL)
            ids = [index for index, model in enumerate(models) if model in ask.models]
            other = ~np.isin(nodes.labels.ids(MODEL_LABEL), ids)
            yield nodes.reject(other, WRONG_MODEL, code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        fit_counts = (self._devices.free(nodes) >= ask.milli).sum(axis=1)
        yield nodes.reject(fit_counts < ask.count, TOO_LITTLE)

    # ---- the devices ------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        ask = ask_of(pod)
        if not ask.count:
            return None
        snapshot = self.handle.snapshot
        node = snapshot.node(node_name)
        here = self._reserved.get(node_name, {})
        others = [other for other in node.pods if other.uid != pod.uid]
        free, _ = devices_of(others, node.allocatable.get(GPU, 0), here)
        given = self._pick(pod, ask, node_name, free)
        if len(given) < ask.count:
            return unschedulable(TOO_LITTLE)
        # Pods whose annotation was reported are dropped.
        kept = {p.uid: here[p.uid] for p in others if p.uid in here and written(p) is None}
        self._reserved[node_name] = {**kept, pod.uid: given}
        state[_GIVEN] = given
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._reserved.get(node_name, {}).pop(pod.uid, None)

    def _pick(
        self, pod: PodInfo, ask: GpuAsk, node_name: str, free: Sequence[int]
    ) -> tuple[int, ...]:
        fitting = [device for device, milli in enumerate(free) if milli >= ask.milli]
        if self.args.pick == "random":
            seed = self.handle.seed
            fitting.sort(key=lambda device: number(f"{seed}/{pod.uid}/{device}"))
            return tuple(fitting[: ask.count])
        if self.args.pick == "leastFragmentation" and fitting:
            nodes = self.handle.snapshot.nodes
            position = nodes.position(node_name)
            assert position is not None
            row = np.array([free], np.int16)
            return least_fragmenting(pod, nodes.take([position]), row, typical_pods(self.handle))
        return best_fit(free, ask)

    # ---- binding ----------------------------------------------------------------------------

    def pre_bind_preflight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return None if _GIVEN in state else SKIP

    async def pre_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> Status | None:
        text = ",".join(map(str, state[_GIVEN]))
        patch = {"metadata": {"annotations": {DEVICES_ANNOTATION: text}}}
        await port.patch("v1 Pod", pod.namespace, pod.name, patch)
        return None

    # ---- what makes room --------------------------------------------------------------------

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        room = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE | ActionType.UPDATE_NODE_LABEL
        return [
            ClusterEventWithHint(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)),
            ClusterEventWithHint(ClusterEvent(EventResource.NODE, room)),
        ]
