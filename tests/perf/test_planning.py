"""All input is checked before a run. A workload that cannot run has a reason."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.config import load_config
from bayplan.config.feature_gates import resolve_gates
from bayplan.config.kubernetes_versions import KubernetesVersion
from bayplan.perf.planning import (
    Plan,
    RefusedWorkload,
    Selection,
    Setting,
    features_missing,
    plan_all,
)
from bayplan.plugins.registry import Registry
from tests.perf.kit import (
    SMALL_POD,
    case,
    op,
    plan,
    planned,
    read,
    refusal,
    write_cases,
)

# ---- planning -------------------------------------------------------------------------------


CONFIG = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration%s}"


def test_a_plan_contains_its_operations_with_parameters(tmp_path: Path) -> None:
    path = write_cases(tmp_path, case(op("createNodes", countParam="$n"), params={"n": 3}))
    result = plan(path)
    assert (result.name, result.operations[0].count) == ("Case/small", 3)  # type: ignore[union-attr]


def test_only_selected_workloads_are_planned(tmp_path: Path) -> None:
    workloads = [{"name": "a", "labels": ["short"]}, {"name": "b"}]
    path = write_cases(tmp_path, {**case(op("barrier")), "labels": ["x"], "workloads": workloads})
    plans = plan_all(read(path), Selection(label_filter="x,-short"), Setting(Registry()))
    assert [one.name for one in plans] == ["Case/b"]


@pytest.mark.parametrize(
    ("operation", "files", "message"),
    [
        (op("createPods", countParam="$n"), {}, '[0].workloads[0].params: no "n"'),
        (op("createAny", templatePath="x.yaml"), {}, "x.yaml: cannot be read"),
        (
            op("createAny", templatePath="x.yaml", namespace="a"),
            {"x": "kind: {{ with .a }}"},
            'x.yaml: line 1: found "with"',
        ),
        (
            op("createAny", templatePath="x.yaml"),
            {"x": SMALL_POD},
            "x.yaml: found no namespace, wanted one: v1 Pod has one",
        ),
        (
            op("createPods", podTemplatePath="x.yaml"),
            {"x": SMALL_POD.replace("cpu: 1", "cpu: none")},
            "spec.containers[0].resources.requests.cpu",
        ),
        (op("stopCollectingProfile"), {}, "the operation stopCollectingProfile is not supported"),
    ],
)
def test_a_workload_that_cannot_run_has_a_reason(
    tmp_path: Path, operation: Any, files: dict[str, str], message: str
) -> None:
    assert message in refusal(write_cases(tmp_path, case(operation), **files))


def test_a_workload_that_lacks_a_parameter_is_refused_and_further_ones_can_run(
    tmp_path: Path,
) -> None:
    workloads = [{"name": "a", "params": {"x": 1}}, {"name": "b"}]
    path = write_cases(tmp_path, {**case(op("barrier")), "workloads": workloads})
    assert [type(one) for one in planned(path)] == [RefusedWorkload, Plan]


def test_feature_gates_come_from_the_case_the_workload_and_the_command_line(tmp_path: Path) -> None:
    whole = case(
        op("barrier"), featureGates={"GenericWorkload": True, "SchedulerAsyncAPICalls": True}
    )
    whole["workloads"][0]["featureGates"] = {"SchedulerAsyncAPICalls": False}
    path = write_cases(tmp_path, whole)
    config = plan(path).config
    assert (config.gate("GenericWorkload"), config.gate("SchedulerAsyncAPICalls")) == (True, False)
    config = plan(path, feature_gates="GenericWorkload=false").config
    assert config.gate("GenericWorkload") is False


def test_a_gate_that_cannot_be_set_refuses_the_workload(tmp_path: Path) -> None:
    path = write_cases(tmp_path, case(op("barrier"), featureGates={"NodeDeclaredFeatures": False}))
    assert "feature is locked to true" in refusal(path)


def test_a_test_case_names_its_configuration(tmp_path: Path) -> None:
    text = CONFIG % ", profiles: [{schedulerName: mine}]"
    path = write_cases(tmp_path, case(op("barrier"), schedulerConfigPath="c.yaml"), c=text)
    assert plan(path).config.spec.profiles[0].scheduler_name == "mine"


def test_the_configuration_of_the_command_line_has_priority(tmp_path: Path) -> None:
    path = write_cases(tmp_path, case(op("barrier"), schedulerConfigPath="c.yaml"))
    own = load_config(CONFIG % ", profiles: [{schedulerName: ours}]", "own.yaml")
    assert plan(path, config=own).config.spec.profiles[0].scheduler_name == "ours"


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "c.yaml: cannot be read"), (CONFIG % ", profilez: []", "profilez: unknown field")],
)
def test_an_invalid_configuration_refuses_the_workload(
    tmp_path: Path, text: str | None, message: str
) -> None:
    files = {} if text is None else {"c": text}
    path = write_cases(tmp_path, case(op("barrier"), schedulerConfigPath="c.yaml"), **files)
    assert message in refusal(path)


def test_upstreams_syntax_is_read(tmp_path: Path) -> None:
    """Anchors and flow styles are read as YAML."""
    whole = case(op("barrier"))
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump([whole], default_flow_style=True))
    assert plan(path).name == "Case/small"


# ---- selection ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label_filter", "takes"),
    [
        ("", True),
        ("performance", True),
        ("+performance", True),
        ("performance,short", False),
        ("performance,-short", True),
        ("performance, !short", True),
        ("-performance", False),
        ("!performance", False),
        (",", True),
    ],
)
def test_labels_are_required_or_excluded(label_filter: str, takes: bool) -> None:
    assert Selection(label_filter=label_filter).takes("A/b", ["performance", "slow"]) is takes


@pytest.mark.parametrize(
    ("pattern", "takes"),
    [("Basic", True), ("^Basic/5Nodes$", True), ("/500", False), ("^5", False)],
)
def test_names_are_matched_by_search(pattern: str, takes: bool) -> None:
    assert Selection([re.compile(pattern)]).takes("Basic/5Nodes", ()) is takes


# ---- feature gates --------------------------------------------------------------------------


def test_gates_that_are_not_built_are_named() -> None:
    values = ("DynamicResourceAllocation", "DRANodeAllocatableResources")
    given: tuple[str, dict[str, bool]] = ("", dict.fromkeys(values, True))
    gates, _ = resolve_gates(given, version=KubernetesVersion.V1_36)
    [text] = features_missing(gates)
    assert text.startswith(
        "the feature gate DRANodeAllocatableResources is on, which is not built yet: "
    )
    newer, _ = resolve_gates(given)
    assert not list(features_missing(newer))
