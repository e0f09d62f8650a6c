"""Fields that must agree, be unique, or be present. The cases were tried in kube-scheduler, too."""

from typing import Any

import pytest

from bayplan.config import config_from

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def complaints(**fields: Any) -> list[str]:
    return [str(problem) for problem in config_from(HEAD | fields).problems]


def of_profile(**fields: Any) -> list[str]:
    return complaints(profiles=[fields])


def of_extenders(*extenders: dict[str, Any]) -> list[str]:
    address = {"urlPrefix": "http://127.0.0.1:8888/"}
    return complaints(extenders=[{**address, **each} for each in extenders])


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        (
            {"apiVersion": "kubescheduler.config.k8s.io/v7"},
            'apiVersion: "kubescheduler.config.k8s.io/v7"; wanted kubescheduler.config.k8s.io/v1',
        ),
        ({"apiVersion": ""}, "apiVersion: missing; wanted kubescheduler.config.k8s.io/v1"),
        ({"kind": "Pod"}, 'kind: "Pod"; wanted KubeSchedulerConfiguration'),
        ({"parallelism": 0}, "parallelism: 0; wanted an integer of 1 or more"),
        (
            {"percentageOfNodesToScore": 101},
            "percentageOfNodesToScore: 101; wanted an integer from 0 to 100",
        ),
        ({"podInitialBackoffSeconds": 0}, "podInitialBackoffSeconds: 0; wanted an integer of 1"),
        (
            {"podInitialBackoffSeconds": 20},
            "podMaxBackoffSeconds: 10; wanted podInitialBackoffSeconds, 20, or more",
        ),
        ({"clientConnection": {"burst": -1}}, "clientConnection.burst: -1; wanted an integer of 0"),
        (
            {"percentageOfNodeToScore": 50},
            'percentageOfNodeToScore: unknown field; did you mean "percentageOfNodesToScore"?',
        ),
        ({"healthzBindAddress": "x"}, "healthzBindAddress: unknown field"),
    ],
)
def test_a_field_out_of_range_is_refused(fields: dict[str, Any], complaint: str) -> None:
    [problem] = complaints(**fields)
    assert problem.startswith(complaint)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"resourceLock": "endpoints"}, 'resourceLock: "endpoints"; wanted leases'),
        ({"leaseDuration": "5s"}, "leaseDuration: 5s; wanted more than renewDeadline, 10s"),
        ({"renewDeadline": "15s"}, "leaseDuration: 15s; wanted more than renewDeadline, 15s"),
        ({"retryPeriod": "-1s"}, "retryPeriod: -1s; wanted more than 0s"),
        (
            {"retryPeriod": "9s"},
            "renewDeadline: 10s; wanted more than 1.2 times retryPeriod, 9s",
        ),
        ({"leaseDuration": "5"}, 'leaseDuration: "5"; wanted a duration such as 15s or 1m30s'),
    ],
)
def test_leader_election_needs_a_lease_and_consistent_durations(
    fields: dict[str, Any], complaint: str
) -> None:
    assert complaints(leaderElection=fields) == [f"leaderElection.{complaint}"]


# ---- profiles ------------------------------------------------------------------------------


def test_profile_names_are_unique() -> None:
    assert complaints(profiles=[{"schedulerName": "a"}, {"schedulerName": "a"}]) == [
        'profiles[1].schedulerName: "a" again; profiles[0] has this name already'
    ]
    [complaint] = complaints(profiles=[{"schedulerName": "a"}, {}])
    assert complaint.startswith("profiles[1].schedulerName: missing")
    assert of_profile(schedulerName="")[0].startswith("profiles[0].schedulerName: missing")


def test_an_instance_has_one_entry_of_args() -> None:
    configs = [{"name": name} for name in ("Fit", "Fit/a", "Fit/b", "Fit/a")]
    assert of_profile(pluginConfig=configs) == [
        'profiles[0].pluginConfig[3].name: "Fit/a" again; pluginConfig[1] has its args already'
    ]


@pytest.mark.parametrize("name", ["/a", "Fit/", "Fit/a/b"])
def test_a_label_needs_a_plugin(name: str) -> None:
    message = f'"{name}"; wanted Plugin, or Plugin/label if there are several instances'
    assert of_profile(
        plugins={"score": {"enabled": [{"name": name}]}, "filter": {"disabled": [{"name": name}]}},
        pluginConfig=[{"name": name}],
    ) == [
        f"profiles[0].plugins.filter.disabled[0].name: {message}",
        f"profiles[0].plugins.score.enabled[0].name: {message}",
        f"profiles[0].pluginConfig[0].name: {message}",
    ]


def test_a_plugin_needs_a_name() -> None:
    [enabled] = of_profile(plugins={"multiPoint": {"enabled": [{"weight": 1}]}})
    assert enabled.startswith("profiles[0].plugins.multiPoint.enabled[0].name: missing")
    [config] = of_profile(pluginConfig=[{"args": {}}])
    assert config.startswith("profiles[0].pluginConfig[0].name: missing")


def test_all_plugins_can_be_disabled_but_not_enabled() -> None:
    everything = [{"name": "*"}]
    assert of_profile(plugins={"score": {"disabled": everything}}) == []
    assert of_profile(plugins={"score": {"enabled": everything}}) == [
        'profiles[0].plugins.score.enabled[0].name: "*"; wanted a name; only disabled has "*"'
    ]


def test_all_profiles_have_the_same_queue_sort() -> None:
    sort = {"queueSort": {"enabled": [{"name": "PrioritySort"}]}}
    first, second = {"schedulerName": "a"}, {"schedulerName": "b"}
    assert complaints(profiles=[first | {"plugins": sort}, second | {"plugins": sort}]) == []
    [complaint] = complaints(profiles=[first, second | {"plugins": sort}])
    assert complaint.startswith("profiles[1].plugins.queueSort: differs from profiles[0]")


# ---- extenders -----------------------------------------------------------------------------


def test_only_one_extender_may_bind() -> None:
    binder = {"urlPrefix": "http://a/", "bindVerb": "bind"}
    assert of_extenders(binder, {"filterVerb": "f"}) == []
    assert of_extenders(binder, binder) == [
        (
            'extenders[1].bindVerb: "bind"; '
            "only one extender may bind, and extenders[0] has a bindVerb, too"
        )
    ]


def test_a_scoring_extender_has_a_weight() -> None:
    assert of_extenders({"prioritizeVerb": "p", "weight": 1}) == []
    assert of_extenders({"filterVerb": "f", "weight": -1}) == []
    assert of_extenders({"prioritizeVerb": "p"}) == [
        "extenders[0].weight: 0; wanted 1 or more with a prioritizeVerb"
    ]


@pytest.mark.parametrize(
    "name",
    ["", "cpu", "a b/c", "requests.a.b/c", "a.kubernetes.io/c", "a/b/c", "a" * 250 + "/x"],
)
def test_an_extender_manages_extended_resources(name: str) -> None:
    [complaint] = of_extenders({"managedResources": [{"name": name}]})
    assert complaint.startswith("extenders[0].managedResources[0].name: ")
    assert complaint.endswith("wanted a name such as example.com/gpu")


def test_a_resource_is_managed_by_one_extender() -> None:
    gpu = {"managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}]}
    assert of_extenders(gpu) == []
    assert of_extenders(gpu, gpu) == [
        (
            'extenders[1].managedResources[0].name: "example.com/gpu" again; '
            "extenders[0].managedResources[0].name is the same"
        )
    ]


@pytest.mark.parametrize("url", ["", "127.0.0.1:8888", "ftp://a/", "http://", "http://a:x/"])
def test_an_extender_with_verbs_has_a_url(url: str) -> None:
    [complaint] = of_extenders({"urlPrefix": url, "filterVerb": "f"})
    assert complaint.startswith("extenders[0].urlPrefix: ")
    assert complaint.endswith("wanted http://HOST:PORT/PATH or https://HOST:PORT/PATH")
    assert of_extenders({"urlPrefix": url}) == []


def test_without_an_election_its_settings_are_not_checked() -> None:
    election = {"leaderElect": False, "leaseDuration": "5s", "resourceLock": "endpoints"}
    assert complaints(leaderElection=election) == []
