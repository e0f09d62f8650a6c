"""Every plugin of Bayplan satisfies the contract for plugins."""

from typing import Any, final

import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import (
    FilterPlugin,
    Plugin,
    PluginArgs,
    PreEnqueuePlugin,
    ScalarScorePlugin,
)
from bayplan.framework.status import Status
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo
from bayplan.testing import CheckFailed, check_plugin
from tests.seeded import depth
from tests.testing.variants import VARIANTS


@pytest.mark.parametrize(("plugin_class", "args"), VARIANTS)
def test_a_plugin_of_the_tree_satisfies_the_contract(plugin_class: type[Plugin], args: Any) -> None:
    check_plugin(plugin_class, args, clusters=depth(3, 10))


def test_the_result_is_reproducible() -> None:
    messages = set[str]()
    for _ in range(2):
        with pytest.raises(CheckFailed) as failed:
            check_plugin(LooksAtTheFirst, clusters=5)
        messages.add(str(failed.value))
    assert len(messages) == 1


@final
class LooksAtTheFirst(FilterPlugin):
    """Answers for the first node of the view."""

    name = "LooksAtTheFirst"

    def filter(self, state: CycleState, pod: PodInfo, nodes: Any, feasible: Any) -> Any:
        raise KeyError(nodes.name(0))


def test_a_plugin_that_raises_is_named_with_its_own_exception_as_the_cause() -> None:
    with pytest.raises(CheckFailed, match='"LooksAtTheFirst": KeyError') as failed:
        check_plugin(LooksAtTheFirst)
    assert isinstance(failed.value.__cause__, KeyError)


@final
class Gate(PreEnqueuePlugin):
    """Admits every pod."""

    name = "Gate"

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        return None


def test_the_report_gives_the_duration_of_a_gate() -> None:
    assert 0 < check_plugin(Gate, clusters=1).pre_enqueue_cpu_seconds < 0.001


@final
class GpuMinimum(ScalarScorePlugin):
    """Returns an invalid score if a pod requests a resource that is never drawn."""

    name = "GpuMinimum"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 101 if pod.requests.get("test.org/card") else 0


def test_pods_for_the_plugin_can_be_passed() -> None:
    check_plugin(GpuMinimum)
    with pytest.raises(CheckFailed, match="invalid score 101"):
        check_plugin(GpuMinimum, pods=[{"requests": {"test.org/card": 1}}])


@final
class NeedsService(PreEnqueuePlugin):
    """Looks up an object of a kind that it declares."""

    name = "NeedsService"
    kinds = ("test.org/v1 Policy",)

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        assert self.handle.objects("test.org/v1 Policy").get("all") is not None
        return None


def test_objects_for_the_plugin_can_be_prepared() -> None:
    with pytest.raises(AssertionError):
        check_plugin(NeedsService, clusters=1)
    policy = {"metadata": {"name": "all"}}
    check_plugin(NeedsService, prepare=lambda c: c.put("test.org/v1 Policy", policy), clusters=1)


class MaxArgs(PluginArgs):
    label: str


@final
class NeedsArgs(ScalarScorePlugin):
    """Has a required arg."""

    name = "NeedsArgs"
    args_type = MaxArgs

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 0


def test_missing_args_are_named_in_one_line() -> None:
    with pytest.raises(CheckFailed) as raised:
        check_plugin(NeedsArgs)
    assert str(raised.value).startswith("args: NeedsArgs: label: ")
    assert str(raised.value).endswith("; give it as check_plugin(…, args={…})")
    assert raised.value.__suppress_context__
