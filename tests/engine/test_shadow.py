"""What is kept is held against what the plugins say now, and who is wrong is named."""

from typing import Any

from bayplan.engine.shadow import mismatches
from bayplan.framework.interface import CycleState, PreScorePlugin
from bayplan.framework.status import SKIP
from tests.engine.kept_kit import Attempts, Bad, Rank, Worse

THREE: dict[str, dict[str, str]] = {"n1": {"rank": "1"}, "n2": {"bad": "x"}, "n3": {"rank": "3"}}


class Moody(Bad):
    """Follows its mood, which it does not sign."""

    mood = ""

    def filter_node(self, state: Any, pod: Any, node: Any) -> Any:
        found = super().filter_node(state, pod, node)
        return found if node.name != self.mood else None


class Fickle(Rank):
    """Adds what nobody knows of."""

    more = 0

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        return super().score_node(state, pod, node) + self.more


class Silent(Fickle, PreScorePlugin):
    """Has nothing to say, if asked before."""

    name = "Silent"

    def pre_score(self, state: Any, pod: Any, nodes: Any) -> Any:
        return SKIP


def found(attempts: Attempts) -> list[str]:
    """Asked as an attempt without reuse asks."""
    state, nodes = CycleState(), attempts.cluster.lend().nodes
    attempts.framework.run_pre_filter(state, attempts.pod, nodes)
    attempts.framework.run_pre_score(state, attempts.pod, nodes)
    return mismatches(attempts.known, attempts.framework, (state, attempts.pod, nodes))


def after_an_attempt(*plugins: Any) -> Attempts:
    attempts = Attempts(*plugins, nodes=THREE)
    attempts.attempt()
    return attempts


def test_plugins_that_sign_what_they_read_are_never_named() -> None:
    attempts = after_an_attempt(Bad, Worse, Rank)
    assert found(attempts) == []
    attempts.label("n1", bad="now", rank="4")
    attempts.label("n3", worse="now")
    assert found(attempts) == []


def test_a_filter_that_answers_otherwise_is_named_and_no_other() -> None:
    attempts = after_an_attempt(Moody, Worse, Rank)
    attempts.plugin("Bad").mood = "n2"
    assert found(attempts) == ["Bad"]


def test_a_score_that_is_another_is_named_and_no_other() -> None:
    attempts = after_an_attempt(Bad, Fickle)
    attempts.plugin("Rank").more = 1
    assert found(attempts) == ["Rank"]


def test_all_that_are_wrong_are_named_in_order() -> None:
    attempts = after_an_attempt(Fickle, Moody)
    attempts.plugin("Rank").more = 1
    attempts.plugin("Bad").mood = "n2"
    assert found(attempts) == ["Bad", "Rank"]


def test_of_what_is_not_known_nothing_can_be_wrong() -> None:
    attempts = Attempts(Moody, Fickle, nodes=THREE)
    attempts.plugin("Bad").mood = "n2"
    attempts.plugin("Rank").more = 1
    assert found(attempts) == []
    # A changed row is forgotten first.
    attempts.plugin("Bad").mood = ""
    attempts.attempt()
    attempts.plugin("Bad").mood = "n2"
    attempts.label("n2", bad="y")
    assert found(attempts) == []


def test_a_plugin_that_has_nothing_to_say_this_time_is_not_compared() -> None:
    attempts = after_an_attempt(Bad, Silent)
    known = attempts.known.scores["Silent"]
    known.learn_one(0, 1)
    attempts.plugin("Silent").more = 7
    assert found(attempts) == []


def test_a_plugin_that_fails_now_is_left_to_the_attempt() -> None:
    attempts = after_an_attempt(Bad, Rank)
    attempts.plugin("Bad").failure = RuntimeError("boom")
    assert found(attempts) == []
