"""KubeSchedulerConfiguration v1: field names, computed defaults, and extenders."""

from typing import Any

import pytest
from msgspec import structs

from bayplan.config.decoding import decode
from bayplan.config.schema import (
    ClientConnection,
    Extender,
    ExtenderTLSConfig,
    KubeSchedulerConfiguration,
    LeaderElection,
    Plugins,
    Profile,
    ignored_resources,
    named_extenders,
    with_defaults,
)

# ---- schema ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            KubeSchedulerConfiguration,
            (
                "apiVersion kind parallelism leaderElection clientConnection enableProfiling "
                "enableContentionProfiling percentageOfNodesToScore podInitialBackoffSeconds "
                "podMaxBackoffSeconds profiles extenders delayCacheUntilActive featureGates "
                "reuse podGroups"
            ),
        ),
        (
            Plugins,
            (
                "multiPoint preEnqueue queueSort preFilter filter postFilter preScore score "
                "reserve permit preBind bind postBind placementGenerate placementScore "
                "podGroupPostFilter tieBreak"
            ),
        ),
        (
            Extender,
            (
                "urlPrefix filterVerb preemptVerb prioritizeVerb weight bindVerb enableHTTPS "
                "tlsConfig httpTimeout nodeCacheCapable managedResources ignorable"
            ),
        ),
        (
            ExtenderTLSConfig,
            "insecure serverName certFile keyFile caFile certData keyData caData",
        ),
        (
            LeaderElection,
            (
                "leaderElect leaseDuration renewDeadline retryPeriod resourceLock resourceName "
                "resourceNamespace"
            ),
        ),
        (ClientConnection, "kubeconfig acceptContentTypes contentType qps burst"),
        (
            Profile,
            "schedulerName percentageOfNodesToScore plugins pluginConfig reuse strictSignatures",
        ),
    ],
)
def test_fields_have_the_names_that_upstream_gives_them(kind: type, names: str) -> None:
    assert [field.encode_name for field in structs.fields(kind)] == names.split()


def names(spec: KubeSchedulerConfiguration) -> list[str | None]:
    return [profile.scheduler_name for profile in with_defaults(spec).profiles]


@pytest.mark.parametrize(
    ("scheduler", "fields", "lease"),
    [
        (None, {}, ("kube-scheduler", "kube-system")),
        ("default-scheduler", {}, ("kube-scheduler", "kube-system")),
        ("default-scheduler", {"resource_namespace": "a"}, ("kube-scheduler", "a")),
        ("default-scheduler", {"resource_name": "b"}, ("b", "")),
        ("mine", {}, ("bayplan", "")),
    ],
)
def test_a_profile_for_kube_schedulers_pods_shares_its_lease(
    scheduler: str | None, fields: dict[str, Any], lease: tuple[str, str]
) -> None:
    spec = KubeSchedulerConfiguration(
        profiles=(Profile(scheduler_name=scheduler),), leader_election=LeaderElection(**fields)
    )
    leader_election = with_defaults(spec).leader_election
    assert (leader_election.resource_name, leader_election.resource_namespace) == lease


@pytest.mark.parametrize("duration", ["0", "0s", "-0ms"])
def test_a_zero_duration_means_the_default(duration: str) -> None:
    spec = KubeSchedulerConfiguration(
        leader_election=LeaderElection(lease_duration=duration, resource_name="mine"),
        extenders=(Extender(http_timeout=duration),),
    )
    filled = with_defaults(spec)
    assert filled.leader_election == LeaderElection(resource_name="mine")
    assert filled.extenders[0].http_timeout == "5s"


def test_an_empty_value_means_the_default_and_false_does_not() -> None:
    spec = KubeSchedulerConfiguration(
        leader_election=LeaderElection(leader_elect=False, resource_lock="", resource_name=""),
        client_connection=ClientConnection(content_type="", qps=0, burst=0),
    )
    filled = with_defaults(spec)
    election = LeaderElection(
        leader_elect=False, resource_name="kube-scheduler", resource_namespace="kube-system"
    )
    assert filled.leader_election == election
    assert filled.client_connection == ClientConnection()


@pytest.mark.parametrize(
    ("profiling", "contention", "effective"),
    [(True, None, True), (False, None, False), (False, True, True), (True, False, False)],
)
def test_contention_profiling_follows_profiling(
    profiling: bool, contention: bool | None, effective: bool
) -> None:
    spec = KubeSchedulerConfiguration(
        enable_profiling=profiling, enable_contention_profiling=contention
    )
    assert with_defaults(spec).enable_contention_profiling is effective


# ---- extenders ------------------------------------------------------------------------------


def entry(url: str = "http://a/", **fields: Any) -> Extender:
    result, problems = decode({"urlPrefix": url, **fields}, Extender, "")
    assert result is not None, problems
    return result


def test_each_extender_has_a_unique_name_from_its_url() -> None:
    entries = [entry("http://a/"), entry("http://b/"), entry("http://a/")]
    assert list(named_extenders(entries)) == ["http://a/", "http://b/", "http://a/ (extenders[2])"]


def test_only_managed_resources_with_the_mark_are_ignored_by_the_scheduler() -> None:
    fpga = {"name": "example.com/fpga", "ignoredByScheduler": True}
    entries = [entry(managedResources=[fpga, {"name": "example.com/gpu"}]), entry()]
    assert ignored_resources(entries) == ("example.com/fpga",)
