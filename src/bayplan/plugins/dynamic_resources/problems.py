"""What ends an allocation, other than that there are not enough devices."""


class AllocationError(Exception):
    """Something is wrong with a claim, a class or a slice: the attempt ends with an Error."""


class NodeAllocationFailed(Exception):
    """This node cannot be used, whatever is asked; others may do."""
