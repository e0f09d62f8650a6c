"""leader_election_master_status: 1 for who leads, as all Kubernetes components have it.

Leader election on a Lease, as a state machine: no I/O and no clock of its own.

    record = election.next_record(now, epoch)      what to write; None: somebody else leads
    election.observe(record, now)                  what was read
    election.wrote(record, sent)                   what the API server took
    election.is_leader(now)                        may this replica act at this moment?

A candidate takes a lease that has not changed for its whole duration, measured on the candidate's
own clock from the moment it saw the change: clocks of different machines are never compared. A
leader counts from the moment it *sent* its last successful renewal, and stops acting once its
renew deadline has passed since: that is before anybody else may take the lease. It stays stopped
then; whoever lost the lease starts anew. Upstream: client-go tools/leaderelection.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from bayplan.clock import rfc3339_micro
from bayplan.metrics import described

# ---- leader metrics -------------------------------------------------------------------------


@final
class LeaderGauge(Collector):
    """Asked when it is looked at. Upstream: component-base/metrics/prometheus/clientgo."""

    def __init__(self, lease_name: str, leads: Callable[[], bool]) -> None:
        self._lease_name = lease_name
        self._leads = leads

    def collect(self) -> Iterable[GaugeMetricFamily]:
        text = "Whether this replica leads (1) or stands by (0)."
        name = "leader_election_master_status"
        family = GaugeMetricFamily(name, described(name, text), labels=["name"])
        family.add_metric([self._lease_name], float(self._leads()))
        yield family


# ---- election -------------------------------------------------------------------------------


#: Delays between tries are drawn from 1 to this times the retry period. Upstream: JitterFactor
#: adds up to 1.2 times the period.
JITTER_FACTOR = 1.2


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    """Upstream's three durations, with its defaults."""

    #: How long a lease is good for since it was last renewed.
    lease_duration_seconds: float = 15.0
    #: After so long without a renewal the leader gives up; less than the lease lasts.
    renew_deadline_seconds: float = 10.0
    #: Between two tries.
    retry_period_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The part of a Lease that an election is about (spec of coordination.k8s.io/v1)."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: int = 0


@final
class Election:
    """One candidate's view of one lease."""

    def __init__(self, identity: str, settings: ElectionSettings) -> None:
        assert settings.renew_deadline_seconds < settings.lease_duration_seconds
        self.identity = identity
        self.settings = settings
        self._observed = LeaseRecord()
        self._observed_seconds = float("-inf")
        #: When the last renewal that succeeded was sent; None: it is not ours.
        self._renewed_seconds: float | None = None

    # ---- what is asked --------------------------------------------------------------------

    @property
    def holder(self) -> str:
        """Who leads, as far as was seen; "" for nobody."""
        return self._observed.holder_identity

    def is_leader(self, now_seconds: float) -> bool:
        """Whether this replica may act at this moment."""
        deadline = self.deadline_seconds
        return deadline is not None and now_seconds < deadline

    @property
    def deadline_seconds(self) -> float | None:
        """When leading ends unless the lease is renewed before; None: it does not lead."""
        if self._renewed_seconds is None:
            return None
        return self._renewed_seconds + self.settings.renew_deadline_seconds

    # ---- what happens ---------------------------------------------------------------------

    def observe(self, record: LeaseRecord, now_seconds: float) -> None:
        """The lease was read; one that does not exist is an empty record."""
        if record != self._observed:
            self._observed, self._observed_seconds = record, now_seconds
        if record.holder_identity != self.identity:
            self._renewed_seconds = None

    def next_record(self, now_seconds: float, epoch_seconds: float) -> LeaseRecord | None:
        """What to write to take or keep the lease; None while it is somebody else's."""
        seen, now = self._observed, rfc3339_micro(epoch_seconds)
        record = LeaseRecord(
            holder_identity=self.identity,
            lease_duration_seconds=int(self.settings.lease_duration_seconds),
            acquire_time=now,
            renew_time=now,
            lease_transitions=seen.lease_transitions,
        )
        if seen.holder_identity == self.identity:
            return replace(record, acquire_time=seen.acquire_time)
        if seen == LeaseRecord():
            return record
        if seen.holder_identity and now_seconds < self._free_seconds:
            return None
        return replace(record, lease_transitions=seen.lease_transitions + 1)

    def wrote(self, record: LeaseRecord, sent_seconds: float) -> None:
        """The API server took ``record``, in a request sent at that moment."""
        self._observed, self._observed_seconds = record, sent_seconds
        is_ours = record.holder_identity == self.identity
        self._renewed_seconds = sent_seconds if is_ours else None

    def resign(self) -> None:
        """From now on this replica does not act, whatever the lease says."""
        self._renewed_seconds = None

    def release_record(self, epoch_seconds: float) -> LeaseRecord:
        """What to write so that another need not wait. Upstream: tryRelease."""
        now = rfc3339_micro(epoch_seconds)
        return replace(
            self._observed,
            holder_identity="",
            lease_duration_seconds=1,
            acquire_time=now,
            renew_time=now,
        )

    @property
    def _free_seconds(self) -> float:
        """When a lease that is not renewed may be taken by another."""
        return self._observed_seconds + self._observed.lease_duration_seconds


_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def identity_of(host_name: str, token: str) -> str:
    """Who a replica is: never the same twice, so that one that restarts waits like any other."""
    return f"{_UNSAFE.sub('-', host_name) or 'unknown'}_{token}"
