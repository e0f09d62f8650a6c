"""The parts that depend on others, each handed what it needs out of the core of the engine."""

from collections.abc import Callable

from bayplan.config.schema import PodGroupSettings
from bayplan.engine.attempt_record import CycleEnd, OnAttempt
from bayplan.engine.attempts import Attempts
from bayplan.engine.core import EngineCore
from bayplan.engine.event_handlers import EventHandlers, PluginObjects
from bayplan.engine.failures import FailureHandler
from bayplan.engine.placements import PermitWaits, Placements
from bayplan.engine.podgroups.attempts import GroupAttempts
from bayplan.engine.podgroups.topology import Domains
from bayplan.engine.podgroups.trial import TrialSetup
from bayplan.engine.resizes import Resizes
from bayplan.engine.runs import Runs
from bayplan.engine.schedule_one import CycleRunner
from bayplan.engine.unplaced_pods import UnplacedPods
from bayplan.framework.types import QueuedPodInfo


def make_attempts(
    engine: EngineCore,
    group_settings: PodGroupSettings,
    on_attempt: OnAttempt | None,
    begins: Callable[[QueuedPodInfo], None] | None,
) -> Attempts:
    """Make the parts that make attempts and do what follows from them. ``begins``: gets each pod,
    or group, when an attempt at it begins."""
    cluster, queue, nominator = engine.cluster, engine.queue, engine.nominator
    outbox, telemetry, executor = engine.outbox, engine.telemetry, engine.executor
    runner = CycleRunner(nominator, engine.seed, engine.extenders, engine.reuse)
    resizes = Resizes(queue, cluster.pods, engine.frameworks, is_on=engine.tries_resizes)
    failures = FailureHandler(
        cluster, queue, nominator, outbox, telemetry=telemetry, resizes=resizes
    )
    end = CycleEnd(cluster, telemetry, on_attempt)
    placements = _placements(engine, failures, end, begins)
    setup = TrialSetup(
        cluster,
        engine.frameworks,
        engine.reservations,
        telemetry,
        engine.gates,
        runner,
        end,
        Domains(),
        group_settings,
    )
    unplaced = UnplacedPods(
        cluster,
        telemetry,
        executor,
        outbox,
        runner=runner,
        failures=failures,
        end=end,
        boundary=placements.boundary,
        begins=begins,
    )
    return Attempts(
        setup,
        queue,
        outbox,
        executor,
        placements=placements,
        unplaced=unplaced,
        runs=Runs(setup, queue, placements, unplaced),
        groups=GroupAttempts(
            setup,
            queue,
            outbox,
            nominator,
            waiting=engine.waiting,
            group_controller=engine.group_controller,
            failures=failures,
            placements=placements,
            pending_calls=unplaced.pending_calls,
            evicting=unplaced.evicting,
            resizes=resizes,
        ),
        resizes=resizes,
        begins=begins,
    )


def _placements(
    engine: EngineCore,
    failures: FailureHandler,
    end: CycleEnd,
    begins: Callable[[QueuedPodInfo], None] | None,
) -> Placements:
    waiting, outbox, telemetry = engine.waiting, engine.outbox, engine.telemetry
    return Placements(
        engine.cluster,
        engine.queue,
        engine.nominator,
        outbox,
        telemetry=telemetry,
        gates=engine.gates,
        extenders=engine.extenders,
        group_controller=engine.group_controller,
        permit_waits=PermitWaits(waiting, engine.executor, telemetry, outbox),
        pods_in_pre_bind=engine.pods_in_pre_bind,
        failures=failures,
        end=end,
        begins=begins,
    )


def event_handlers(engine: EngineCore, placements: Placements, resizes: Resizes) -> EventHandlers:
    """The handlers of watch events."""
    plugin_objects = PluginObjects(
        engine.cluster.objects,
        engine.frameworks,
        engine.reuse,
        engine.queue,
        listed_kinds=engine.listed_kinds,
    )
    return EventHandlers(
        engine.cluster,
        engine.queue,
        engine.nominator,
        engine.outbox,
        telemetry=engine.telemetry,
        gates=engine.gates,
        frameworks=engine.frameworks,
        plugin_objects=plugin_objects,
        group_kinds=engine.group_kinds,
        topology_levels=engine.topology_levels,
        group_controller=engine.group_controller,
        placements=placements,
        resizes=resizes,
    )
