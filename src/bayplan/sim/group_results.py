"""What became of the groups of pods in a simulation."""

from bayplan.engine.group_status import phase_of, scheduled_count
from bayplan.engine.scheduler import Scheduler
from bayplan.sim.result import PodGroupResult
from bayplan.state.pod_groups import GroupState


def group_results(scheduler: Scheduler) -> dict[str, PodGroupResult]:
    """Of all groups that have an object, by "namespace/name"; one whose name another kind's group
    has, too, is told with its API group: "namespace/name (scheduling.ming.io)"."""
    states = sorted(scheduler.pod_groups.all(), key=lambda state: (str(state.key), state.key))
    found: dict[str, PodGroupResult] = {}
    for state in states:
        name = str(state.key)
        if state.group is not None:
            known = name in found
            found[f"{name} ({state.key.api_group})" if known else name] = _result(state)
    return found


def reasons_to_wait(scheduler: Scheduler) -> dict[str, str]:
    """Why members wait that no attempt was made at, by uid: nobody writes that to the pods."""
    return {
        pod.metadata.uid or "": state.message
        for state in scheduler.pod_groups.all()
        for pod in state.pending()
        if state.message
    }


def _result(state: GroupState) -> PodGroupResult:
    status = None if state.group is None else state.group.status
    return PodGroupResult(
        phase=phase_of(state),
        min_member=state.min_member,
        scheduled=scheduled_count(state),
        running=state.running_count,
        succeeded=state.succeeded_count,
        failed=state.failed_count,
        occupied_by=None if status is None else status.occupied_by,
        schedule_start_time=None if status is None else status.schedule_start_time,
        message=state.message or None,
    )
