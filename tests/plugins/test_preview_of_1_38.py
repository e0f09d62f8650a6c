"""What merged pull requests change in 1.38: nothing of it is recorded yet."""

from typing import Any, cast

import pytest

from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET, PodDisruptionBudget
from bayplan.api.objects import POD, Pod, decode
from bayplan.config.feature_gates import default_gates
from bayplan.config.kubernetes_versions import NEWEST, KubernetesVersion
from bayplan.config.schema import PluginEntry, Plugins, PluginSet
from bayplan.engine.cycle import Cycle
from bayplan.engine.schedule_one import CycleRunner
from bayplan.framework.preemption import REVIEW, CandidateReview, Candidates, Victims
from bayplan.framework.status import NodeToStatus, unschedulable
from bayplan.framework.types import QueuedPodInfo
from bayplan.plugins.default_preemption.budgets import Budgets
from bayplan.plugins.dynamic_resources.pools import AllocationError, NodeAllocationFailed
from bayplan.plugins.pod_topology_spread.constraints import PodTopologySpreadArgs, SpreadRules
from bayplan.plugins.pod_topology_spread.plugin import PodTopologySpread
from bayplan.plugins.registry import Registry
from bayplan.profile.plugin_sets import set_problems
from bayplan.state.pods import pod_info
from bayplan.testing.clusters import SampleCluster, handle_for
from bayplan.testing.factories import node, pod
from tests.plugins.devices_kit import (
    DRIVER,
    all_of,
    allocate_on,
    allocated,
    claim,
    class_of,
    device,
    exactly,
    put,
    slice_of,
)
from tests.plugins.preemption_kit import Scene, scene


@pytest.mark.parametrize(("version", "counts"), [(NEWEST, False), (KubernetesVersion.V1_38, True)])
def test_an_empty_spread_selector_counts_all_pods(version: KubernetesVersion, counts: bool) -> None:
    handle = handle_for(SampleCluster(kubernetes=version), PodTopologySpread, "PodTopologySpread")
    constraint = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
    }
    meta = {"name": "w", "namespace": "default", "uid": "w"}
    content = {"metadata": meta, "spec": {"topologySpreadConstraints": [constraint]}}
    waiting = pod_info(cast(Pod, decode(POD, content)))
    [hard] = SpreadRules(PodTopologySpreadArgs(), handle).hard(waiting).constraints
    assert (hard.pods is not None) is counts


def test_an_empty_budget_protects_all_pods() -> None:
    content = {
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {"selector": {}},
        "status": {"disruptionsAllowed": 0},
    }
    budget = cast(PodDisruptionBudget, decode(POD_DISRUPTION_BUDGET, content))
    unlabelled = pod("a", node="n1")
    assert Budgets([budget]).violated_by([unlabelled]) == [False]
    assert Budgets([budget], protect_all=True).violated_by([unlabelled]) == [True]


# ---- preemption ------------------------------------------------------------------------------

FITS = pod("p", cpu=1, priority=9)


def scene_of(version: KubernetesVersion) -> Scene:
    return scene(node("n1", cpu=2), pod("low", cpu=1, node="n1"), kubernetes=version)


def post_filter_of_fitting_pod(over: Scene, review: CandidateReview | None = None) -> Any:
    """(nominated node, message) after an extender rejected the only node, which the pod fits."""
    cycle = Cycle(QueuedPodInfo(FITS, 0.0), over.framework, over.cluster.lend())
    assert CycleRunner(over.cluster.nominator, seed=0, extenders=()).run(cycle) is None
    if review is not None:
        cycle.state[REVIEW] = review
    statuses = NodeToStatus({"n1": unschedulable("no licence")})
    nomination, status = over.framework.run_post_filter(cycle.state, FITS, statuses)
    assert status is not None
    return "" if nomination is None else nomination.node_name, status.message


def test_a_node_that_only_extenders_reject_is_an_error_of_preemption_before_1_38() -> None:
    _, message = post_filter_of_fitting_pod(scene_of(NEWEST))
    assert message == 'preemption: expected at least one victim pod on node "n1"'
    _, message = post_filter_of_fitting_pod(scene_of(KubernetesVersion.V1_38))
    expected = "1 No preemption victims found for incoming pod."
    assert message == f"preemption: 0/1 nodes are available: {expected}"


def test_extenders_that_preempt_may_find_victims_for_such_a_node() -> None:
    seen: list[Candidates] = []
    low = pod("low", cpu=1, node="n1")
    over = scene(node("n1", cpu=2), low, kubernetes=KubernetesVersion.V1_38)

    def review(candidates: Candidates) -> Candidates:
        seen.append(candidates)
        return {name: Victims((low,)) for name in candidates}

    nominated, message = post_filter_of_fitting_pod(over, review)
    assert seen == [{"n1": Victims(())}]
    assert nominated == "n1" and message.endswith("on node n1, preempting 1 victims")


def test_a_node_that_stays_without_victims_is_no_candidate() -> None:
    over = scene_of(KubernetesVersion.V1_38)
    _, message = post_filter_of_fitting_pod(over, lambda candidates: candidates)
    assert message == "preemption: no candidate node for preemption"


# ---- devices ---------------------------------------------------------------------------------

_PART = slice_of("n1", "d", pool={"resourceSliceCount": 2})
_TWICE = slice_of("n1", "d", "d")


@pytest.mark.parametrize(("content", "state"), [(_PART, "being updated"), (_TWICE, "invalid")])
def test_all_devices_of_a_broken_pool_reject_the_node(content: Any, state: str) -> None:
    wanted = claim("c", all_of())
    with pytest.raises(AllocationError, match=f"is currently {state}"):
        allocate_on("n1", (content,), wanted)
    with pytest.raises(NodeAllocationFailed, match=f"is currently {state}"):
        allocate_on("n1", (content,), wanted, kubernetes=KubernetesVersion.V1_38)


def share_of(name: str, amount: str) -> Any:
    """A claim with a share of the device d."""
    content = claim("old", exactly(), status=allocated(("n1", "d")))
    [result] = content["status"]["allocation"]["devices"]["results"]
    result.update(shareID="5f8e", consumedCapacity={name: amount})
    return content


def test_a_device_that_a_claim_shares_is_not_given_as_a_whole() -> None:
    contents = (slice_of("n1", device("d", capacity={"memory": "8"})), share_of("memory", "1"))
    wanted = claim("new", exactly(capacity={"requests": {"memory": "7"}}))
    assert allocate_on("n1", contents, wanted) == [["r n1/d"]]
    assert allocate_on("n1", contents, wanted, kubernetes=KubernetesVersion.V1_38) is None


FULL = f"{DRIVER}/memory"


@pytest.mark.parametrize(("published", "requested"), [("memory", FULL), (FULL, "memory")])
def test_a_capacity_has_two_names(published: str, requested: str) -> None:
    shared = device("d", allowMultipleAllocations=True, capacity={published: "8"})
    requests = {"requests": {requested: "5"}}
    wanted = [claim(name, exactly(capacity=requests)) for name in ("a", "b")]
    slices, preview = (slice_of("n1", shared),), KubernetesVersion.V1_38
    assert allocate_on("n1", slices, wanted[0]) is None
    assert allocate_on("n1", slices, wanted[0], kubernetes=preview) == [["r n1/d"]]
    assert allocate_on("n1", slices, *wanted, kubernetes=preview) is None


def test_shares_under_the_other_name_of_a_capacity_count() -> None:
    shared = device("d", allowMultipleAllocations=True, capacity={"memory": "8"})
    wanted = claim("new", exactly(capacity={"requests": {"memory": "5"}}))
    contents = (slice_of("n1", shared), share_of(FULL, "5"))
    assert allocate_on("n1", contents, wanted) == [["r n1/d"]]
    assert allocate_on("n1", contents, wanted, kubernetes=KubernetesVersion.V1_38) is None


@pytest.mark.parametrize(("version", "has_own"), [(NEWEST, False), (KubernetesVersion.V1_38, True)])
def test_a_class_whose_extended_resource_a_newer_class_has_stands_for_its_own(
    version: KubernetesVersion, has_own: bool
) -> None:
    newer, older = (class_of(name, extendedResourceName="a.io/x") for name in ("a", "b"))
    newer["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    older["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    cluster = SampleCluster(kubernetes=version)
    put(cluster.store, newer, older)
    behind = cluster.devices.device_classes.behind
    winner, own = behind("a.io/x"), behind("deviceclass.resource.kubernetes.io/b")
    assert winner is not None and winner.metadata.name == "a"
    assert (own is not None) is has_own


# ---- groups ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "problems"),
    [
        (NEWEST, []),
        (KubernetesVersion.V1_38, ['"GangScheduling" has no permit; it has preEnqueue']),
    ],
)
def test_gangs_have_no_permit(version: KubernetesVersion, problems: list[str]) -> None:
    plugins = Plugins(permit=PluginSet(enabled=(PluginEntry(name="GangScheduling"),)))
    refused = set_problems(plugins, Registry(), "", default_gates(version))
    assert [f"{each.actual}; {each.expected}" for each in refused] == problems
