"""NodeAffinity compared with plain rules; tests/parity has recorded answers and hints."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.framework.events import ActionType, QueueingHint
from bayplan.framework.status import SKIP, Status
from bayplan.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod
from tests.plugins.row_kit import (
    NO_HANDLE,
    filter_is_row_wise,
    hint,
    lent,
    pre_filter_result,
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


BROKEN = labelled(condition("a", "In", "no value!"))
ZONE_A = labelled(condition("zone", "In", "a"))


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


def test_score_is_skipped_only_without_any_preference() -> None:
    nodes = lent([node("n1", labels={"zone": "a"})])
    assert scored(plugin(), pod(), nodes) is None
    assert scored(plugin(preferred=[]), pod(), nodes) is None
    assert scored(plugin(), pod_with_terms(preferred=[]), nodes) is not None
    added = [{"weight": 0, "preference": ZONE_A}]
    assert scored(plugin(preferred=added), pod(), nodes) == {"n1": 0}


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


def test_a_node_that_begins_to_match_the_added_affinity_queues_the_pod() -> None:
    """An intended difference: in upstream the pod waits for the five-minute flush."""
    old, new = node("n1", labels={"zone": "a"}), node("n1", labels={"zone": "a", "pool": "x"})
    added = plugin([labelled(condition("pool", "Exists"))])
    event = ("Node", ActionType.UPDATE_NODE_LABEL)
    assert hint(added, event, pod_with_terms([ZONE_A]), old, new) is QueueingHint.QUEUE
    assert hint(added, event, pod_with_terms([ZONE_A]), new, new) is QueueingHint.QUEUE_SKIP


IN_A = node("n1", labels={"zone": "a"})


@pytest.mark.parametrize(
    ("tested_pod", "expected"),
    [
        pytest.param(pod_with_terms([BROKEN]), "Queue", id="upstream's hint fails, which is Queue"),
        pytest.param(pod_with_terms([BROKEN, ZONE_A]), "QueueSkip", id="another term matches"),
        pytest.param(
            pod_with_terms([BROKEN], node_selector={"zone": "b"}),
            "QueueSkip",
            id="the node selector decides",
        ),
    ],
)
def test_a_hint_with_terms_that_do_not_parse_is_queue(tested_pod: PodInfo, expected: str) -> None:
    event = ("Node", ActionType.UPDATE_NODE_LABEL)
    assert str(hint(plugin(), event, tested_pod, IN_A, IN_A)) == expected
