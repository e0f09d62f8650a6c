"""`bayplan bench`: options, refusals and output."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import answer, bayplan, profile, refusal
from tests.perf.kit import LARGE_POD, case, op, write_cases

NODES = op("createNodes", countParam="$nodes")
PODS = op("createPods", countParam="$pods", collectMetrics=True)
CONFIG = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration%s}"


def workload(name: str, *labels: str, **params: Any) -> dict[str, Any]:
    return {"name": name, "labels": list(labels), "params": {"nodes": 2, "pods": 5, **params}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    workloads = [workload("two", "short"), workload("many", pods=7)]
    return write_cases(tmp_path, {**case(NODES, PODS), "workloads": workloads})


def measured(*arguments: str | Path) -> dict[str, dict[str, Any]]:
    """The printed DataItems by name and metric."""
    result = json.loads(answer("bench", *arguments, "-o", "json"))
    assert result["version"] == "v1"
    items = result["dataItems"]
    return {f"{one['labels']['Name']} {one['labels']['Metric']}": one for one in items}


def test_the_table_is_for_human_readers(file: Path) -> None:
    rows = [line.split() for line in answer("bench", file).splitlines()]
    assert rows[0][:6] == ["workload", "nodes", "pods", "used", "seconds", "pods/s"]
    assert [row[:4] for row in rows if row and row[0].startswith("Case")] == [
        ["Case/two/namespace-1", "2", "5", "2"],
        ["Case/many/namespace-1", "2", "7", "2"],
    ]


def test_json_has_upstreams_data_items(file: Path) -> None:
    items = measured(file, "--name", "two")
    assert set(items) == {
        "Case/two/namespace-1 BindingThroughput",
        "Case/two/namespace-1 SchedulingDuration",
    }
    item = items["Case/two/namespace-1 BindingThroughput"]
    assert item["unit"] == "pods/s"
    assert item["data"]["Average"] > 0


def test_results_can_be_written_to_a_file(file: Path, tmp_path: Path) -> None:
    answer("bench", file, "--name", "/two$", "--out", tmp_path / "out.json")
    report = json.loads((tmp_path / "out.json").read_text())
    assert [one["labels"]["Name"] for one in report["dataItems"]] == ["Case/two/namespace-1"] * 2


def test_a_folder_is_searched_and_labels_select(file: Path) -> None:
    items = measured(file.parent, "--label-filter", "short")
    assert {name.split()[0] for name in items} == {"Case/two/namespace-1"}


def test_list_runs_nothing(file: Path) -> None:
    lines = answer("bench", file, "--list").splitlines()
    assert [line.split() for line in lines if line.startswith("Case")] == [
        ["Case/two", "short"],
        ["Case/many"],
    ]


def test_an_invalid_workload_is_named_and_all_valid_ones_run(tmp_path: Path) -> None:
    workloads = [workload("typo", podz=1), workload("good")]
    path = write_cases(tmp_path, {**case(NODES, PODS), "workloads": workloads})
    result = bayplan("bench", path)
    assert result.exit_code == 2
    assert "Case/good/namespace-1" in result.stdout
    assert f"Case/typo cannot be run: {path}: [0].workloads[0].params.podz: no " in result.stderr


def test_an_empty_selection_is_bad_input(tmp_path: Path) -> None:
    path = write_cases(tmp_path, {**case(NODES, PODS), "workloads": [workload("typo", podz=1)]})
    assert refusal("bench", path)[0].startswith("Case/typo cannot be run: ")


def test_a_failing_workload_sets_the_exit_code(tmp_path: Path) -> None:
    pods = op("createPods", count=1, podTemplatePath="pod.yaml")
    churn = op("churn", mode="recreate", number=1, templatePaths=["pod.yaml"])
    path = write_cases(tmp_path, case(op("createNodes", count=1), churn, pods), pod=LARGE_POD)
    result = bayplan("bench", path, "--timeout", "0.1")
    assert result.exit_code == 1
    message = "Case/small: failed: operation 2 (createPods): a pod is not bound after "
    assert any(line.startswith(f"bayplan: {message}") for line in result.stderr.splitlines())


def test_an_average_below_the_threshold_is_reported(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bayplan.cli.bench.below_threshold", lambda outcome: [outcome.name])
    result = bayplan("bench", file, "--name", "two")
    assert (result.exit_code, "bayplan: Case/two" in result.stderr) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--name", "none"),
            "no workload matches --name and --label-filter; there are 2: Case/two",
        ),
        (("--label-filter", "none"), "no workload matches --name and --label-filter"),
        (("--name", "["), "--name: found [, wanted a regular expression: "),
        (("--config", "gone.yaml"), "gone.yaml: cannot be read: No such file"),
        (
            ("--feature-gates", "Nope=true"),
            "Case/two cannot be run: --feature-gates.Nope: unrecognized feature gate: Nope",
        ),
        (("--plugin", "gone.py"), "gone.py: cannot be read: No such file"),
    ],
)
def test_invalid_options_are_refused(file: Path, arguments: tuple[str, ...], message: str) -> None:
    assert refusal("bench", file, *arguments)[0].startswith(message)


def test_invalid_files_are_refused_with_all_problems(tmp_path: Path) -> None:
    path = write_cases(tmp_path, case(op("createPod")), case(op("barrier", labels=1), name="b"))
    lines = refusal("bench", path, tmp_path / "none.yaml")
    reports = [line.replace(str(tmp_path), "") for line in lines]
    opcode, field, missing = reports
    assert opcode == (
        "/performance-config.yaml: [0].workloadTemplate[0].opcode: "
        'found "createPod"; did you mean "createPods"?'
    )
    assert field.startswith(
        '/performance-config.yaml: [1].workloadTemplate[0].labels: unknown field; wanted "label'
    )
    assert missing == "/none.yaml: cannot be read: No such file or directory"


def test_the_configuration_file_is_used(file: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.config"
    own.write_text(CONFIG % ", profiles: [{schedulerName: other}]")
    result = bayplan("bench", file, "--name", "two", "--config", own, "--timeout", "0.1")
    assert "5 pods are not bound" in result.stderr


def test_an_invalid_configuration_is_refused_at_once(file: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.config"
    own.write_text(CONFIG % ", profilez: []")
    assert refusal("bench", file, "--config", own)[0].startswith(f"{own}: profilez: unknown field")


def test_results_that_cannot_be_written_are_reported(file: Path, tmp_path: Path) -> None:
    result = bayplan("bench", file, "--name", "two", "--out", tmp_path)
    assert (result.exit_code, "cannot be written: Is a directory" in result.stderr) == (2, True)


FAILING_POST_BIND = """
from bayplan import PostBindPlugin

class Broken(PostBindPlugin):
    name = "Broken"

    async def post_bind(self, state, pod, node_name, port):
        raise RuntimeError("broken")
"""


def test_a_failing_plugin_is_named_and_the_exit_code_is_1(file: Path, tmp_path: Path) -> None:
    plugin, config = tmp_path / "broken.py", tmp_path / "c.yaml"
    plugin.write_text(FAILING_POST_BIND)
    config.write_text(json.dumps(profile(postBind=["Broken"])))
    result = bayplan("bench", file, "--name", "/two$", "--plugin", plugin, "--config", config)
    assert result.exit_code == 1
    assert "bayplan: Case/two: 5 failures of plugin Broken" in result.stderr.splitlines()
