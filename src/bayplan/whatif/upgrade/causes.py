"""Which changes of a new version are the cause of a pod's new answer.

Each change can be applied to the old version without the others. The cause of a pod's answer is a
smallest set of changes with which the old version gives the new answer. Without any one of these
changes, it does not. There are four kinds:

- alone: one change gives the answer.
- each: several changes, each of which alters a part of the answer, for example two texts in one
  message.
- together: several changes, some of which alter nothing without the others.
- either: one of several causes is enough; without any one of them the answer stays.

The set is found by halves (QuickXplain, Junker 2004), so one cause among n changes takes about
log n models of the cluster. All pods search in step, and share the models of equal sets. At the
end each set is checked from the other side, too: all changes but one.
"""

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from bayplan.whatif.upgrade.decisions import Decision

#: Positions in the list of changes.
Changes: TypeAlias = tuple[int, ...]
How: TypeAlias = Literal["alone", "each", "together", "either"]
#: A function that returns the decision with some changes; None: the changes do not go together.
_Search: TypeAlias = "Generator[frozenset[int], Decision | None, Cause]"
_Part: TypeAlias = "Generator[frozenset[int], Decision | None, Changes]"
#: A function: (the changes, the keys of pods) → the decision about each pod.
Decide: TypeAlias = Callable[[Changes, Sequence[str]], Mapping[str, Decision]]


class Cause(NamedTuple):
    """Why a pod's answer is another one."""

    how: How
    #: The set that was found first; for "either", the other sets follow.
    changes: Changes
    alternatives: tuple[Changes, ...] = ()


def causes_of(
    answers: Mapping[str, tuple[Decision, Decision]], change_count: int, decide: Decide
) -> dict[str, Cause]:
    """Each pod → the cause of its answer. ``answers``: pod → (the old decision, the new one)."""
    searches = {key: _search(change_count, *pair) for key, pair in answers.items()}
    causes: dict[str, Cause] = {}
    replies: dict[str, Decision | None] = dict.fromkeys(searches)
    while searches:
        questions: dict[frozenset[int], list[str]] = defaultdict(list)
        for key, search in list(searches.items()):
            try:
                questions[search.send(replies[key])].append(key)
            except StopIteration as end:
                causes[key] = end.value
                del searches[key]
        replies = {}
        for changes, keys in questions.items():
            decided = decide(tuple(sorted(changes)), keys)
            replies |= {key: decided.get(key) for key in keys}
    return causes


def _search(change_count: int, old: Decision, new: Decision) -> _Search:
    every = tuple(range(change_count))
    changes = yield from _cause(every, new)
    if (yield frozenset(changes)) != new:
        # These changes undo one another, so no smaller set is certain.
        return Cause("together", every)
    alternatives = yield from _alternatives(every, changes, new)
    if alternatives:
        return Cause("either", changes, alternatives)
    if len(changes) == 1:
        return Cause("alone", changes)
    for change in changes:
        if (yield frozenset((change,))) == old:
            return Cause("together", changes)
    return Cause("each", changes)


def _cause(changes: Changes, new: Decision) -> _Part:
    """A smallest part of ``changes`` that gives the new answer. Halves that do not go together can
    leave too much, so each change of several is tried once more."""
    cause = yield from _smallest(frozenset(), changes, new)
    for change in cause if len(cause) > 1 else ():
        fewer = _without(cause, (change,))
        if fewer and (yield frozenset(fewer)) == new:
            cause = fewer
    return cause


def _smallest(base: frozenset[int], changes: Changes, new: Decision) -> _Part:
    """The smallest part of ``changes`` that gives the new answer on top of ``base``."""
    if len(changes) <= 1:
        return changes
    first, second = _halves(changes)
    if (yield base.union(first)) == new:
        return (yield from _smallest(base, first, new))
    if (yield base.union(second)) == new:
        return (yield from _smallest(base, second, new))
    of_second = yield from _smallest(base.union(first), second, new)
    of_first = yield from _smallest(base.union(of_second), first, new)
    return (*of_first, *of_second)


def _halves(changes: Changes) -> tuple[Changes, Changes]:
    middle = len(changes) // 2
    return changes[:middle], changes[middle:]


def _alternatives(
    every: Changes, changes: Changes, new: Decision
) -> "Generator[frozenset[int], Decision | None, tuple[Changes, ...]]":
    """Other sets that give the new answer: for each change that is not needed, one without it."""
    others: list[Changes] = []
    for change in changes:
        remaining = _without(every, (change,))
        if (yield frozenset(remaining)) == new:
            other = yield from _cause(remaining, new)
            if other not in others:
                others.append(other)
    return tuple(others)


def _without(changes: Iterable[int], removed: Changes) -> Changes:
    return tuple(change for change in changes if change not in removed)
