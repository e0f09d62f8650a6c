"""The states that a reordering of bindings in flight allows."""

from bayplan.shadow.judgement import STATES_MAX, NodeArrival, Review, Verdict, states
from bayplan.testing import pod


def binding(name: str, place: int, node: str = "x") -> NodeArrival:
    return NodeArrival(pod(name).pod, node, 0.0, (0, place), since_seconds=0.0)


def review(before: list[NodeArrival], after: list[NodeArrival], place: int = 10) -> Review:
    verdict = Verdict("lower", "chosen", "shadow")
    return Review(binding("own", place, "chosen"), verdict, before, after)


def uids(*bindings: NodeArrival) -> frozenset[str]:
    return frozenset(each.uid for each in bindings)


def test_the_order_of_the_queue_comes_first() -> None:
    early, late = binding("early", 3), binding("late", 12)
    next_early, next_late = binding("next-early", 4), binding("next-late", 13)
    first, *_ = states(review([early, late], [next_early, next_late]))
    assert first == uids(late, next_late)


def test_a_binding_to_the_chosen_node_may_have_been_decided_later() -> None:
    on_chosen, elsewhere = binding("a", 1, "chosen"), binding("b", 2)
    assert uids(on_chosen) in states(review([on_chosen, elsewhere], []))


def test_a_binding_to_the_node_of_the_shadow_may_have_been_decided_earlier() -> None:
    there, elsewhere = binding("a", 20, "shadow"), binding("b", 21)
    assert uids(elsewhere) in states(review([], [elsewhere, there]))


def test_states_are_bounded_and_differ() -> None:
    before = [binding(f"b{number}", number) for number in range(9)]
    after = [binding(f"a{number}", 20 + number) for number in range(9)]
    listed = states(review(before, after))
    assert len(listed) == len(set(listed)) == STATES_MAX


def test_without_other_bindings_the_later_state_is_the_only_one() -> None:
    assert states(review([], [])) == [frozenset()]
