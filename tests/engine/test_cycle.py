"""The records of a cycle about nodes that were not chosen."""

from bayplan.framework.status import Code, unresolvable, unschedulable
from tests.engine.cycle_kit import Walk, only, refused
from tests.framework.answering import answering


def test_a_rejected_pod_has_a_message_and_the_rejecting_plugins() -> None:
    walk = Walk(
        answering("A", filter=refused("n1", "n2", reason="full")),
        answering("B", filter=refused("n3", reason="tainted", code=Code.PENDING)),
    )
    cycle = walk.cycle()
    error = cycle.fit_error()
    assert error.message == "0/3 nodes are available: 1 tainted, 2 full."
    assert error.diagnosis.unschedulable_plugins == {"A", "B"}
    assert error.diagnosis.pending_plugins == {"B"}
    assert cycle.node_to_status().get("n3").plugin == "B"


def test_a_pre_filter_rejection_applies_to_all_nodes() -> None:
    walk = Walk(
        answering("N", pre_filter=only("n1")), answering("A", pre_filter=unschedulable("x"))
    )
    cycle = walk.cycle()
    error = cycle.fit_error()
    assert error.message == "0/3 nodes are available: x."
    # The plugin that narrowed is named, too: without it another node might have been feasible.
    assert error.diagnosis.unschedulable_plugins == {"A", "N"}
    assert cycle.node_to_status().get("n2") == unschedulable("x").with_plugin("A")


def test_nodes_excluded_by_pre_filter_are_counted_under_its_name() -> None:
    walk = Walk(
        answering("B", pre_filter=only("n1", "n3")),
        answering("A", pre_filter=only("n3"), filter=refused("n3", reason="full")),
    )
    cycle = walk.cycle()
    message = "node(s) didn't satisfy plugin(s) [A B]"
    assert cycle.fit_error().message == f"0/3 nodes are available: 1 full, 2 {message}."
    assert cycle.fit_error().diagnosis.unschedulable_plugins == {"A", "B"}
    assert cycle.node_to_status().get("n1") == unresolvable(message)
