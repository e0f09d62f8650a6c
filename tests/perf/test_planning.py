"""Everything is checked before anything runs; what cannot be run says why."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.config import load_config
from bayplan.perf.planning import Plan, Refused, Setting, plan_all
from bayplan.perf.selecting import Selection
from bayplan.plugins.registry import IN_TREE_PLUGINS, Registry
from tests.perf.kit import SMALL_POD, case, op, plan, planned, read, refusal, written

CONFIG = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration%s}"


def test_a_plan_has_its_operations_filled_in(tmp_path: Path) -> None:
    path = written(tmp_path, case(op("createNodes", countParam="$n"), params={"n": 3}))
    found = plan(path)
    assert (found.name, found.operations[0].count) == ("Case/small", 3)  # type: ignore[union-attr]


def test_only_selected_workloads_are_planned(tmp_path: Path) -> None:
    workloads = [{"name": "a", "labels": ["short"]}, {"name": "b"}]
    path = written(tmp_path, {**case(op("barrier")), "labels": ["x"], "workloads": workloads})
    found = plan_all(read(path), Selection(label_filter="x,-short"), Setting(Registry()))
    assert [one.name for one in found] == ["Case/b"]


@pytest.mark.parametrize(
    ("operation", "files", "said"),
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
def test_what_cannot_be_run_says_why(
    tmp_path: Path, operation: Any, files: dict[str, str], said: str
) -> None:
    assert said in refusal(written(tmp_path, case(operation), **files))


def test_a_workload_is_refused_for_a_plugin_that_is_not_here(tmp_path: Path) -> None:
    claiming = SMALL_POD.replace("containers:", "resourceClaims: [{name: a}], containers:")
    path = written(tmp_path, case(op("createPods", podTemplatePath="x.yaml")), x=claiming)
    others = Registry(each for each in IN_TREE_PLUGINS if each.name != "DynamicResources")
    (found,) = plan_all(read(path), Selection(), Setting(others))
    assert isinstance(found, Refused)
    said = "pods with resource claims need DynamicResources, which is not here yet"
    assert said in "\n".join(found.reasons)
    assert isinstance(plan(path), Plan)


def test_others_beside_it_can_be_run(tmp_path: Path) -> None:
    workloads = [{"name": "a", "params": {"x": 1}}, {"name": "b"}]
    path = written(tmp_path, {**case(op("barrier")), "workloads": workloads})
    assert [type(one) for one in planned(path)] == [Refused, Plan]


def test_gates_are_those_of_the_case_the_workload_and_the_command_line(tmp_path: Path) -> None:
    whole = case(
        op("barrier"), featureGates={"GenericWorkload": True, "SchedulerAsyncAPICalls": True}
    )
    whole["workloads"][0]["featureGates"] = {"SchedulerAsyncAPICalls": False}
    path = written(tmp_path, whole)
    found = plan(path).config
    assert (found.gate("GenericWorkload"), found.gate("SchedulerAsyncAPICalls")) == (True, False)
    found = plan(path, feature_gates="GenericWorkload=false").config
    assert found.gate("GenericWorkload") is False


def test_a_gate_that_cannot_be_set_refuses_the_workload(tmp_path: Path) -> None:
    path = written(tmp_path, case(op("barrier"), featureGates={"NodeDeclaredFeatures": False}))
    assert "this gate is locked to true" in refusal(path)


def test_a_configuration_is_named_by_the_test_case(tmp_path: Path) -> None:
    text = CONFIG % ", profiles: [{schedulerName: mine}]"
    path = written(tmp_path, case(op("barrier"), schedulerConfigPath="c.yaml"), c=text)
    assert plan(path).config.spec.profiles[0].scheduler_name == "mine"


def test_the_command_lines_configuration_goes_before_it(tmp_path: Path) -> None:
    path = written(tmp_path, case(op("barrier"), schedulerConfigPath="c.yaml"))
    own = load_config(CONFIG % ", profiles: [{schedulerName: ours}]", "own.yaml")
    assert plan(path, config=own).config.spec.profiles[0].scheduler_name == "ours"


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "c.yaml: cannot be read"), (CONFIG % ", profilez: []", "profilez: unknown field")],
)
def test_a_bad_configuration_refuses_the_workload(
    tmp_path: Path, text: str | None, said: str
) -> None:
    files = {} if text is None else {"c": text}
    path = written(tmp_path, case(op("barrier"), schedulerConfigPath="c.yaml"), **files)
    assert said in refusal(path)


def test_upstreams_own_writing_is_read(tmp_path: Path) -> None:
    """YAML with anchors and flow styles is YAML."""
    whole = case(op("barrier"))
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump([whole], default_flow_style=True))
    assert plan(path).name == "Case/small"
