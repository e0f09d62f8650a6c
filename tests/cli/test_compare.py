"""`bayplan compare`."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import answer, bayplan, process, profile, refusal, write_objects
from tests.comparison.kit import cluster_file, configuration, node_with_cpu
from tests.kit.manifests import pod

#: Ends its process at the seed that DIE_AT_SEED names.
DEADLY = """
import os
from bayplan import ScalarScorePlugin

class Deadly(ScalarScorePlugin):
    name = "Deadly"

    def setup(self):
        if os.environ.get("DIE_AT_SEED") == str(self.handle.seed):
            os._exit(9)

    def score_node(self, state, pod, node):
        return 0
"""


def configs(folder: Path) -> list[str | Path]:
    """--config for packing and for spreading."""
    packed = write_objects(folder / "packed.yaml", configuration("MostAllocated"))
    spread = write_objects(folder / "spread.yaml", configuration("LeastAllocated"))
    return ["--config", packed, "--config", spread]


def experiment(folder: Path, **spec: Any) -> Path:
    configurations = [
        {"name": "packed", "config": configuration("MostAllocated")},
        {"name": "spread", "config": configuration("LeastAllocated")},
    ]
    whole = {"configurations": configurations, "metrics": ["domains"], **spec}
    kind = {"apiVersion": "bayplan.dev/v1alpha1", "kind": "Experiment"}
    return write_objects(folder / "experiment.yaml", {**kind, "spec": whole})


def test_flags_select_inputs_and_configurations(tmp_path: Path) -> None:
    text = answer("compare", cluster_file(tmp_path), *configs(tmp_path), "--seeds", "0..2")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0].startswith("spread against packed: better in nodes_emptiable (+2); worse in ")
    assert "nodes_used 1 ± 0 3 ± 0 +2 [+2, +2] worse" in lines
    assert any(line.startswith("6 runs, 24 simulated decisions, ") for line in lines)


def test_an_experiment_file_gives_the_same_result_as_flags(tmp_path: Path) -> None:
    file = experiment(tmp_path, inputs=[{"paths": [cluster_file(tmp_path).name]}], seeds="0..1")
    comparison = json.loads(answer("compare", file, "-o", "json"))
    packed, spread = (comparison["policies"][name]["nodes_used"] for name in ("packed", "spread"))
    assert packed == {"mean": 1.0, "sd": 0.0, "values": [1.0, 1.0]}
    assert spread["mean"] == 3.0


def test_nodes_pods_and_seeds_of_an_experiment_can_be_overridden(tmp_path: Path) -> None:
    file, nodes = experiment(tmp_path), write_objects(tmp_path / "nodes.json", node_with_cpu("n"))
    options = ("--nodes", nodes, "--pods", cluster_file(tmp_path), "--seeds", "4,6,8")
    result = json.loads(answer("compare", file, *options, "-o", "json"))
    assert len(result["policies"]["packed"]["nodes_used"]["values"]) == 3
    assert result["policies"]["spread"]["nodes_used"]["mean"] == 4.0


def test_several_inputs_are_reported_separately(tmp_path: Path) -> None:
    cluster_file(tmp_path)
    inputs = [{"name": name, "paths": ["cluster.json"]} for name in ("one", "two")]
    result = json.loads(answer("compare", experiment(tmp_path, inputs=inputs), "-o", "json"))
    assert result["inputs"]["one"]["policies"].keys() == {"packed", "spread"}
    assert result["inputs"].keys() == {"one", "two"}


def test_a_folder_receives_all_results(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = bayplan("compare", cluster_file(tmp_path), *configs(tmp_path), "--out", out)
    assert result.exit_code == 0
    assert "results.csv, timings.csv" in result.stderr
    assert len((out / "results.csv").read_text().splitlines()) == 3
    assert (out / "report.html").is_file()


def test_a_killed_comparison_continues_and_has_the_same_result(tmp_path: Path) -> None:
    plugin = write_objects(tmp_path / "deadly.py", DEADLY)
    value = configuration("MostAllocated")
    value["profiles"][0]["plugins"]["score"]["enabled"].append({"name": "Deadly"})
    config = write_objects(tmp_path / "c.yaml", value)
    arguments = ["compare", cluster_file(tmp_path), "--config", config, "--plugin", plugin]
    arguments += ["--seeds", "0..3", "--processes", "1", "--out"]
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    killed = process(*arguments, broken, env={"DIE_AT_SEED": "2"})
    assert killed.returncode == 9
    modified_at = {path: path.stat().st_mtime_ns for path in (broken / "runs").glob("*/run.json")}
    assert len(modified_at) == 2
    assert not (broken / "results.csv").exists()
    for folder in (broken, whole):
        assert process(*arguments, folder).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in modified_at} == modified_at
    assert (broken / "results.csv").read_bytes() == (whole / "results.csv").read_bytes()


# ---- two runs ------------------------------------------------------------------------------


def simulated(folder: Path, name: str, strategy: str, seed: int = 0) -> Path:
    config = write_objects(folder / f"{name}.yaml", configuration(strategy))
    arguments = ("--config", config, "--seed", str(seed), "--out", folder / name)
    answer("simulate", cluster_file(folder), *arguments)
    return folder / name


def test_equal_runs_have_no_differing_decision(tmp_path: Path) -> None:
    one, other = (simulated(tmp_path, name, "MostAllocated") for name in ("one", "other"))
    assert answer("compare", one, other) == "0 differing decisions\n"


def test_with_and_without_reuse_decisions_are_equal(tmp_path: Path) -> None:
    """The check that docs/batching.md recommends."""
    folders: list[Path] = []
    for name, is_on in (("on", True), ("off", False)):
        gates = {"featureGates": {"OpportunisticBatching": is_on}}
        config = write_objects(
            tmp_path / f"{name}.yaml", {**configuration("MostAllocated"), **gates}
        )
        folders.append(tmp_path / name)
        answer("simulate", cluster_file(tmp_path), "--config", config, "--out", folders[-1])
    assert answer("compare", *folders) == "0 differing decisions\n"


def test_differing_decisions_are_counted_and_the_first_ones_listed(tmp_path: Path) -> None:
    one = simulated(tmp_path, "one", "MostAllocated")
    result = bayplan("compare", one, simulated(tmp_path, "other", "LeastAllocated"))
    assert result.exit_code == 1
    count = int(result.stdout.split()[0])
    assert count >= 2
    assert f"{count} differing decisions" in result.stdout
    assert "default/p" in result.stdout


def test_runs_of_a_comparison_can_be_compared(tmp_path: Path) -> None:
    answer("compare", cluster_file(tmp_path), *configs(tmp_path), "--out", tmp_path / "out")
    [one, other] = (tmp_path / "out" / "runs").iterdir()
    assert answer("compare", one, one) == "0 differing decisions\n"
    assert bayplan("compare", one, other).exit_code == 1


# ---- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "--config: found none, wanted one or more, or an experiment file"),
        (("--config", "none.yaml"), "none.yaml: cannot be read: No such file or directory"),
        (("--pods", "p.csv"), "--nodes, --pods: these options need an experiment file"),
    ],
)
def test_an_invalid_command_is_refused(tmp_path: Path, arguments: Any, line: str) -> None:
    assert line in refusal("compare", cluster_file(tmp_path), *arguments)


def test_strict_mode_refuses_an_unknown_field(tmp_path: Path) -> None:
    typo = write_objects(
        tmp_path / "typo.yaml", node_with_cpu("n1"), pod("a", nodeSelectr={"disk": "ssd"})
    )
    [line] = refusal("compare", typo, *configs(tmp_path), "--strict")
    assert 'spec.nodeSelectr is not a field of Pod; did you mean "nodeSelector"?' in line


def test_invalid_seeds_and_executors_are_refused(tmp_path: Path) -> None:
    options = (cluster_file(tmp_path), *configs(tmp_path))
    [line] = refusal("compare", *options, "--seeds", "many")
    assert 'found "many", wanted seeds such as 0..9' in line
    [line] = refusal("compare", *options, "--executor", "ray://x")
    assert line == "--executor: found 'ray://x', wanted dask://HOST:PORT"


def test_an_experiment_needs_configurations(tmp_path: Path) -> None:
    [line] = refusal("compare", experiment(tmp_path), *configs(tmp_path)[:2])
    assert line.startswith("--config: the configurations are in ")


def test_an_experiment_without_input_is_refused_with_the_ways_to_set_one(tmp_path: Path) -> None:
    [line] = refusal("compare", experiment(tmp_path))
    assert line.endswith("spec.inputs: found nothing, wanted an input here, or --nodes and --pods")


def test_a_single_run_cannot_be_compared(tmp_path: Path) -> None:
    one = simulated(tmp_path, "one", "MostAllocated")
    assert refusal("compare", one) == ["runs: found 1, wanted two, to compare their decisions"]
    assert os.listdir(one)


def test_a_negative_number_of_processes_is_refused(tmp_path: Path) -> None:
    result = bayplan("compare", tmp_path, "--config", "a.yaml", "--processes", "-3")
    assert result.exit_code == 2
    assert 'found "-3", wanted a whole number from 0 on' in result.stderr


BROKEN = """
from bayplan import ScalarFilterPlugin

class Broken(ScalarFilterPlugin):
    name = "Broken"

    def filter_node(self, state, pod, node):
        raise RuntimeError("broken")
"""


def test_a_failing_plugin_is_named_with_its_configuration_and_the_exit_code_is_1(
    tmp_path: Path,
) -> None:
    plugin = write_objects(tmp_path / "broken.py", BROKEN)
    config = write_objects(tmp_path / "broken.yaml", profile(filter=["Broken"]))
    whole = write_objects(tmp_path / "whole.yaml", configuration("MostAllocated"))
    options = ("--config", whole, "--config", config, "--plugin", plugin, "--processes", "1")
    result = bayplan("compare", cluster_file(tmp_path), *options)
    assert result.exit_code == 1
    assert (
        "broken: 4 failures of plugin Broken in 1 run, first with seed 0 at default/p0: "
        'running Filter plugin "Broken": RuntimeError: broken (broken.py:8)'
    ) in result.stdout.splitlines()
    result = bayplan("compare", cluster_file(tmp_path), *options, "-o", "json")
    [failure] = json.loads(result.stdout)["failures"]
    assert (result.exit_code, failure["configuration"], failure["count"]) == (1, "broken", 4)
