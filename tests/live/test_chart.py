"""The chart as Helm renders it. Helm is $HELM, on the path, or built once with Go."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.config import load_config
from bayplan.plugins.registry import Registry
from bayplan.profile.resolved_config import resolve
from bayplan.serving.rbac import Names, manifests
from tests.deploy.rendering import (
    CHART,
    KUBERNETES,
    MANIFESTS,
    documents,
    helm,
    plain_manifests,
    rendered,
)

SETS = sorted((CHART / "ci").glob("*-values.yaml"))
PRODUCTION = ("--values", str(CHART / "ci" / "production-values.yaml"))


def objects(*arguments: str) -> list[dict[str, Any]]:
    return documents(rendered(*arguments))


def of_kind(kind: str, *arguments: str) -> list[dict[str, Any]]:
    return [each for each in objects(*arguments) if each["kind"] == kind]


def pod(*arguments: str) -> dict[str, Any]:
    (deployment,) = of_kind("Deployment", *arguments)
    return deployment["spec"]["template"]["spec"]


def container(*arguments: str) -> dict[str, Any]:
    (only,) = pod(*arguments)["containers"]
    return only


@pytest.mark.parametrize(
    "values", [None, *SETS], ids=lambda path: path.stem if path else "defaults"
)
def test_helm_lint_reports_no_problem(values: Any) -> None:
    arguments = ["--values", str(values)] if values else []
    command = [helm(), "lint", "--strict", str(CHART), *arguments]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout


def test_the_plain_manifests_are_the_chart_with_its_defaults() -> None:
    assert MANIFESTS.read_text(encoding="utf-8") == plain_manifests(), "run `make manifests`"


@pytest.mark.parametrize("values", SETS, ids=lambda path: path.stem)
def test_the_configuration_of_a_set_is_valid_and_its_roles_suffice(values: Any) -> None:
    (config, *_) = of_kind("ConfigMap", "--values", str(values))
    loaded = load_config(config["data"]["scheduler.yaml"], "ConfigMap")
    assert resolve(loaded, Registry()).profiles
    (role,) = of_kind("ClusterRole", "--values", str(values))
    needed = manifests(loaded, Registry(), Names(namespace="bayplan"))
    (rules,) = [each["rules"] for each in needed if each["kind"] == "ClusterRole"]
    assert role["rules"] == rules


def test_two_profiles_run_in_one_scheduler() -> None:
    (config,) = of_kind("ConfigMap", "--values", str(CHART / "ci" / "two-profiles-values.yaml"))
    profiles = yaml.safe_load(config["data"]["scheduler.yaml"])["profiles"]
    assert [profile["schedulerName"] for profile in profiles] == ["bayplan-spread", "bayplan-pack"]


def test_a_digest_wins_over_the_tag() -> None:
    digest = f"sha256:{'0' * 64}"
    image = container("--set", f"image.digest={digest},image.tag=1.2")["image"]
    assert image == f"bayplan@{digest}"
    assert container("--set", "image.tag=1.2")["image"] == "bayplan:1.2"


def test_extra_arguments_variables_and_volumes_reach_the_pod() -> None:
    spec = container(*PRODUCTION)
    assert spec["args"][-1] == "--kube-api-content-type=application/json"
    assert {"name": "PYTHONFAULTHANDLER", "value": "1"} in spec["env"]
    assert spec["envFrom"] == [{"configMapRef": {"name": "proxy", "optional": True}}]
    assert {"name": "scratch", "mountPath": "/scratch"} in spec["volumeMounts"]
    assert {"name": "scratch", "emptyDir": {}} in pod(*PRODUCTION)["volumes"]


def test_a_spread_constraint_selects_the_replicas() -> None:
    (constraint,) = pod(*PRODUCTION)["topologySpreadConstraints"]
    (deployment,) = of_kind("Deployment", *PRODUCTION)
    assert constraint["labelSelector"] == deployment["spec"]["selector"]
    assert constraint["topologyKey"] == "topology.kubernetes.io/zone"


def test_monitoring_is_off_by_default_and_complete_in_production() -> None:
    kinds = {"ServiceMonitor", "PodMonitor", "PrometheusRule", "CustomResourceDefinition"}
    assert not kinds & {each["kind"] for each in objects()}
    assert kinds - {"ServiceMonitor"} <= {each["kind"] for each in objects(*PRODUCTION)}
    dashboards = [
        each for each in of_kind("ConfigMap", *PRODUCTION) if "bayplan.json" in each["data"]
    ]
    (dashboard,) = dashboards
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert yaml.safe_load(dashboard["data"]["bayplan.json"])["title"] == "Bayplan"


def test_monitors_scrape_the_port_of_the_container() -> None:
    (service,) = of_kind("ServiceMonitor", "--set", "serviceMonitor.enabled=true")
    (own,) = service["spec"]["endpoints"]
    assert own["bearerTokenFile"].endswith("/token")
    (pods,) = of_kind("PodMonitor", *PRODUCTION)
    (endpoint,) = pods["spec"]["podMetricsEndpoints"]
    assert endpoint["authorization"]["credentials"]["key"] == "token"
    (port,) = container()["ports"]
    assert own["port"] == endpoint["port"] == port["name"]


@pytest.mark.parametrize(("keep", "annotations"), [("true", {"keep"}), ("false", set[str]())])
def test_definitions_stay_after_an_uninstall_unless_keep_is_false(
    keep: str, annotations: set[str]
) -> None:
    definitions = of_kind(
        "CustomResourceDefinition", "--set", f"crds.enabled=true,crds.keep={keep}"
    )
    assert len(definitions) == 2
    for definition in definitions:
        metadata = definition["metadata"]
        assert {*metadata.get("annotations", {}).values()} == annotations
        assert metadata["labels"]["app.kubernetes.io/name"] == "bayplan"
        assert definition["spec"]["versions"][0]["schema"]


def test_two_releases_share_no_name() -> None:
    names = [
        {(each["kind"], each["metadata"]["name"]) for each in objects("--set", f"{key}=other")}
        for key in ("fullnameOverride", "nameOverride")
    ]
    default = {(each["kind"], each["metadata"]["name"]) for each in objects()}
    assert not default & (names[0] | names[1])
    assert all("other" in name for _, name in names[0] | names[1])


@pytest.mark.parametrize(
    "values",
    ["unknown=1", "image.digest=latest", "replicas=2,leaderElection.enabled=false"],
)
def test_helm_refuses_values_against_the_schema(values: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        rendered("--set", values)
    assert "values don't meet the specifications of the schema" in refused.value.stderr


def test_the_notes_name_the_profiles_and_warn_about_kube_schedulers(tmp_path: Path) -> None:
    quiet = notes(tmp_path / "quiet")
    assert "  bayplan\n" in quiet
    assert "kubectl -n ns rollout status deployment/bayplan" in quiet
    assert "WARNING" not in quiet
    loud = notes(tmp_path / "loud", "--set", "config.profiles[0].schedulerName=default-scheduler")
    assert "WARNING: the profile default-scheduler" in loud
    for number, values in enumerate(("config.profiles=null", "config.profiles[0].plugins=null")):
        unnamed = notes(tmp_path / f"unnamed-{number}", "--set", values)
        assert "  default-scheduler\n" in unnamed
        assert "WARNING: the profile default-scheduler" in unnamed


def notes(folder: Path, *arguments: str) -> str:
    """The notes, rendered as a value of an object: Helm prints notes only with a cluster."""
    shutil.copytree(CHART, folder)
    shutil.copy(CHART / "templates" / "NOTES.txt", folder / "NOTES.txt")
    template = 'notes: |\n{{ tpl (.Files.Get "NOTES.txt") . | indent 2 }}\n'
    (folder / "templates" / "notes.yaml").write_text(template)
    command = [helm(), "template", "bayplan", str(folder), "--namespace", "ns", *arguments]
    command += ["--show-only", "templates/notes.yaml", "--kube-version", KUBERNETES]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    return yaml.safe_load(completed.stdout)["notes"]
