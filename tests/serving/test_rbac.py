"""The minimal rights of a scheduler."""

from typing import Any

from bayplan.config import SchedulerConfig, config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.plugins.registry import Registry
from bayplan.serving.rbac import Names, cluster_rules, manifests
from tests.scenarios.trees import GATES
from tests.scenarios.world import Setup, config_dict
from tests.serving.device_plugin import Devices

REGISTRY = Registry()
REGISTRY.add(Devices)


def rules(config: SchedulerConfig) -> dict[tuple[str, str], list[str]]:
    """(group, resource) → verbs"""
    return {
        (rule["apiGroups"][0], resource): rule["verbs"]
        for rule in cluster_rules(config, REGISTRY)
        for resource in rule["resources"]
    }


#: Every profile places groups of pods of all kinds.
POD_GROUPS = {
    (group, resource): verbs
    for group in ("scheduling.k8s.io", "scheduling.ming.io", "scheduling.x-k8s.io")
    for resource, verbs in (("podgroups", ["list", "watch"]), ("podgroups/status", ["patch"]))
}


def test_kinds_that_no_configured_plugin_reads_may_not_be_read() -> None:
    result = rules(config_from(config_dict(Setup(plugins=["NodeName"]))))
    assert result == {
        ("", "nodes"): ["list", "watch"],
        ("", "pods"): ["delete", "get", "list", "watch"],
        ("", "pods/binding"): ["create"],
        ("", "pods/status"): ["patch"],
        ("events.k8s.io", "events"): ["create", "patch"],
        ("authentication.k8s.io", "tokenreviews"): ["create"],
        ("authorization.k8s.io", "subjectaccessreviews"): ["create"],
        **POD_GROUPS,
    }


def test_kinds_that_a_configured_plugin_reads_may_be_read_and_no_more() -> None:
    result = rules(config_from(config_dict(Setup(plugins=["Devices"]))))
    assert result["", "services"] == ["list", "watch"]
    assert result["resource.k8s.io", "resourceslices"] == ["list", "watch"]
    assert result["resource.k8s.io", "deviceclasses"] == ["list", "watch"]


def test_with_the_gate_of_trees_their_kind_may_be_read() -> None:
    kind = ("scheduling.k8s.io", "compositepodgroups")
    on = rules(config_from(config_dict(Setup(plugins=["GangScheduling"], gates=GATES))))
    assert on[kind] == ["list", "watch"]
    assert kind not in rules(config_from(config_dict(Setup(plugins=["GangScheduling"]))))


def test_the_default_profile_may_not_read_secrets_or_write_nodes() -> None:
    result = rules(config_from(DEFAULT_CONFIG))
    assert ("", "secrets") not in result
    assert result["", "nodes"] == ["list", "watch"]
    assert result["apps", "replicasets"] == ["list", "watch"]
    # VolumeBinding and DynamicResources write their decisions.
    assert result["", "persistentvolumeclaims"] == ["list", "patch", "watch"]
    # DynamicResources allocates and reserves claims, and creates claims for extended resources.
    claims = ["create", "delete", "get", "list", "patch", "watch"]
    assert result["resource.k8s.io", "resourceclaims"] == claims
    for subresource in ("status", "binding"):
        assert result["resource.k8s.io", f"resourceclaims/{subresource}"] == ["patch"]


def printed(**election: Any) -> dict[str, Any]:
    config = config_from({**DEFAULT_CONFIG, "leaderElection": election})
    roles = manifests(config, REGISTRY, Names("mine", "schedulers", "me"))
    return {manifest["kind"]: manifest for manifest in roles}


def test_the_lease_is_written_in_its_namespace_only() -> None:
    result = printed(resourceName="lock")
    assert result["Role"]["metadata"] == {"name": "mine", "namespace": "schedulers"}
    create, use = result["Role"]["rules"]
    assert (create["verbs"], "resourceNames" in create) == (["create"], False)
    assert (use["verbs"], use["resourceNames"]) == (["get", "update", "watch"], ["lock"])
    elsewhere = printed(resourceNamespace="kube-system")
    assert elsewhere["RoleBinding"]["metadata"]["namespace"] == "kube-system"
    assert elsewhere["RoleBinding"]["subjects"][0]["namespace"] == "schedulers"


def test_without_an_election_there_is_no_role() -> None:
    assert set(printed(leaderElect=False)) == {"ClusterRole", "ClusterRoleBinding"}


def test_bindings_name_their_role_and_the_service_account() -> None:
    roles = printed()
    for kind in ("ClusterRole", "Role"):
        binding = roles[f"{kind}Binding"]
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == (kind, "mine")
        subject = {"kind": "ServiceAccount", "name": "me", "namespace": "schedulers"}
        assert binding["subjects"] == [subject]
