"""What reuse of answers came to, kind of pods by kind of pods."""

from bayplan.engine.known_pods import KnownPods
from bayplan.engine.scheduler import Scheduler
from bayplan.sim.result import PodKindResult


def pod_kinds(scheduler: Scheduler) -> tuple[PodKindResult, ...]:
    """Of all profiles, those with the most cycles first; kinds that left a full table are not
    told."""
    found = [
        _result(profile, known)
        for profile in scheduler.profile_names
        for known in scheduler.reuse(profile).kinds()
    ]
    return tuple(sorted(found, key=lambda kind: (-kind.cycles, kind.profile, kind.example)))


def _result(profile: str, known: KnownPods) -> PodKindResult:
    known.count_rows()
    return PodKindResult(
        profile=profile,
        example=known.example,
        pods=known.pod_count,
        cycles=known.cycle_count,
        rows_asked=sum(counts.asked for counts in known.counts.values()),
        rows_kept=sum(counts.kept for counts in known.counts.values()),
    )
