"""Soft constraints: compared with a plain rule, and by examples."""

import math
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.objects import HOSTNAME_LABEL, SERVICE, ZONE_LABEL
from bayplan.plugins.pod_topology_spread.constraints import SOFT, Constraint, PodTopologySpreadArgs
from bayplan.plugins.pod_topology_spread.scoring import SoftSpread, go_log, soft_spread
from bayplan.state.cache import Snapshot
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo
from tests.plugins.spread_kit import (
    SpreadCluster,
    app_pod,
    constraint,
    drawn_clusters,
    drawn_pods,
    labelled_node,
    lent,
    plainly_counted,
    plainly_has_all,
    plainly_included,
    rules,
    zoned,
)

SYSTEM = PodTopologySpreadArgs()


def soft(key: str = ZONE_LABEL, **fields: Any) -> dict[str, Any]:
    return constraint(key, SOFT, **fields)


def counted(waiting: PodInfo, feasible: NodeView, require_all: bool = True) -> SoftSpread:
    return soft_spread(rules().soft(waiting).constraints, require_all, waiting, feasible)


def scored(spread: SoftSpread, waiting: PodInfo, nodes: NodeView) -> dict[str, tuple[int, int]]:
    """Node → (raw, normalised)."""
    raw = spread.scores(waiting, nodes)
    final = spread.normalized(raw)
    assert raw.dtype == final.dtype == np.int64
    return dict(zip(nodes.names(), zip(raw.tolist(), final.tolist(), strict=True), strict=True))


def normalized(snapshot: Snapshot, *spread: dict[str, Any], **fields: Any) -> dict[str, int]:
    """Normalised scores for a pod with app=a and all nodes feasible."""
    waiting, nodes = app_pod(spread=spread, **fields), snapshot.nodes
    answer = scored(counted(waiting, nodes), waiting, nodes)
    return {name: final for name, (_, final) in answer.items()}


# ---- the plain rule ------------------------------------------------------------------


def plainly_scored(
    constraints: Sequence[Constraint],
    require_all: bool,
    feasible: list[NodeInfo],
    infos: list[NodeInfo],
    waiting: PodInfo,
) -> dict[str, tuple[int, int]]:
    eligible = [info for info in feasible if not require_all or plainly_has_all(constraints, info)]
    raw = {info.name: 0.0 for info in eligible}
    for each in constraints:
        key, by_node = each.topology_key, each.topology_key == HOSTNAME_LABEL
        domains = {info.name if by_node else info.labels.get(key, "") for info in eligible}
        counts: Counter[str] = Counter()
        for info in infos:
            is_complete = plainly_has_all(constraints, info) or not require_all
            if by_node or (is_complete and plainly_included(each, info, waiting)):
                domain = info.name if by_node else info.labels.get(key, "")
                counts[domain] += plainly_counted(each, info, waiting)
        for info in eligible:
            if key in info.labels:
                count = counts[info.name if by_node else info.labels[key]]
                raw[info.name] += count * go_log(len(domains) + 2) + (each.max_skew - 1)
    whole = {name: math.floor(score + 0.5) for name, score in raw.items()}
    return {info.name: plainly_normalized(info.name, whole) for info in feasible}


def plainly_normalized(name: str, raw: Mapping[str, int]) -> tuple[int, int]:
    """(raw, normalised): nodes that are left out have no raw score here."""
    if name not in raw:
        return 0, 0
    lowest, highest = min(raw.values()), max(raw.values())
    return raw[name], 100 * (highest + lowest - raw[name]) // highest if highest else 100


@given(drawn_clusters(), drawn_pods(SOFT), st.booleans(), st.data())
def test_all_nodes_at_once_have_the_same_scores_as_each_node_by_the_plain_rule(
    snapshot: Snapshot, waiting: PodInfo, require_all: bool, data: st.DataObject
) -> None:
    nodes = snapshot.nodes
    feasible = nodes.take(data.draw(st.sets(st.integers(0, len(nodes) - 1)).map(sorted)))
    spread = counted(waiting, feasible, require_all)
    constraints = rules().soft(waiting).constraints
    expected = plainly_scored(
        constraints, require_all, list(feasible.infos()), list(nodes.infos()), waiting
    )
    assert scored(spread, waiting, feasible) == expected
    for position, name in enumerate(feasible.names()):
        assert spread.scores(waiting, feasible.take([position])).tolist() == [expected[name][0]]


# ---- examples --------------------------------------------------------------------------------


def test_an_empty_selector_counts_no_pods() -> None:
    for key in (ZONE_LABEL, HOSTNAME_LABEL):
        assert set(normalized(zoned(a=2, b=0), soft(key, labelSelector={})).values()) == {100}


def by_default(snapshot: Snapshot) -> dict[str, int]:
    """Raw scores by the system's defaults, for a pod of a Service."""
    waiting, nodes = app_pod(), snapshot.nodes
    spread = rules(SYSTEM, SpreadCluster().put(SERVICE, "web", {"app": "a"}))
    constraints = spread.soft(waiting).constraints
    soft = soft_spread(constraints, spread.requires_all_topologies(waiting), waiting, nodes)
    return {name: raw for name, (raw, _) in scored(soft, waiting, nodes).items()}


def test_by_the_systems_defaults_a_node_without_zone_is_spread_over_by_hostname() -> None:
    """3 - 1 and 5 - 1 for the skews; a pod on the node counts twice, with ln(4) each."""
    snapshot = lent(
        [labelled_node("a", zone="z"), labelled_node("b")], [app_pod("x", "a"), app_pod("y", "b")]
    )
    assert by_default(snapshot) == {"a": 9, "b": 3}


def test_without_nodes_there_is_no_result() -> None:
    nodes = lent([]).nodes
    waiting = app_pod(spread=[soft()])
    assert scored(counted(waiting, nodes), waiting, nodes) == {}


# ---- the logarithm ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "bits"),
    [
        (2, 0x3FE62E42FEFA39EF),
        (3, 0x3FF193EA7AAD030A),
        (14, 0x40051CCA16D7BBA8),
        (48, 0x400EF8383C50BB74),
        (894, 0x401B2ECD7EA66F2E),
        (5002, 0x40210901F6DC84B9),
    ],
)
def test_the_logarithm_equals_gos_to_the_last_bit(number: int, bits: int) -> None:
    """Bits that a Go program printed. For most values the C library's last bit differs."""
    assert struct.unpack(">Q", struct.pack(">d", go_log(number)))[0] == bits


@given(st.integers(1, 10**9))
def test_the_logarithm_is_close_to_the_exact_one(number: int) -> None:
    assert abs(go_log(number) - math.log(number)) <= 2 * math.ulp(math.log(number) or 1.0)
