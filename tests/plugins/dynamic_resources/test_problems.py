"""Two ways for an allocation to end that are not the same."""

from bayplan.plugins.dynamic_resources.problems import AllocationError, NodeAllocationFailed


def test_what_is_wrong_with_a_claim_is_not_what_is_wrong_with_a_node() -> None:
    assert not issubclass(AllocationError, NodeAllocationFailed)
    assert not issubclass(NodeAllocationFailed, AllocationError)
