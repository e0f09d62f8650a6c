"""Leases as the API has them."""

from bayplan.serving.election import LeaseRecord
from bayplan.serving.lease import new_lease, record_of, with_record

RECORD = LeaseRecord("a", 15, "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:02.000000Z", 3)


def test_a_record_survives_being_written_and_read():
    assert record_of(with_record(new_lease("ns", "bayplan"), RECORD)) == RECORD


def test_fields_have_the_names_of_the_api():
    assert with_record(new_lease("ns", "bayplan"), RECORD) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": "ns", "name": "bayplan"},
        "spec": {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:02.000000Z",
            "leaseTransitions": 3,
        },
    }


def test_a_lease_that_says_nothing_is_nobodys():
    assert record_of({"spec": {"holderIdentity": None}}) == LeaseRecord()
    assert record_of(new_lease("ns", "bayplan")) == LeaseRecord()


def test_the_version_it_was_read_at_stays_so_that_a_change_meanwhile_is_a_conflict():
    lease = new_lease("ns", "bayplan")
    lease["metadata"]["resourceVersion"] = "7"
    assert with_record(lease, RECORD)["metadata"]["resourceVersion"] == "7"
