"""Leader election on a Lease, as a state machine: no I/O and no clock of its own.

    record = election.next_record(now, epoch)      the record to write; None: another replica leads
    election.observe(record, now)                  a record was read
    election.wrote(record, sent)                   the API server accepted a record
    election.is_leader(now)                        may this replica act at this moment?

A candidate takes a lease that has not changed for its whole duration, measured on the candidate's
own clock from the moment it saw the change: clocks of different machines are never compared. A
leader counts from the moment it *sent* its last successful renewal, and stops acting once its renew
deadline has passed since: that is before another replica may take the lease. A leader that has
stopped does not lead again; its process starts anew. Upstream: client-go tools/leaderelection.

A lease may be deleted while its leader acts. Upstream's candidates create it at once, and then two
lead until the old leader's next renewal fails. A candidate here that has seen a holder waits for
the lease's duration from the moment it finds the lease gone: the last renewal was earlier, so the
old leader's deadline has passed by then, or that leader has created the lease again. A candidate
that has never seen the lease cannot know of a leader, and creates the lease at once.

`LeaderGauge` is the metric leader_election_master_status: 1 for the leader, as in all Kubernetes
components.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from bayplan.clock import rfc3339_micro

# ---- leader metrics -------------------------------------------------------------------------


@final
class LeaderGauge(Collector):
    """Read when the metric is collected. Upstream: component-base/metrics/prometheus/clientgo."""

    def __init__(self, lease_name: str, leads: Callable[[], bool]) -> None:
        self._lease_name = lease_name
        self._leads = leads

    def collect(self) -> Iterable[GaugeMetricFamily]:
        text = "Whether this replica leads (1) or stands by (0)."
        name = "leader_election_master_status"
        family = GaugeMetricFamily(name, text, labels=["name"])
        family.add_metric([self._lease_name], float(self._leads()))
        yield family


# ---- election -------------------------------------------------------------------------------


#: Delays between attempts are drawn from 1 to this times the retry period. Upstream: JitterFactor
#: adds up to 1.2 times the period.
JITTER_FACTOR = 1.2


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    """Upstream's three durations, with its defaults."""

    #: How long a lease is valid after its last renewal.
    lease_duration_seconds: float = 15.0
    #: How long a leader leads without a renewal; less than the lease's duration.
    renew_deadline_seconds: float = 10.0
    #: The time between two attempts to take or renew the lease.
    retry_period_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The fields of a Lease that an election reads (spec of coordination.k8s.io/v1)."""

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
        #: When a lease that was deleted under another holder may be created.
        self._free_again_seconds = float("-inf")
        #: When the last successful renewal was sent; None: this replica does not have the lease.
        self._renewed_seconds: float | None = None

    # ---- queries --------------------------------------------------------------------------

    @property
    def holder(self) -> str:
        """The last observed holder of the lease; "": none."""
        return self._observed.holder_identity

    def is_leader(self, now_seconds: float) -> bool:
        """Whether this replica may act at this moment."""
        deadline = self.deadline_seconds
        return deadline is not None and now_seconds < deadline

    def is_free(self, now_seconds: float) -> bool:
        """Whether no other leader can act any more, of those whose lease was deleted."""
        return now_seconds >= self._free_again_seconds

    @property
    def deadline_seconds(self) -> float | None:
        """When the leadership ends unless the lease is renewed before; None: this replica does not
        lead."""
        if self._renewed_seconds is None:
            return None
        return self._renewed_seconds + self.settings.renew_deadline_seconds

    # ---- events ---------------------------------------------------------------------------

    def observe(self, record: LeaseRecord, now_seconds: float) -> None:
        """Note the lease as it was read; an empty record if it does not exist."""
        if record != self._observed:
            last = self._observed
            is_free = last.holder_identity in ("", self.identity) or record != LeaseRecord()
            if not is_free:
                self._free_again_seconds = now_seconds + last.lease_duration_seconds
            self._observed, self._observed_seconds = record, now_seconds
        if record.holder_identity != self.identity:
            self._renewed_seconds = None

    def next_record(self, now_seconds: float, epoch_seconds: float) -> LeaseRecord | None:
        """The record that takes or renews the lease; None while another replica has it."""
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
            return record if self.is_free(now_seconds) else None
        if seen.holder_identity and now_seconds < self._free_seconds:
            return None
        return replace(record, lease_transitions=seen.lease_transitions + 1)

    def wrote(self, record: LeaseRecord, sent_seconds: float) -> None:
        """Note that the API server accepted ``record``, and when its request was sent."""
        self._observed, self._observed_seconds = record, sent_seconds
        is_ours = record.holder_identity == self.identity
        self._renewed_seconds = sent_seconds if is_ours else None

    def resign(self) -> None:
        """From now on this replica does not act, whatever the lease says."""
        self._renewed_seconds = None

    def release_record(self, epoch_seconds: float) -> LeaseRecord:
        """The record that releases the lease, so that the next leader need not wait. Upstream:
        tryRelease."""
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
        """When another replica may take the lease unless it is renewed."""
        return self._observed_seconds + self._observed.lease_duration_seconds


_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def identity_of(host_name: str, token: str) -> str:
    """The identity of a replica, different after each start: a restarted replica waits like any
    other."""
    return f"{_UNSAFE.sub('-', host_name) or 'unknown'}_{token}"
