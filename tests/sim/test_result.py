"""What a run found, as the object that scripts read."""

import msgspec

from bayplan.sim.result import Counts, PodResult, SimulationResult, Usage
from tests.adapters.manifests import node, pod
from tests.sim.runs import simulate


def plain(result: object) -> dict[str, object]:
    found = msgspec.json.decode(msgspec.json.encode(result))
    assert isinstance(found, dict)
    return found


def test_a_pod_says_null_for_what_did_not_happen() -> None:
    assert plain(PodResult(created_at=0.0)) == {
        "node": None,
        "created_at": 0.0,
        "bound_at": None,
        "deleted_at": None,
        "controller": None,
        "attempts": 0,
        "nominated_node": None,
        "message": None,
    }


def test_counts_say_zero_for_what_there_was_none_of() -> None:
    fates = ("pods", "running", "scheduled", "unschedulable", "left_out", "other_schedulers")
    assert plain(Counts()) == dict.fromkeys((*fates, "notRecreated"), 0)


def test_the_object_has_its_keys_in_their_order() -> None:
    result = simulate(node("n1"), pod("a"))
    assert list(plain(result)) == [
        "nodes",
        "counts",
        "placements",
        "unschedulable",
        "pods",
        "seed",
        "digest",
        "simulated_seconds",
        "wall_seconds",
        "attempts",
        "usage",
        "node_usage",
        "podgroups",
        "pod_kinds",
        "passed_over",
        "failures",
        "lost",
        "notes",
    ]


def test_it_can_be_read_back() -> None:
    result = simulate(node("n1"), pod("a"))
    assert msgspec.json.decode(msgspec.json.encode(result), type=SimulationResult) == result


def test_amounts_are_whole_numbers() -> None:
    result = simulate(node("n1"), pod("a"))
    cpu = Usage(resource="cpu", requested=1000, peak=1000, allocatable=4000)
    assert cpu in result.usage
