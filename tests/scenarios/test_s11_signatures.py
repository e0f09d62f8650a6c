"""S-11, parts C and D: faults that check_plugin detects, and pods with equal signatures.

tests/testing/test_conformance.py tests that every plugin of the tree passes, with the variants
that are counted here. Pairs of pods with claims are in the tests of the plugins that read claims.
"""

from functools import partial
from typing import Any

import pytest

from bayplan.config import config_from
from bayplan.framework.plugin import Plugin
from bayplan.framework.signing import Signer
from bayplan.plugins.registry import Registry, in_tree_plugins
from bayplan.profile.dry_start import idle_handle
from bayplan.profile.profiles import build_profiles
from bayplan.testing import CheckFailed, PodOptions, check_plugin, pod
from tests.testing.broken_plugins import CountsDownTwice, RanksNodes, SignsTooLittle, WritesColumns
from tests.testing.variants import VARIANTS

# ---- part C --------------------------------------------------------------------------------


def test_every_plugin_of_the_tree_is_checked() -> None:
    assert {each.values[0] for each in VARIANTS} == set(in_tree_plugins())


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        (SignsTooLittle, "signs too little: two pods that differ in spec.tolerations"),
        (RanksNodes, "says something else through nodes.take(rows): scores of node"),
        (CountsDownTwice, "unreserve"),
        (WritesColumns, "writes to a column of the nodes"),
    ],
)
def test_a_planted_fault_is_detected(planted: type[Plugin], words: str) -> None:
    with pytest.raises(CheckFailed) as failed:
        check_plugin(planted)
    assert words in str(failed.value)


# ---- part D --------------------------------------------------------------------------------


def signer(name: str = "bayplan") -> Signer:
    """The default profile without default spread constraints, with which no pod has a signature."""
    no_defaults = {"name": "PodTopologySpread", "args": {"defaultingType": "List"}}
    config = config_from(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": name, "pluginConfig": [no_defaults]}],
        }
    )
    registry = Registry()
    [built] = build_profiles(config, registry, partial(idle_handle, registry))
    return built.signer


SIGNER = signer()


def differing(one: PodOptions, other: PodOptions) -> set[str]:
    """The plugins whose parts of the signature differ between two pods with these options."""
    one_parts, other_parts = (SIGNER.sign(pod("p", **each)).parts for each in (one, other))
    return {name for name in one_parts if one_parts[name] != other_parts[name]}


def tolerating(*keys: str) -> PodOptions:
    return {"tolerations": [{"key": key, "operator": "Exists"} for key in keys]}


def listening(**port: Any) -> PodOptions:
    return {"host_ports": [{"containerPort": 80, "hostPort": 80, **port}]}


def running(*images: str) -> PodOptions:
    return {"containers": [{"name": f"c{n}", "image": each} for n, each in enumerate(images)]}


def preferring(weight: int) -> PodOptions:
    terms = {"matchExpressions": [{"key": "disktype", "operator": "Exists"}]}
    preferences = [{"weight": weight, "preference": terms}]
    return {
        "affinity": {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferences}
        }
    }


FIT, BALANCED = "NodeResourcesFit", "NodeResourcesBalancedAllocation"
CONFIG_MAP = {"name": "v", "configMap": {"name": "settings"}}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(tolerating("a", "b"), tolerating("b", "a"), set(), id="order of tolerations"),
        pytest.param({}, tolerating("a"), {"TaintToleration"}, id="an additional toleration"),
        pytest.param(listening(), listening(protocol="TCP"), set(), id="80 and 80/TCP"),
        pytest.param(listening(), listening(protocol="UDP"), {"NodePorts"}, id="80/UDP"),
        pytest.param(listening(), listening(hostIP="10.0.0.1"), {"NodePorts"}, id="an address"),
        pytest.param(listening(), listening(hostIP="0.0.0.0"), set(), id="all addresses"),
        pytest.param({"cpu": "500m"}, {"cpu": "0.5"}, set(), id="500m and 0.5"),
        pytest.param({"cpu": "1"}, {"cpu": "2"}, {FIT, BALANCED}, id="one and two"),
        pytest.param({"cpu": 1}, {"cpu": 1, "memory": 0}, {FIT}, id="memory unset and zero"),
        pytest.param({}, {"node": "n1"}, {"NodeName"}, id="a node"),
        pytest.param({"node": "n1"}, {"node": "n2"}, {"NodeName"}, id="another node"),
        pytest.param(preferring(1), preferring(2), {"NodeAffinity"}, id="weights"),
        pytest.param(running("x", "y"), running("y", "x"), set(), id="order of images"),
        pytest.param(running("x"), running("x:latest"), set(), id="x and x:latest"),
        pytest.param(running("x:1"), running("x:2"), {"ImageLocality"}, id="x:1 and x:2"),
        pytest.param({}, {"spec": {"volumes": [CONFIG_MAP]}}, set(), id="a ConfigMap"),
        pytest.param({}, {"priority": 7}, set(), id="priority"),
        pytest.param({}, {"annotations": {"a": "b"}}, set(), id="annotations"),
        pytest.param({}, {"uid": "another"}, set(), id="uid"),
    ],
)
def test_signatures_differ_where_results_may_differ(
    one: PodOptions, other: PodOptions, expected: set[str]
) -> None:
    assert differing(one, other) == expected
    same = SIGNER.sign(pod("one", **one)) is SIGNER.sign(pod("other", **other))
    assert same is (not expected)


SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
NEAR = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {}}
        ]
    }
}


@pytest.mark.parametrize(
    ("options", "unsigned"),
    [
        pytest.param({}, (), id="nothing"),
        pytest.param({"spread": [SPREAD]}, ("PodTopologySpread",), id="a spread constraint"),
        pytest.param({"affinity": NEAR}, ("InterPodAffinity",), id="a pod affinity"),
    ],
)
def test_only_plugins_of_scope_cluster_are_unsigned(
    options: PodOptions, unsigned: tuple[str, ...]
) -> None:
    assert SIGNER.sign(pod("p", **options)).unsigned == unsigned
    assert differing({}, options) == set(unsigned)


def test_each_profile_has_its_own_cache_key() -> None:
    each = pod("p")
    assert SIGNER.sign(each).key != signer("another").sign(each).key
    assert SIGNER.sign(each).key == signer().sign(each).key
