"""NodeAffinity: compared with plain rules, and by examples of special cases."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, QueueingHint
from bayplan.framework.status import SKIP, Code, Status
from bayplan.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod
from tests.plugins.row_kit import (
    NO_HANDLE,
    filter_is_row_wise,
    hint,
    lent,
    pre_filter_result,
    registered,
    rejected,
    score_is_row_wise,
    scored,
    unresolvable,
)

NO_MATCH = "node(s) didn't match Pod's node affinity/selector"
NO_ADDED_MATCH = "node(s) didn't match scheduler-enforced node affinity"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def plugin(required: Any = None, preferred: Any = None) -> NodeAffinity:
    """The plugin with addedAffinity of these terms."""
    if required is None and preferred is None:
        return NodeAffinity(None, NO_HANDLE)
    args = msgspec.convert({"addedAffinity": rules(required, preferred)}, NodeAffinityArgs)
    assert not list(args.problems())
    return NodeAffinity(args, NO_HANDLE)


def rules(required: Any = None, preferred: Any = None) -> dict[str, Any]:
    selector = None if required is None else {"nodeSelectorTerms": required}
    return {REQUIRED: selector, PREFERRED: preferred}


def pod_with_terms(required: Any = None, preferred: Any = None, **options: Any) -> PodInfo:
    """A pod with node affinity of these terms."""
    return pod(affinity={"nodeAffinity": rules(required, preferred)}, **options)


def condition(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def labelled(*conditions: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(conditions)}


def named(*names: str, operator: str = "In") -> dict[str, Any]:
    return {"matchFields": [condition("metadata.name", operator, name) for name in names]}


BROKEN = labelled(condition("a", "In", "no value!"))
ZONE_A, ZONE_B = labelled(condition("zone", "In", "a")), labelled(condition("zone", "In", "b"))


# ---- the plain rules ---------------------------------------------------------------


def is_true(wire: dict[str, Any], value: str | None) -> bool:
    expected = wire["values"]
    match wire["operator"]:
        case "In":
            return value is not None and value in expected
        case "NotIn":
            return value is None or value not in expected
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case operator:
            if value is None or not value.isdigit():
                return False
            return (
                int(value) > int(expected[0]) if operator == "Gt" else int(value) < int(expected[0])
            )


def term_matches(term: dict[str, Any], name: str, labels: dict[str, str]) -> bool:
    fields, expressions = term.get("matchFields", []), term.get("matchExpressions", [])
    return (
        bool(fields or expressions)
        and all(is_true(c, name) for c in fields)
        and all(is_true(c, labels.get(c["key"])) for c in expressions)
    )


def any_matches(terms: Any, name: str, labels: dict[str, str]) -> bool:
    return terms is None or any(term_matches(term, name, labels) for term in terms)


def points(preferred: Any, name: str, labels: dict[str, str]) -> int:
    return sum(
        each["weight"] * term_matches(each["preference"], name, labels) for each in preferred or ()
    )


KEYS, VALUES = st.sampled_from(["a", "b"]), st.sampled_from(["", "1", "2", "10", "x"])
CONDITIONS = st.one_of(
    st.builds(
        lambda key, operator, values: condition(key, operator, *values),
        KEYS,
        st.sampled_from(["In", "NotIn"]),
        st.lists(VALUES, min_size=1, max_size=5),
    ),
    st.builds(condition, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(condition, KEYS, st.sampled_from(["Gt", "Lt"]), st.sampled_from(["1", "2"])),
)
FIELDS = st.builds(
    condition,
    st.just("metadata.name"),
    st.sampled_from(["In", "NotIn"]),
    st.sampled_from(["n0", "n1", "ghost"]),
)
TERMS = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(CONDITIONS, max_size=2),
        "matchFields": st.lists(FIELDS, max_size=2),
    },
)
REQUIRED_TERMS = st.one_of(st.none(), st.lists(TERMS, max_size=3))
PREFERRED_TERMS = st.one_of(
    st.none(),
    st.lists(
        st.fixed_dictionaries({"weight": st.sampled_from([0, 1, 7, 100]), "preference": TERMS}),
        max_size=3,
    ),
)
LABELS = st.dictionaries(KEYS, VALUES)
CLUSTERS = st.lists(LABELS, min_size=1, max_size=6).map(
    lambda drawn: {f"n{i}": labels for i, labels in enumerate(drawn)}
)
POSITIONS = st.lists(st.integers(0, 5), unique=True)


@given(CLUSTERS, REQUIRED_TERMS, REQUIRED_TERMS, st.one_of(st.none(), LABELS), POSITIONS)
def test_exactly_the_nodes_that_do_not_match_are_rejected(
    cluster: dict[str, dict[str, str]],
    own: Any,
    added: Any,
    selector: dict[str, str] | None,
    expected_value: list[int],
) -> None:
    expected: dict[str, Any] = {}
    for name, labels in cluster.items():
        if not any_matches(added, name, labels):
            expected |= unresolvable([name], NO_ADDED_MATCH)
        elif not ((selector or {}).items() <= labels.items() and any_matches(own, name, labels)):
            expected |= unresolvable([name], NO_MATCH)
    nodes = lent(node(name, labels=labels) for name, labels in cluster.items())
    tested_pod, tested_plugin = pod_with_terms(own, node_selector=selector), plugin(added)
    assert rejected(tested_plugin, tested_pod, nodes) == expected
    positions = [p for p in expected_value if p < len(nodes)]
    assert filter_is_row_wise(tested_plugin, tested_pod, nodes, positions)


@given(CLUSTERS, PREFERRED_TERMS, PREFERRED_TERMS, POSITIONS)
def test_a_node_scores_the_weights_of_the_matching_terms(
    cluster: dict[str, dict[str, str]], own: Any, added: Any, expected_value: list[int]
) -> None:
    nodes = lent(node(name, labels=labels) for name, labels in cluster.items())
    tested_pod, tested_plugin = pod_with_terms(preferred=own), plugin(preferred=added)
    expected = {
        name: points(own, name, labels) + points(added, name, labels)
        for name, labels in cluster.items()
    }
    skipped = own is None and not added
    assert scored(tested_plugin, tested_pod, nodes) == (None if skipped else expected)
    positions = [p for p in expected_value if p < len(nodes)]
    assert score_is_row_wise(tested_plugin, tested_pod, nodes, positions)


@given(CLUSTERS, REQUIRED_TERMS)
def test_pre_filter_keeps_every_node_that_matches(
    cluster: dict[str, dict[str, str]], own: Any
) -> None:
    nodes = lent(node(name, labels=labels) for name, labels in cluster.items())
    answer = pre_filter_result(plugin(), pod_with_terms(own), nodes)
    matching = {name for name, labels in cluster.items() if any_matches(own, name, labels)}
    if isinstance(answer, frozenset):
        assert matching <= answer
    elif isinstance(answer, Status) and answer is not SKIP:
        assert not matching


# ---- PreFilter -----------------------------------------------------------------------------

NODES = [node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"}), node("n3")]


@pytest.mark.parametrize(
    ("tested_pod", "skips"),
    [
        pytest.param(pod(), True, id="no affinity at all"),
        pytest.param(pod_with_terms(preferred=[]), True, id="preferences only"),
        pytest.param(pod(node_selector={}), False, id="an empty nodeSelector"),
        pytest.param(pod(node_selector={"zone": "a"}), False, id="a nodeSelector"),
        pytest.param(pod_with_terms([]), False, id="required affinity without terms"),
    ],
)
def test_pods_without_affinity_are_skipped(tested_pod: PodInfo, skips: bool) -> None:
    nodes = lent(NODES)
    assert (pre_filter_result(plugin(), tested_pod, nodes) is SKIP) is skips
    assert pre_filter_result(plugin([ZONE_A]), tested_pod, nodes) is not SKIP
    assert (pre_filter_result(plugin(None, [{"weight": 1}]), tested_pod, nodes) is SKIP) is skips


@pytest.mark.parametrize(
    "terms",
    [
        pytest.param([named("n1", "n2")], id="two names at once"),
        pytest.param([{"matchFields": [condition("metadata.name", "In")]}], id="no name"),
    ],
)
def test_terms_that_leave_no_node_conflict(terms: Any) -> None:
    status = pre_filter_result(plugin(), pod_with_terms(terms), lent(NODES))
    assert isinstance(status, Status)
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ("pod affinity terms conflict",)


# ---- Filter --------------------------------------------------------------------------------


def test_terms_that_do_not_parse_match_no_node_without_an_error() -> None:
    nodes = lent(NODES)
    assert rejected(plugin(), pod_with_terms([BROKEN, ZONE_A]), nodes) == unresolvable(
        ["n2", "n3"], NO_MATCH
    )
    assert len(rejected(plugin(), pod_with_terms([BROKEN]), nodes)) == 3


def test_a_condition_on_the_name_has_exactly_one_value() -> None:
    two = {"matchFields": [condition("metadata.name", "In", "n1", "n2")]}
    nodes = lent(NODES)
    assert pre_filter_result(plugin(), pod_with_terms([two]), nodes) == {"n1", "n2"}
    assert len(rejected(plugin(), pod_with_terms([two]), nodes)) == 3


# ---- Score ---------------------------------------------------------------------------------


def preferring(*weighted: tuple[int, Any]) -> PodInfo:
    return pod_with_terms(preferred=[{"weight": w, "preference": term} for w, term in weighted])


def test_a_preference_that_does_not_parse_is_an_error() -> None:
    status = plugin().pre_score(CycleState(), preferring((5, BROKEN)), lent(NODES))
    assert status is not None
    assert status.code is Code.ERROR
    assert "no value!" in status.message


def test_score_is_skipped_only_without_any_preference() -> None:
    nodes = lent(NODES)
    added = [{"weight": 0, "preference": ZONE_A}]
    assert scored(plugin(), pod(), nodes) is None
    assert scored(plugin(preferred=[]), pod(), nodes) is None
    assert scored(plugin(), pod_with_terms(preferred=[]), nodes) is not None
    assert scored(plugin(preferred=added), pod(), nodes) == {"n1": 0, "n2": 0, "n3": 0}


# ---- args ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "path"),
    [
        pytest.param({"addedAffinty": {}}, "addedAffinty", id="a misspelt argument"),
        pytest.param({"addedAffinity": {"required": {}}}, "$.addedAffinity", id="in the affinity"),
        pytest.param(
            {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpression": []}]}}},
            f"$.addedAffinity.{REQUIRED}.nodeSelectorTerms[0]",
            id="in a term",
        ),
        pytest.param(
            {"addedAffinity": {PREFERRED: [{"weight": 1, "preference": {"match": []}}]}},
            f"$.addedAffinity.{PREFERRED}[0].preference",
            id="in a preference",
        ),
        pytest.param(
            {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": [labelled({"key": "a", "op": 1})]}}},
            "nodeSelectorTerms[0].matchExpressions[0]",
            id="in a condition",
        ),
    ],
)
def test_unknown_args_are_refused(wire: Any, path: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(wire, NodeAffinityArgs)
    assert path in str(caught.value)


def test_args_that_do_not_parse_are_named_by_their_path() -> None:
    preferred = [{"weight": 0, "preference": BROKEN}, {"weight": 1, "preference": BROKEN}]
    wire = {"addedAffinity": rules([ZONE_A, BROKEN, {}], preferred)}
    message = "'no value!' is no label value; wanted a node selector term"
    assert list(msgspec.convert(wire, NodeAffinityArgs).problems()) == [
        (f"addedAffinity.{REQUIRED}.nodeSelectorTerms[1]", message),
        (f"addedAffinity.{PREFERRED}[1]", message),
    ]


# ---- hints ---------------------------------------------------------------------------------

QUEUE, QUEUE_SKIP = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP
IN_A, IN_B = node("n1", labels={"zone": "a"}), node("n1", labels={"zone": "b"})


def test_registered_events() -> None:
    assert registered(plugin()) == [("Node", "Add|UpdateNodeLabel", True)]


@pytest.mark.parametrize(
    ("added", "old", "new", "expected"),
    [
        pytest.param(None, None, IN_A, QUEUE, id="a matching node was added"),
        pytest.param(None, None, IN_B, QUEUE_SKIP, id="another node was added"),
        pytest.param(None, IN_B, IN_A, QUEUE, id="a node begins to match"),
        pytest.param(None, IN_A, IN_A, QUEUE_SKIP, id="a node matched before"),
        pytest.param(None, IN_A, IN_B, QUEUE_SKIP, id="a node ceases to match"),
        pytest.param([ZONE_B], IN_B, IN_A, QUEUE_SKIP, id="the added affinity does not match"),
        pytest.param([ZONE_A], IN_B, IN_A, QUEUE, id="own and added affinity begin to match"),
    ],
)
def test_events_of_nodes_that_queue_the_pod(
    added: Any, old: Any, new: Any, expected: QueueingHint
) -> None:
    action = ActionType.ADD if old is None else ActionType.UPDATE_NODE_LABEL
    for tested_pod in (pod_with_terms([ZONE_A]), pod(node_selector={"zone": "a"})):
        assert hint(plugin(added), ("Node", action), tested_pod, old, new) is expected


def test_a_node_that_begins_to_match_the_added_affinity_queues_the_pod() -> None:
    """An intended difference: in upstream the pod waits for the five-minute flush."""
    old, new = node("n1", labels={"zone": "a"}), node("n1", labels={"zone": "a", "pool": "x"})
    added = plugin([labelled(condition("pool", "Exists"))])
    event = ("Node", ActionType.UPDATE_NODE_LABEL)
    assert hint(added, event, pod_with_terms([ZONE_A]), old, new) is QUEUE
    assert hint(added, event, pod_with_terms([ZONE_A]), new, new) is QUEUE_SKIP


@pytest.mark.parametrize(
    ("tested_pod", "expected"),
    [
        pytest.param(pod_with_terms([BROKEN]), QUEUE, id="upstream's hint fails, which is Queue"),
        pytest.param(pod_with_terms([BROKEN, ZONE_A]), QUEUE_SKIP, id="another term matches"),
        pytest.param(
            pod_with_terms([BROKEN], node_selector={"zone": "b"}),
            QUEUE_SKIP,
            id="the node selector decides",
        ),
    ],
)
def test_a_hint_with_terms_that_do_not_parse_is_queue(
    tested_pod: PodInfo, expected: QueueingHint
) -> None:
    event = ("Node", ActionType.UPDATE_NODE_LABEL)
    assert hint(plugin(), event, tested_pod, IN_A, IN_A) is expected
