"""The heap with lazy removal."""

from hypothesis import given
from hypothesis import strategies as st

from bayplan.queue.entry import Entry
from bayplan.queue.ordered import OrderedEntries
from tests.queue.factories import queued


def entry(name: str, at: float = 0.0) -> Entry:
    return Entry(queued(name, at=at))


def by_time(entry: Entry) -> tuple[float, str]:
    return entry.queued.timestamp_seconds, entry.key


def drained(entries: OrderedEntries) -> list[str]:
    names: list[str] = []
    while (found := entries.pop()) is not None:
        names.append(found.queued.pod.name)
    return names


def test_entries_come_out_in_order_of_their_keys() -> None:
    entries = OrderedEntries(by_time)
    for name, at in (("b", 2), ("a", 1), ("c", 3)):
        entries.enter(entry(name, at))
    assert drained(entries) == ["a", "b", "c"]


def test_an_entry_that_left_does_not_come_out() -> None:
    entries = OrderedEntries(by_time)
    first, second = entry("a", 1), entry("b", 2)
    entries.enter(first)
    entries.enter(second)
    entries.leave(first)
    assert len(entries) == 1
    assert entries.first() == ((2, second.key), second)
    assert drained(entries) == ["b"]


def test_an_entry_that_enters_again_stands_where_its_key_now_belongs() -> None:
    entries = OrderedEntries(by_time)
    moved, other = entry("a", 1), entry("b", 2)
    entries.enter(moved)
    entries.enter(other)
    moved.queued.timestamp_seconds = 3
    entries.enter(moved)
    assert len(entries) == 2
    assert drained(entries) == ["b", "a"]


def test_the_first_of_none_is_none() -> None:
    entries = OrderedEntries(by_time)
    assert entries.first() is None
    assert entries.pop() is None


def test_dead_items_of_entries_that_left_are_cleared_away() -> None:
    entries = OrderedEntries(by_time)
    stays = entry("stays", 0)
    entries.enter(stays)
    for number in range(1000):
        passing = entry(f"p{number}", number + 1)
        entries.enter(passing)
        entries.leave(passing)
    assert len(entries._row) + len(entries._heap) < 50
    assert drained(entries) == ["stays"]


def test_dead_items_of_an_entry_that_keeps_moving_are_cleared_away() -> None:
    entries = OrderedEntries(by_time)
    moves = entry("moves")
    for number in range(1000):
        moves.queued.timestamp_seconds = 1000 - number
        entries.enter(moves)
    assert len(entries._row) + len(entries._heap) < 50
    assert drained(entries) == ["moves"]


Step = tuple[str, int, int]
steps = st.lists(
    st.tuples(st.sampled_from(["enter", "leave", "pop"]), st.integers(0, 30), st.integers(0, 10)),
    max_size=200,
)


@given(steps)
def test_it_is_a_sorted_dictionary(done: list[Step]) -> None:
    entries, model = OrderedEntries(by_time), dict[str, Entry]()
    known = {number: entry(f"p{number:02}") for number in range(31)}
    for what, number, at in done:
        one = known[number]
        if what == "enter":
            one.queued.timestamp_seconds = at
            entries.enter(one)
            model[one.key] = one
        elif what == "leave" and one.key in model:
            entries.leave(one)
            del model[one.key]
        elif what == "pop":
            expected = min(model.values(), key=by_time, default=None)
            assert entries.pop() is expected
            if expected is not None:
                del model[expected.key]
        assert len(entries) == len(model)
        assert set(entries) == set(model.values())
