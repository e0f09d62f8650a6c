"""NodeResourcesFit: compared with a plain rule, and by examples."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.objects import POD, Node, Pod, decode
from bayplan.config.feature_gates import default_gates
from bayplan.config.kubernetes_versions import KubernetesVersion
from bayplan.framework.events import ActionType, QueueingHint
from bayplan.framework.status import Code
from bayplan.plugins.node_resources_fit import (
    NodeResourcesFit,
    NodeResourcesFitArgs,
    ScoringStrategy,
)
from bayplan.state.pods import PodInfo, pod_info
from bayplan.testing import plugin as made
from bayplan.testing import pod as pod_as_written
from tests.plugins import scored_devices
from tests.plugins.devices_kit import class_of, put
from tests.plugins.resource_kit import (
    GPU,
    HUGE,
    LARGE,
    NIC,
    POSITIONS,
    RESOURCES,
    ROOM,
    SMALL,
    UNSET,
    Amounts,
    Place,
    clusters,
    container,
    lent,
    node_offering,
    pod_of_containers,
    pods,
    total,
)
from tests.plugins.row_kit import (
    NO_HANDLE,
    filter_is_row_wise,
    hint,
    registered,
    rejected,
    score_is_row_wise,
    scored,
)
from tests.plugins.scored_devices import BIG, BIG_IF_PRESENT, BY_CLASS, asking, scores

MOST, BY_RATIO = "MostAllocated", "RequestedToCapacityRatio"
STRATEGIES = ("LeastAllocated", MOST, BY_RATIO)


def fit(**args: Any) -> NodeResourcesFit:
    config = msgspec.convert(args, NodeResourcesFitArgs)
    assert not list(config.problems())
    return NodeResourcesFit(config, NO_HANDLE)


def scorer(kind: str, resources: Amounts, shape: Sequence[tuple[int, int]] = ()) -> dict[str, Any]:
    """The args of a strategy; resources with their weights."""
    listed = [{"name": name, "weight": weight} for name, weight in resources.items()]
    points = [{"utilization": at, "score": score} for at, score in shape]
    ratio = {"requestedToCapacityRatio": {"shape": points}} if shape else {}
    return {"scoringStrategy": {"type": kind, "resources": listed, **ratio}}


PLUGIN = NodeResourcesFit(None, NO_HANDLE)

# ---- Filter --------------------------------------------------------------------------------


def verdict(
    containers: Sequence[Amounts], place: Place, ignored: Sequence[str] = ()
) -> tuple[Code, tuple[str, ...]] | None:
    """The result of one node by the plain rule."""
    reasons = ["Too many pods"] if len(place.running) + 1 > place.pods else []
    hopeless = False
    for name in ("cpu", "memory", "ephemeral-storage", GPU, HUGE, NIC):
        expected, offered = total(containers, name), place.offered.get(name, 0)
        if name not in ignored and expected > 0 and expected > offered - place.used(name):
            reasons.append(f"Insufficient {name}")
            hopeless = hopeless or expected > offered
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if hopeless else Code.UNSCHEDULABLE
    return (code, tuple(reasons)) if reasons else None


def verdicts(
    containers: Sequence[Amounts], places: Sequence[Place], ignored: Sequence[str] = ()
) -> dict[str, tuple[Code, tuple[str, ...]]]:
    verdict_by_node = {
        f"n{row}": verdict(containers, each, ignored) for row, each in enumerate(places)
    }
    return {name: value for name, value in verdict_by_node.items() if value is not None}


@given(clusters(SMALL, SMALL), pods(SMALL), POSITIONS)
def test_the_result_for_all_nodes_equals_the_rule_for_each_node(
    places: list[Place], containers: list[dict[str, int]], positions: list[int]
) -> None:
    nodes, asking = lent(places), pod_of_containers(containers=containers)
    assert rejected(PLUGIN, asking, nodes) == verdicts(containers, places)
    chosen = [p for p in positions if p < len(places)]
    assert filter_is_row_wise(PLUGIN, asking, nodes, chosen)


@given(clusters(SMALL, SMALL), pods(SMALL))
def test_ignored_resources_are_not_compared(
    places: list[Place], containers: list[dict[str, int]]
) -> None:
    plugin = fit(ignoredResources=[GPU, "cpu", HUGE], ignoredResourceGroups=["other.io"])
    result = rejected(plugin, pod_of_containers(containers=containers), lent(places))
    # Only extended resources can be ignored.
    assert result == verdicts(containers, places, ignored=(GPU, NIC))


def test_pod_level_requests_count() -> None:
    asking = pod_of_containers(containers=[{"cpu": 100}], resources={"requests": {"cpu": "2"}})
    assert list(rejected(PLUGIN, asking, lent([Place({"cpu": 1999}), Place({"cpu": 2000})]))) == [
        "n0"
    ]


def test_resources_in_the_status_do_not_count_before_the_pod_is_placed() -> None:
    status = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "3"}}]}
    spec = {"containers": [container({"cpu": 1000})]}
    pod = decode(POD, {"metadata": {"name": "p", "uid": "u"}, "spec": spec, "status": status})
    assert isinstance(pod, Pod)
    assert not rejected(PLUGIN, pod_info(pod), lent([Place({"cpu": 1000})]))


# ---- Score ---------------------------------------------------------------------------------


def share(kind: str, used: int, offered: int) -> int:
    if kind == "LeastAllocated":
        return 0 if used > offered else (offered - used) * 100 // offered
    return min(used, offered) * 100 // offered


def mean(
    kind: str, weights: Amounts, containers: Sequence[Amounts], place: Place
) -> tuple[list[int], list[int]]:
    """(scores, weights) of the resources that count on one node."""
    scores: list[int] = []
    counted: list[int] = []
    for name, weight in weights.items():
        expected, offered = total(containers, name, UNSET), place.offered.get(name, 0)
        is_scalar = name in (GPU, NIC, HUGE)
        if offered and (expected or not is_scalar):
            scores.append(share(kind, place.used(name, UNSET) + expected, offered))
            counted.append(weight)
    return scores, counted


WEIGHTS = st.dictionaries(st.sampled_from(RESOURCES), st.integers(1, 5), min_size=1, max_size=4)


@given(st.sampled_from(STRATEGIES[:2]), WEIGHTS, clusters(LARGE, ROOM), pods(LARGE), POSITIONS)
def test_all_nodes_have_the_scores_of_the_plain_rule(
    kind: str,
    weights: dict[str, int],
    places: list[Place],
    containers: list[dict[str, int]],
    positions: list[int],
) -> None:
    plugin, nodes, asking = (
        fit(**scorer(kind, weights)),
        lent(places),
        pod_of_containers(containers=containers),
    )
    expected: dict[str, int] = {}
    for row, place in enumerate(places):
        scores, counted = mean(kind, weights, containers, place)
        weighted = sum(s * w for s, w in zip(scores, counted, strict=True))
        expected[f"n{row}"] = weighted // sum(counted) if counted else 0
    assert scored(plugin, asking, nodes) == expected
    chosen = [p for p in positions if p < len(places)]
    assert score_is_row_wise(plugin, asking, nodes, chosen)


SHAPES = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 10)), min_size=1, max_size=4)


@given(SHAPES.map(lambda s: sorted(dict(s).items())), WEIGHTS, clusters(LARGE, ROOM), pods(LARGE))
def test_all_nodes_have_the_scores_of_the_plain_rule_for_a_shape(
    shape: list[tuple[int, int]],
    weights: dict[str, int],
    places: list[Place],
    containers: list[dict[str, int]],
) -> None:
    plugin = fit(**scorer("RequestedToCapacityRatio", weights, shape))
    expected: dict[str, int] = {}
    for row, place in enumerate(places):
        used, counted = mean("MostAllocated", weights, containers, place)
        scores = [on_line(shape, utilization) for utilization in used]
        pairs = [(s, w) for s, w in zip(scores, counted, strict=True) if s > 0]
        weight = sum(w for _, w in pairs)
        # Half away from zero, in whole numbers.
        expected[f"n{row}"] = (2 * sum(s * w for s, w in pairs) + weight) // (2 * weight or 1)
    assert scored(plugin, pod_of_containers(containers=containers), lent(places)) == expected


def on_line(shape: list[tuple[int, int]], at: int) -> int:
    if at <= shape[0][0]:
        return shape[0][1] * 10
    for (x0, y0), (x1, y1) in pairwise(shape):
        if at <= x1:
            return y0 * 10 + int((y1 - y0) * 10 * (at - x0) / (x1 - x0))
    return shape[-1][1] * 10


def test_score_ignores_pod_level_requests() -> None:
    nodes = lent([Place({"cpu": 1000})])
    plugin = fit(**scorer("LeastAllocated", {"cpu": 1}))
    with_whole = pod_of_containers(
        containers=[{"cpu": 500}, {}], resources={"requests": {"cpu": "900m"}}
    )
    # 500m, and 100m for the container without a request.
    assert scored(plugin, with_whole, nodes) == {"n0": 40}


# ---- hints ---------------------------------------------------------------------------------

WAITING = pod_of_containers("waiting", [{"cpu": 1000, GPU: 1}])
NODE_ADDED = ("Node", ActionType.ADD)
NODE_GREW = ("Node", ActionType.UPDATE_NODE_ALLOCATABLE)
ENOUGH = {"cpu": 2000, GPU: 1}


def test_registered_events() -> None:
    *events, (resource, _, has_hint) = registered(PLUGIN)
    assert (resource, has_hint) == ("resource.k8s.io/DeviceClass", True)
    assert events == [
        ("AssignedPod", "Delete", True),
        ("Node", "Add|UpdateNodeAllocatable", True),
        ("AssignedPod", "UpdatePodScaleDown", True),
        ("TargetPod", "UpdatePodScaleDown", True),
    ]


@pytest.mark.parametrize(
    ("after", "message"),
    [
        pytest.param(node_offering(ENOUGH), "Queue", id="with room"),
        pytest.param(node_offering({"cpu": 2000}), "QueueSkip", id="without a GPU"),
        pytest.param(node_offering(ENOUGH, pods=0), "QueueSkip", id="with room for no pods"),
    ],
)
def test_a_new_node_queues_the_pod_if_the_pod_fits(after: Node, message: str) -> None:
    assert str(hint(PLUGIN, NODE_ADDED, WAITING, None, after)) == message


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        pytest.param({"cpu": 500, GPU: 1}, ENOUGH, "Queue", id="cpu grew"),
        pytest.param(
            {"cpu": 500, GPU: 1}, {"cpu": 600, GPU: 1}, "QueueSkip", id="cpu grew too little"
        ),
        pytest.param(
            ENOUGH, {**ENOUGH, "memory": 1}, "QueueSkip", id="a resource that is not requested grew"
        ),
        pytest.param({"cpu": 3000, GPU: 1}, ENOUGH, "QueueSkip", id="cpu shrank"),
    ],
)
def test_a_changed_node_queues_the_pod_if_a_requested_amount_grew(
    before: Amounts, after: Amounts, message: str
) -> None:
    assert (
        str(hint(PLUGIN, NODE_GREW, WAITING, node_offering(before), node_offering(after)))
        == message
    )


def test_a_node_that_lacks_only_ignored_resources_queues_the_pod() -> None:
    """Upstream compares ignored resources in the hint, so the pod waits there."""
    plugin = fit(ignoredResourceGroups=["example.com"])
    assert (
        hint(plugin, NODE_ADDED, WAITING, None, node_offering({"cpu": 2000})) is QueueingHint.QUEUE
    )


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        pytest.param(pod_of_containers("gone", on="n0"), "Queue", id="a placed pod"),
        pytest.param(pod_of_containers("gone"), "QueueSkip", id="a pod without a node"),
    ],
)
def test_deleting_a_placed_pod_makes_room(gone: PodInfo, message: str) -> None:
    event = ("AssignedPod", ActionType.DELETE)
    assert str(hint(PLUGIN, event, WAITING, gone, None)) == message


@pytest.mark.parametrize(
    ("before", "after", "on", "message"),
    [
        pytest.param({"cpu": 2}, {"cpu": 1}, "n0", "Queue", id="less cpu"),
        pytest.param(
            {"memory": 2},
            {"memory": 1},
            "n0",
            "QueueSkip",
            id="less of a resource that is not requested",
        ),
        pytest.param({"cpu": 1}, {"cpu": 2}, "n0", "QueueSkip", id="more cpu"),
        pytest.param(
            {"cpu": 2}, {"cpu": 1}, None, "QueueSkip", id="a pod without a node that shrinks"
        ),
    ],
)
def test_a_pod_that_shrinks_queues_pods_that_request_the_same_resource(
    before: Amounts, after: Amounts, on: str | None, message: str
) -> None:
    event = ("AssignedPod", ActionType.UPDATE_POD_SCALE_DOWN)
    old, new = pod_of_containers("other", [before], on), pod_of_containers("other", [after], on)
    assert str(hint(PLUGIN, event, WAITING, old, new)) == message


def test_a_pod_that_shrinks_itself_is_tried_again() -> None:
    event = ("TargetPod", ActionType.UPDATE_POD_SCALE_DOWN)
    assert hint(PLUGIN, event, WAITING, WAITING, WAITING) is QueueingHint.QUEUE


# ---- sign ----------------------------------------------------------------------------------


def signed(requests: dict[str, Any], plugin: NodeResourcesFit = PLUGIN, **spec: Any) -> object:
    """The signature part of a pod of one container with these requests, as in a manifest."""
    main = {"name": "main", "resources": {"requests": requests}}
    return plugin.sign_pod(pod_as_written(containers=[main], spec=spec))


def test_equal_amounts_have_equal_signatures_in_any_notation() -> None:
    assert signed({"cpu": "500m", "memory": "1Gi"}) == signed({"memory": "1024Mi", "cpu": "0.5"})
    assert signed({"cpu": "500m"}) != signed({"cpu": "501m"})


def test_unset_memory_and_memory_0_have_different_signatures() -> None:
    """Both need no memory, but only unset memory counts as 200Mi in scores."""
    assert signed({"cpu": 1}) != signed({"cpu": 1, "memory": 0})


def test_equal_sums_with_and_without_an_unset_request_have_different_signatures() -> None:
    one, other = [{"cpu": 200}, {"cpu": 200}], [{"cpu": 400}, {}]
    assert PLUGIN.sign_pod(pod_of_containers(containers=one)) != PLUGIN.sign_pod(
        pod_of_containers(containers=other)
    )


def test_needed_and_scored_amounts_are_both_signed() -> None:
    whole = {"requests": {"cpu": 3}}
    # The second pod needs more and scores the same.
    assert signed({"cpu": 1}) != signed({"cpu": 1}, resources=whole)
    assert signed({"cpu": 2}, resources=whole) != signed({"cpu": 1}, resources=whole)


# ---- args ----------------------------------------------------------------------------------

RATIO = {"type": "RequestedToCapacityRatio"}


def strategy(**message: Any) -> dict[str, Any]:
    return {"scoringStrategy": message}


def shaped(*points: tuple[int, int]) -> dict[str, Any]:
    shape = [{"utilization": at, "score": score} for at, score in points]
    return strategy(**RATIO, requestedToCapacityRatio={"shape": shape})


@pytest.mark.parametrize(
    ("args", "path"),
    [
        pytest.param({"ignoredResources": ["a b"]}, "ignoredResources[0]", id="no name"),
        pytest.param(
            {"ignoredResourceGroups": ["a", "b/c"]}, "ignoredResourceGroups[1]", id="a slash"
        ),
        pytest.param(
            strategy(**RATIO), "scoringStrategy.requestedToCapacityRatio.shape", id="no shape"
        ),
        pytest.param(
            shaped(), "scoringStrategy.requestedToCapacityRatio.shape", id="an empty shape"
        ),
        pytest.param(
            shaped((50, 1), (50, 2)),
            "scoringStrategy.requestedToCapacityRatio.shape[1].utilization",
            id="a shape that does not increase",
        ),
        pytest.param(
            strategy(type="MostAllocated", requestedToCapacityRatio={}),
            "scoringStrategy.requestedToCapacityRatio",
            id="a shape for another type",
        ),
    ],
)
def test_invalid_args_are_reported(args: dict[str, Any], path: str) -> None:
    config = msgspec.convert(args, NodeResourcesFitArgs)
    complaints = [*config.problems(), *config.problems_in_version(default_gates())]
    assert [at for at, _ in complaints] == [path]


def test_before_1_36_the_shape_is_a_field_of_the_strategy() -> None:
    old = default_gates(KubernetesVersion.V1_35)
    unused = NodeResourcesFitArgs(
        scoring_strategy=msgspec.convert(
            {"type": "MostAllocated", "requestedToCapacityRatio": {}}, ScoringStrategy
        )
    )
    assert not list(unused.problems_in_version(old))


@pytest.mark.parametrize(
    ("args", "path"),
    [
        pytest.param(strategy(), "$.scoringStrategy", id="no type"),
        pytest.param(strategy(type="Mots"), "$.scoringStrategy.type", id="an unknown type"),
        pytest.param(
            strategy(type="LeastAllocated", resources=[{"name": "cpu", "weight": 101}]),
            "$.scoringStrategy.resources[0].weight",
            id="a weight above 100",
        ),
        pytest.param(
            shaped((101, 0)),
            "$.scoringStrategy.requestedToCapacityRatio.shape[0].utilization",
            id="a utilization above 100",
        ),
        pytest.param(
            shaped((0, 11)),
            "$.scoringStrategy.requestedToCapacityRatio.shape[0].score",
            id="a score above 10",
        ),
        pytest.param({"ignored": []}, "`ignored`", id="an unknown field"),
    ],
)
def test_args_of_a_wrong_form_are_refused(args: dict[str, Any], path: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=re.escape(path)):
        msgspec.convert(args, NodeResourcesFitArgs)


def test_no_resources_means_cpu_and_memory_and_no_weight_means_1() -> None:
    text = strategy(type="MostAllocated", resources=[])
    assert fit(**text).args.scoring_strategy.resources == PLUGIN_RESOURCES
    text = strategy(type="MostAllocated", resources=[{"name": "cpu", "weight": 0}])
    assert fit(**text).args.scoring_strategy.resources == PLUGIN_RESOURCES[:1]


PLUGIN_RESOURCES = NodeResourcesFitArgs().scoring_strategy.resources


# ---- Score: devices that stand for a resource ----------------------------------------------

SHAPE = [(0, 0), (60, 10), (100, 2)]


@pytest.mark.parametrize(
    ("kind", "amount", "expressions", "recorded"),
    [
        ("LeastAllocated", 1, (), {"a": 60, "b": 59, "c": 59, "d": 48, "e": 72, "f": 23}),
        ("LeastAllocated", 2, (), {"a": 42, "b": 40, "c": 40, "d": 23, "e": 48}),
        ("MostAllocated", 1, (), {"a": 39, "b": 40, "c": 40, "d": 51, "e": 26, "f": 76}),
        ("MostAllocated", 2, (), {"a": 57, "b": 59, "c": 59, "d": 76, "e": 51}),
        (BY_RATIO, 1, (), {"a": 65, "b": 67, "c": 67, "d": 69, "e": 44, "f": 18}),
        (BY_RATIO, 2, (), {"a": 55, "b": 58, "c": 58, "d": 18, "e": 69}),
        # On e a selector fails for one device, so only cpu counts there.
        ("LeastAllocated", 1, (BIG,), {"a": 60, "b": 46, "c": 59, "d": 48, "e": 93}),
        ("MostAllocated", 1, (BIG,), {"a": 39, "b": 52, "c": 40, "d": 51, "e": 6}),
        (BY_RATIO, 1, (BIG,), {"a": 65, "b": 71, "c": 67, "d": 69, "e": 10}),
        ("LeastAllocated", 1, (BIG_IF_PRESENT,), {"a": 60, "b": 46, "c": 59, "d": 48, "e": 60}),
        ("LeastAllocated", 2, (BIG_IF_PRESENT,), {"a": 42, "b": 21, "c": 40, "d": 23, "e": 23}),
        ("MostAllocated", 2, (BIG_IF_PRESENT,), {"a": 57, "b": 78, "c": 59, "d": 76, "e": 76}),
        (BY_RATIO, 2, (BIG_IF_PRESENT,), {"a": 55, "b": 20, "c": 58, "d": 18, "e": 18}),
    ],
)
def test_devices_are_scored_as_kube_scheduler_scores_them(
    kind: str, amount: int, expressions: tuple[str, ...], recorded: dict[str, int]
) -> None:
    cluster = scored_devices.cluster(*expressions)
    args = scorer(kind, {"cpu": 1, GPU: 3}, SHAPE if kind == BY_RATIO else ())
    answers = scores(made(NodeResourcesFit, args, cluster=cluster), cluster, asking(amount=amount))
    assert {name: answers[name] for name in recorded} == recorded


def test_a_class_may_be_requested_by_its_name() -> None:
    cluster = scored_devices.cluster()
    fits = made(NodeResourcesFit, scorer(MOST, {"cpu": 1, BY_CLASS: 3}), cluster=cluster)
    answers = scores(fits, cluster, asking(resource=BY_CLASS))
    # c has no device; the resource that it offers itself is another one.
    assert answers == {"a": 39, "b": 40, "c": 12, "d": 51, "e": 26, "f": 76}


def test_without_a_class_a_resource_that_no_node_offers_is_not_scored() -> None:
    cluster = scored_devices.cluster()
    put(cluster.store, class_of("gpu"))
    fits = made(NodeResourcesFit, scorer(MOST, {"cpu": 1, GPU: 3}), cluster=cluster)
    answers = scores(fits, cluster, asking())
    assert answers == {"a": 6, "b": 12, "c": 40, "d": 6, "e": 6, "f": 6}
