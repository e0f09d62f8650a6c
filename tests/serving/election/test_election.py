"""The rules of the election, moment by moment, and the leader's gauge."""

import pytest
from prometheus_client import CollectorRegistry

from bayplan.serving.election.election import (
    Election,
    ElectionSettings,
    LeaderGauge,
    LeaseRecord,
    identity_of,
)

# ---- election -------------------------------------------------------------------------------


SETTINGS = ElectionSettings()


def record_of(holder: str, renewed: str = "t1", **fields: int) -> LeaseRecord:
    fields = {"lease_duration_seconds": 15, **fields}
    return LeaseRecord(holder, acquire_time="t0", renew_time=renewed, **fields)


def election(identity: str = "a", settings: ElectionSettings = SETTINGS) -> Election:
    return Election(identity, settings)


def leader(sent_seconds: float = 0.0) -> Election:
    leading = election()
    record = leading.next_record(sent_seconds, 0.0)
    assert record is not None
    leading.wrote(record, sent_seconds)
    return leading


def test_upstreams_durations_are_the_default():
    assert ElectionSettings(15.0, 10.0, 2.0) == SETTINGS


def test_a_lease_without_a_holder_is_taken_without_counting_a_transition():
    record = election().next_record(0.0, 0.0)
    assert record == LeaseRecord(
        "a", 15, "1970-01-01T00:00:00.000000Z", "1970-01-01T00:00:00.000000Z", 0
    )


def test_the_lease_of_another_is_respected_until_it_is_unchanged_for_its_duration():
    result = election()
    result.observe(record_of("b"), 100.0)
    assert result.next_record(114.9, 0.0) is None
    assert result.next_record(115.0, 0.0) is not None


def test_each_observed_renewal_restarts_the_wait():
    result = election()
    result.observe(record_of("b", "t1"), 100.0)
    result.observe(record_of("b", "t2"), 110.0)
    assert result.next_record(124.9, 0.0) is None


def test_reading_the_same_record_does_not_restart_the_wait():
    result = election()
    result.observe(record_of("b"), 100.0)
    result.observe(record_of("b"), 110.0)
    assert result.next_record(115.0, 0.0) is not None


def test_the_lease_duration_of_the_holder_applies():
    result = election()
    result.observe(record_of("b", lease_duration_seconds=60), 0.0)
    assert result.next_record(59.0, 0.0) is None


def test_a_released_lease_is_free_at_once():
    candidate = election()
    candidate.observe(record_of("", lease_transitions=4), 100.0)
    record = candidate.next_record(100.0, 0.0)
    assert record is not None
    assert (record.holder_identity, record.lease_transitions) == ("a", 5)


def test_a_takeover_counts_a_transition_and_a_renewal_does_not():
    candidate = election()
    candidate.observe(record_of("b", lease_transitions=2), 0.0)
    acquired = candidate.next_record(15.0, 1000.0)
    assert acquired is not None
    assert acquired.lease_transitions == 3
    candidate.wrote(acquired, 15.0)
    renewed = candidate.next_record(17.0, 1002.0)
    assert renewed is not None
    assert renewed.lease_transitions == 3
    assert renewed.acquire_time == acquired.acquire_time
    assert renewed.renew_time > acquired.renew_time


def test_no_candidate_leads_before_the_api_server_accepts_the_record():
    candidate = election()
    candidate.next_record(0.0, 0.0)
    assert not candidate.is_leader(0.0)


def test_leadership_ends_at_the_renew_deadline_counted_from_sending():
    result = leader(sent_seconds=100.0)
    assert result.is_leader(109.9)
    assert not result.is_leader(110.0)
    assert result.deadline_seconds == 110.0


def test_a_holder_that_stops_at_its_deadline_stops_before_another_starts():
    """The other candidate may have read the record at the moment of sending."""
    old, other = leader(sent_seconds=100.0), election("b")
    other.observe(record_of("a"), 100.0)
    for tenth in range(1000, 1200):
        moment = tenth / 10
        assert not (old.is_leader(moment) and other.next_record(moment, 0.0) is not None)


def test_a_leader_that_sees_another_holder_stops_leading():
    result = leader()
    result.observe(record_of("b"), 1.0)
    assert not result.is_leader(1.0)
    assert result.holder == "b"


def test_reading_our_own_record_is_not_a_renewal():
    """A write whose answer was lost does not count; only a later confirmed write does."""
    result = election()
    result.observe(record_of("a"), 5.0)
    assert not result.is_leader(5.0)
    assert result.next_record(5.0, 0.0) is not None


def test_a_resigned_candidate_does_not_lead_regardless_of_the_lease():
    result = leader()
    result.resign()
    assert not result.is_leader(0.0)
    assert result.deadline_seconds is None


def test_a_released_record_has_no_holder_and_keeps_the_transitions():
    record = leader().release_record(60.0)
    assert (record.holder_identity, record.lease_duration_seconds) == ("", 1)
    assert record.renew_time == "1970-01-01T00:01:00.000000Z"


def test_a_renew_deadline_beyond_the_lease_duration_is_a_bug():
    with pytest.raises(AssertionError):
        Election("a", ElectionSettings(10.0, 10.0, 2.0))


def test_an_identity_contains_its_host_and_is_valid_in_the_api():
    assert identity_of("node 1/x", "f00") == "node-1-x_f00"
    assert identity_of("", "f00") == "unknown_f00"


# ---- leader metrics -------------------------------------------------------------------------


def test_the_gauge_is_computed_when_it_is_read() -> None:
    registry, leads = CollectorRegistry(), [False]
    registry.register(LeaderGauge("bayplan", lambda: leads[0]))

    def value() -> float | None:
        return registry.get_sample_value("leader_election_master_status", {"name": "bayplan"})

    assert value() == 0.0
    leads[0] = True
    assert value() == 1.0
