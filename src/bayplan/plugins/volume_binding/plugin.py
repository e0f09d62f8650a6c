"""VolumeBinding, the plugin: from claims to bound volumes. Upstream: plugins/volumebinding."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, final

import msgspec

from bayplan.config.problems import ConfigError
from bayplan.framework.arithmetic import uniform
from bayplan.framework.events import ClusterEventWithHint
from bayplan.framework.interface import (
    CycleState,
    EnqueueExtensions,
    FilterPlugin,
    PluginArgs,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
    SignPlugin,
)
from bayplan.framework.status import SKIP, Code, Rejection, Status
from bayplan.framework.utilization_shape import (
    MAX_SHAPE_SCORE,
    MAX_UTILIZATION,
    UtilizationShapePoint,
    broken_line,
    shape_problems,
)
from bayplan.plugins.volume_binding.binding import NO_NODE, NO_POD, BindingFailed, Progress
from bayplan.plugins.volume_binding.claims import PodClaims, pod_claims
from bayplan.plugins.volume_binding.decision import (
    Decision,
    claim_write,
    decide,
    volume_write,
)
from bayplan.plugins.volume_binding.finding import find_volumes
from bayplan.plugins.volume_binding.hints import registered_events
from bayplan.plugins.volume_binding.scoring import scores
from bayplan.ports import ApiError, BindPort, OutcomeUnknownError
from bayplan.problems import Problem
from bayplan.state.change_log import Facet
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo, PodShape
from bayplan.state.volumes import STORAGE_KINDS

#: Between two looks at what the volume controller has done.
POLL_SECONDS: Final = 1.0
TIMED_OUT: Final = "binding volumes: context deadline exceeded"


#: The more room is left, the better.
_EMPTIEST: Final = (
    UtilizationShapePoint(utilization=0, score=MAX_SHAPE_SCORE),
    UtilizationShapePoint(utilization=MAX_UTILIZATION, score=0),
)


class VolumeBindingArgs(PluginArgs, frozen=True):
    """How long to wait for the volume controller, and how nodes are scored by their storage."""

    bind_timeout_seconds: Annotated[int, msgspec.Meta(ge=0)] = 600
    #: Without points: the more room is left, the better.
    shape: tuple[UtilizationShapePoint, ...] = _EMPTIEST

    def __post_init__(self) -> None:
        if not self.shape:
            msgspec.structs.force_setattr(self, "shape", _EMPTIEST)

    def problems(self) -> Iterable[tuple[str, str]]:
        return shape_problems("shape", self.shape)


@dataclass(slots=True)
class Notes:
    """What one attempt knows; ``decision`` from Reserve on, None where all is bound."""

    claims: PodClaims
    decision: Decision | None = None


@final
class VolumeBinding(
    PreFilterPlugin,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ReservePlugin,
    PreBindPlugin,
    EnqueueExtensions,
    SignPlugin,
):
    """Finds volumes for a pod's claims, reserves them, and waits until they are bound."""

    name = "VolumeBinding"
    args_type = VolumeBindingArgs
    facets = Facet.LABELS | Facet.STORAGE
    kinds = STORAGE_KINDS
    signs_shape = True
    ignores_resizes = True
    facets_unless_signed = Facet(0)
    allows_parallel_pre_bind = True
    gates = ("StorageCapacityScoring",)

    def setup(self) -> None:
        args: VolumeBindingArgs = self.args or VolumeBindingArgs()
        self._scores = self.handle.gates.enabled("StorageCapacityScoring")
        if args.shape is not _EMPTIEST and not self._scores:
            found = "shape has no meaning while the gate StorageCapacityScoring is off"
            wanted = "remove it, or turn the gate on"
            raise ConfigError([Problem(f"args of {self.instance_name}", found, wanted)])
        self._timeout_seconds = args.bind_timeout_seconds
        self._line = broken_line([(point.utilization, point.score) for point in args.shape])

    def _notes(self, state: CycleState) -> Notes | None:
        """None: the pod has no claims."""
        return state.get(self.instance_name)

    def concerns(self, shape: PodShape) -> bool:
        return bool(shape.volumes.claims)

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        if not pod.shape.volumes.claims:
            return SKIP
        claims = pod_claims(self.handle.volumes, pod)
        if isinstance(claims, Status):
            return claims
        state[self.instance_name] = Notes(claims)
        return None

    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        notes = self._notes(state)
        if notes is not None:
            yield from find_volumes(self.handle.volumes, notes.claims, nodes).rejections()

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        """It skips where storage is not scored, as upstream's: not for pods without claims."""
        return None if self._scores else SKIP

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: how well the claims use what storage there is; 0..100."""
        notes = self._notes(state)
        if notes is None or not notes.claims.delayed:
            return uniform(0, len(nodes))
        found = find_volumes(self.handle.volumes, notes.claims, nodes)
        return scores(found, self._line, len(nodes))

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        notes = self._notes(state)
        if notes is None or not notes.claims.delayed:
            return None
        nodes = self.handle.snapshot.nodes
        node = nodes.take(nodes.positions([node_name]))
        found = find_volumes(self.handle.volumes, notes.claims, node)
        assert found.fits, f"{node_name} took {pod!r} and has no volumes for it"
        notes.decision = decide(found, node_name)
        notes.decision.assume(self.handle.volumes)
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        notes = self._notes(state)
        if notes is not None and notes.decision is not None:
            notes.decision.restore(self.handle.volumes)

    def pre_bind_preflight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        notes = self._notes(state)
        return SKIP if notes is None or notes.decision is None else None

    async def pre_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> Status | None:
        notes = self._notes(state)
        if notes is None or notes.decision is None:
            return None
        try:
            await _write(notes.decision, port)
            return await self._wait(notes.decision, pod, port)
        except (ApiError, OutcomeUnknownError) as problem:
            return Status(Code.ERROR, (str(problem),))
        except BindingFailed as problem:
            return Status(Code.ERROR, (f"binding volumes: {problem}",))

    async def _wait(self, decision: Decision, pod: PodInfo, port: BindPort) -> Status | None:
        """Until all is bound. Raises BindingFailed."""
        until = self.handle.now_seconds + self._timeout_seconds
        while True:
            await port.sleep(POLL_SECONDS)
            if self._is_complete(decision, pod):
                return None
            if self.handle.now_seconds + POLL_SECONDS > until:
                return Status(Code.ERROR, (TIMED_OUT,))

    def _is_complete(self, decision: Decision, pod: PodInfo) -> bool:
        """Raises BindingFailed."""
        node = self.handle.volumes.node(decision.node_name)
        if node is None:
            raise BindingFailed(NO_NODE.format(decision.node_name))
        if not self.handle.volumes.is_placed(pod):
            raise BindingFailed(NO_POD.format(pod.name))
        return Progress(self.handle.volumes, node).is_complete(decision)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return registered_events()

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """The claims by their names; claims made for the pod alone are nobody else's.

        Inline drivers matter to a hint only.
        """
        volumes = pod.shape.volumes
        if volumes.has_ephemeral:
            return None
        names = tuple(volumes.claim_names())
        return (pod.namespace, names, volumes.inline_drivers) if names else ()


async def _write(decision: Decision, port: BindPort) -> None:
    """What was written stays written: there is no way back. Raises ApiError and such."""
    for binding in decision.bindings:
        if binding.new is not None:
            await port.patch(*volume_write(binding))
        binding.is_written = True
    for provision in decision.provisions:
        await port.patch(*claim_write(provision))
        provision.is_written = True
