"""The results of preemption, and the reviews that may change them."""

from bayplan.framework.preemption import REVIEW, Candidates
from bayplan.framework.status import Code, Status
from bayplan.testing import node, pod
from tests.plugins.preemption_kit import scene


def test_a_stored_review_gets_the_candidates_in_the_order_of_the_search() -> None:
    over = scene(node("n1", cpu=1), pod("a", cpu=1, node="n1"))
    seen: list[Candidates] = []

    def review(candidates: Candidates) -> Status:
        seen.append(candidates)
        return Status(Code.ERROR, ("no answer",))

    result = over.attempt(pod("p", cpu=1, priority=1), review)
    assert REVIEW in result.cycle.state
    assert (result.code, result.message) == ("Error", "preemption: no answer")
    assert {name: [v.name for v in each.pods] for name, each in seen[0].items()} == {"n1": ["a"]}
