"""A wrong result of a plugin is reported with the method, its file and line, and what was wanted.

Each case is a plugin as its author writes it, run in a simulation. No wrong result ends the run.
"""

import re
from typing import Any

import pytest

from tests.kit.manifests import node, pod
from tests.sim.runs import simulate

#: Head of the method → its base classes, and the other methods that they need.
METHODS = {
    "def pre_enqueue(self, pod)": ("PreEnqueuePlugin", ""),
    "def pre_filter(self, state, pod, nodes)": ("PreFilterPlugin", ""),
    "def filter(self, state, pod, nodes, feasible)": ("FilterPlugin", ""),
    "def filter_node(self, state, pod, node)": ("ScalarFilterPlugin", ""),
    "def post_filter(self, state, pod, statuses)": ("PostFilterPlugin", ""),
    "def pre_score(self, state, pod, nodes)": (
        "PreScorePlugin, ScorePlugin",
        "def score(self, state, pod, nodes): return nodes.pods.counts()",
    ),
    "def score(self, state, pod, nodes)": ("ScorePlugin", ""),
    "def score_node(self, state, pod, node)": ("ScalarScorePlugin", ""),
    "def normalize(self, state, pod, scores)": (
        "NormalizeScorePlugin, ScorePlugin",
        "def score(self, state, pod, nodes): return nodes.pods.counts()",
    ),
    "def tie_break(self, state, pod, nodes)": ("TieBreakPlugin", ""),
    "def reserve(self, state, pod, node)": ("ReservePlugin", "def unreserve(self, *_): pass"),
    "def permit(self, state, pod, node)": ("PermitPlugin", ""),
    "def pre_bind_preflight(self, state, pod, node)": (
        "PreBindPlugin",
        "async def pre_bind(self, *_): pass",
    ),
    "async def pre_bind(self, state, pod, node, port)": ("PreBindPlugin", ""),
    "def concerns(self, shape)": ("ScalarFilterPlugin", "def filter_node(self, *_): pass"),
}
HEADS = {head.partition("(")[0].rpartition(" ")[2]: head for head in METHODS}
#: The method's line in the file.
LINE = 6

STATUS = "a Status or None"
REJECTIONS = "Unschedulable, UnschedulableAndUnresolvable, Pending or Error"
FILTERED = "an iterable of Rejection, as `yield nodes.reject(mask, reason)` makes it"
NODES = "int64[3], an array with one whole number per node of the view"
PERMITTED = "a tuple of a Status or None and the seconds to wait"
NOMINATED = "a tuple of a Nomination or None and a Status or None"
NOTHING = "nothing (is a return missing?)"
CONVERTS = "; scores.astype(np.int64) converts"
WAITS = "Status(Code.WAIT)"
ALL = "np.ones(len(nodes), bool)"

#: Method, what it returns, what is reported as returned, what is reported as wanted.
RESULTS = [
    ("pre_enqueue", "True", "True", STATUS),
    ("pre_enqueue", WAITS, "Wait", f"Success, {REJECTIONS}"),
    ("pre_filter", "frozenset({'n1'})", "frozenset({'n1'})", f"a PreFilterResult, {STATUS}"),
    ("pre_filter", "Code.SKIP", "Code.SKIP", f"a PreFilterResult, {STATUS}"),
    ("filter", "None", "nothing (is a return or a yield missing?)", FILTERED),
    ("filter", "[None]", NOTHING, FILTERED),
    ("filter", "[True, False, True]", "True", FILTERED),
    ("filter", "[Status(Code.UNSCHEDULABLE)]", "Status(Code.UNSCHEDULABLE)", FILTERED),
    (
        "filter",
        f"[nodes.reject({ALL}, 'r', code=Code.SKIP)]",
        "a rejection with Skip (r)",
        REJECTIONS,
    ),
    (
        "filter",
        f"[Rejection({ALL}, codes=np.zeros(2, np.uint8))]",
        "a rejection with 2 codes",
        "3, one per node",
    ),
    ("filter_node", "'no room'", "'no room'", STATUS),
    ("filter_node", "SKIP", "a rejection with Skip", REJECTIONS),
    ("post_filter", "None", NOTHING, NOMINATED),
    ("post_filter", "('n1', None)", "('n1', None)", NOMINATED),
    ("post_filter", "(None, None, None)", "a tuple of 3: (None, None, None)", NOMINATED),
    ("pre_score", "True", "True", STATUS),
    ("pre_score", WAITS, "Wait", "Success, Skip or Error"),
    ("score", "None", NOTHING, NODES),
    ("score", "np.ones(len(nodes))", "float64[3]", NODES + CONVERTS),
    ("score", "np.ones(len(nodes) + 1, np.int64)", "int64[4]", NODES),
    ("score", "np.ma.ones(len(nodes), np.int64)", "MaskedArray int64[3]", NODES),
    ("score_node", "50.5", "50.5", "an int from 0 to 100"),
    ("score_node", "[5] if node.name == 'n1' else 5", "[5]", "an int from 0 to 100"),
    ("score_node", "np.uint64(2**63)", "np.uint64(9223372036854775808)", "an int from 0 to 100"),
    ("normalize", "5", "5", NODES),
    ("tie_break", "None", NOTHING, NODES),
    ("reserve", WAITS, "Wait", f"Success, {REJECTIONS}"),
    ("permit", WAITS, WAITS, PERMITTED),
    ("permit", f"({WAITS},)", f"a tuple of 1: ({WAITS},)", PERMITTED),
    ("permit", f"({WAITS}, 0)", "Wait and 0", "seconds to wait, more than 0"),
    ("permit", f"({WAITS}, '5s')", "Wait and '5s'", "seconds to wait, more than 0"),
    ("permit", "(SKIP, 1)", "Skip", f"Success, {REJECTIONS.replace(' or', ', Wait or')}"),
    ("pre_bind_preflight", "(None, True)", "(None, True)", STATUS),
    ("pre_bind", "SKIP", "Skip", f"Success, {REJECTIONS}"),
    ("concerns", "None", NOTHING, "True or False"),
]


def message_of(method: str, result: str) -> str:
    """The failure that a run reports for a plugin with this result."""
    head = HEADS[method]
    bases, further = METHODS[head]
    source = (
        "import numpy as np\nfrom bayplan import *\n"
        f"class Wrong({bases}):\n    name = 'Wrong'\n    {further}\n    {head}:\n"
        f"        return {result}\n"
    )
    names: dict[str, Any] = {}
    exec(compile(source, "wrong.py", "exec"), names)
    target: dict[str, Any] = {"nodeSelector": {"disk": "none"}} if method == "post_filter" else {}
    nodes = map(node, ("n1", "n2", "n3"))
    run = simulate(*nodes, pod("p", **target), plugins=[names["Wrong"]])
    assert not run.placements
    return run.failures[0].message if run.failures else run.unschedulable["default/p"]


@pytest.mark.parametrize(("method", "result", "actual", "expected"), RESULTS)
def test_a_wrong_result_is_reported_with_file_and_line(
    method: str, result: str, actual: str, expected: str
) -> None:
    message = message_of(method, result)
    assert re.search('plugin "Wrong"(: | failed with: )', message)
    assert message.endswith(f"{method} returned {actual}; wanted {expected}, at wrong.py:{LINE}")


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ("Status(2)", "Status: code 2; wanted a Code, as Code.UNSCHEDULABLE"),
        ("Status(Code.UNSCHEDULABLE, 'full')", "Status: reasons 'full'; wanted a tuple of strings"),
        ("unschedulable(17)", "Status: reasons (17,); wanted a tuple of strings"),
    ],
)
@pytest.mark.parametrize(
    "method", ["pre_enqueue", "pre_filter", "filter_node", "reserve", "pre_bind"]
)
def test_a_status_of_the_wrong_form_is_refused_in_the_line_that_makes_it(
    method: str, result: str, problem: str
) -> None:
    message = message_of(method, result)
    assert f'plugin "Wrong": TypeError: {problem}' in message
    assert message.endswith(f" (wrong.py:{LINE + 1})")


def test_a_score_out_of_range_is_reported_with_file_and_line() -> None:
    assert message_of("score_node", "1000") == (
        'applying score defaultWeights on Score plugins: plugin "Wrong" returns an invalid score '
        "1000, it should in "
        f"the range of [0, 100] after normalizing, at wrong.py:{LINE}"
    )
