"""`bayplan simulate`: options, refusals and output."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import answer, bayplan, profile, refusal, write_objects
from tests.kit.manifests import Content, node, pod
from tests.sim.manifests import controller, scenario

POD_LIST = "name,cpu_milli,memory_mib,num_gpu,gpu_milli"
TIMES = "creation_time,deletion_time,scheduled_time"


def simulated(*arguments: str | Path, stdin: bytes = b"") -> dict[str, Any]:
    """The object that -o json prints; nothing else is printed."""
    summary = json.loads(answer("simulate", *arguments, "-o", "json", stdin=stdin))
    assert isinstance(summary, dict)
    return summary


def large(name: str = "large", **fields: Any) -> Content:
    return pod(name, cpu="64", **fields)


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    return write_objects(tmp_path / "in.yaml", node("n1"), pod("a"), large())


@pytest.mark.parametrize(
    ("options", "deleted_at"),
    [
        pytest.param((), 5.0, id="at once"),
        pytest.param(("--pod-gc-quarantine", "40s", "--pod-gc-period", "20s"), 60.0, id="upstream"),
    ],
)
def test_options_set_the_times_of_pod_garbage_collection(
    tmp_path: Path, options: tuple[str, ...], deleted_at: float
) -> None:
    deletion = scenario({"at": "5s", "delete": [{"kind": "Node", "name": "n1"}]})
    path = write_objects(tmp_path / "in.yaml", node("n1"), pod("a"), deletion)
    assert simulated(path, *options)["pods"]["default/a"]["deletedAt"] == deleted_at


def test_until_ends_the_run_at_a_time(tmp_path: Path) -> None:
    later = [
        {"at": "5s", "create": [pod("b")]},
        {"at": "60s", "create": [pod("c")]},
        {"at": "70s", "create": [pod("d")]},
    ]
    path = write_objects(tmp_path / "in.yaml", node("n1"), pod("a"), scenario(*later, until="90s"))
    result = simulated(path, "--until", "30s")
    assert (set(result["pods"]), result["simulatedSeconds"]) == ({"default/a", "default/b"}, 30.0)
    assert result["notes"] == ["the run ends at 30 s; 2 later steps of the workload left out"]
    assert simulated(path, "--until", "2m")["notes"] == ["the run ends at 120 s"]
    assert "the run ends at 30 s" in answer("simulate", path, "--until", "30s")


def test_options_determine_whether_and_when_pods_are_recreated(tmp_path: Path) -> None:
    web = controller("ReplicaSet", replicas=2, selector={"matchLabels": {"app": "web"}})
    path = write_objects(tmp_path / "all.yaml", node("n1"), web)
    name = min(simulated(path)["pods"]).partition("/")[2]
    deletion = scenario({"at": "5s", "delete": [{"kind": "Pod", "name": name}]})
    path = write_objects(tmp_path / "all.yaml", node("n1"), web, deletion)

    def created_at(*options: str) -> list[float]:
        return sorted(one["createdAt"] for one in simulated(path, *options)["pods"].values())

    assert created_at() == [0.0, 0.0, 5.0]
    assert created_at("--recreate-after", "30s") == [0.0, 0.0, 35.0]
    assert created_at("--expansion", "once") == [0.0, 0.0]


def test_an_invalid_duration_is_refused(objects: Path) -> None:
    expected = "a duration such as 30s, 1m30s, 250ms or a number of seconds"
    for option in ("--pod-gc-period", "--until", "--recreate-after"):
        lines = refusal("simulate", objects, option, "soon")
        assert lines == [f'{option}: found "soon", wanted {expected}']


def test_an_unknown_field_is_noted_and_refused_in_strict_mode(tmp_path: Path) -> None:
    path = write_objects(tmp_path / "in.yaml", node("n1"), pod("a", nodeSelectr={"disk": "ssd"}))
    [note] = simulated(path)["notes"]
    assert note.endswith('spec.nodeSelectr is not a field of Pod; did you mean "nodeSelector"?')
    assert "spec.nodeSelectr is not a field of Pod" in " ".join(answer("simulate", path).split())
    assert refusal("simulate", path, "--strict") == [note]


# ---- results --------------------------------------------------------------------------------


TOO_LARGE = (
    "0/1 nodes are available: 1 Insufficient cpu. preemption: "
    "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)


def test_the_summary_is_for_human_readers(objects: Path) -> None:
    lines = answer("simulate", objects).splitlines()
    assert lines[0] == "1 of 2 pods placed on 1 node"
    assert "   1   1 lack cpu      default/large" in lines
    assert lines[-3].startswith("seed 0, digest ")
    assert lines[-1] == "  bayplan why default/large --run runs/a"


def test_json_is_one_object_with_the_documented_keys(objects: Path) -> None:
    summary = simulated(objects, "--seed", "5")
    assert summary["nodes"] == 1
    assert summary["counts"] == {
        "pods": 2,
        "running": 0,
        "scheduled": 1,
        "unschedulable": 1,
        "completed": 0,
        "otherSchedulers": 0,
        "notRecreated": 0,
        "missingNodes": 0,
        "gone": {},
        "replaced": {},
    }
    assert summary["placements"] == {"default/a": "n1"}
    assert summary["unschedulable"] == {"default/large": TOO_LARGE}
    assert summary["pods"]["default/large"] == {
        "node": None,
        "createdAt": 0.0,
        "boundAt": None,
        "deletedAt": None,
        "controller": None,
        "attempts": 1,
        "nominatedNode": None,
        "message": TOO_LARGE,
        "end": "waiting",
        "replaced": False,
    }
    assert summary["seed"] == 5
    assert (summary["simulatedSeconds"], len(summary["digest"])) == (0.0, 64)
    assert summary["wallSeconds"] >= 0


def test_finished_pods_are_left_out_with_a_note(tmp_path: Path) -> None:
    ended = [
        pod(f"p{i}", status={"phase": phase}) for i, phase in enumerate(("Failed", "Succeeded"))
    ]
    file = write_objects(tmp_path / "in.yaml", node("n1"), *ended)
    assert simulated(file)["counts"]["completed"] == 2
    assert "2 pods left out, completed or failed" in answer("simulate", file)


def test_a_seed_may_exceed_64_bits(objects: Path) -> None:
    assert simulated(objects, "--seed", "1" * 30)["seed"] == int("1" * 30)


# ---- scheduler names ------------------------------------------------------------------------


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Pods of three schedulers, one of them unnamed."""
    pods = [pod("none"), pod("ours", schedulerName="ours"), pod("theirs", schedulerName="theirs")]
    return write_objects(tmp_path / "mixed.yaml", node("n1"), *pods)


def test_without_a_configuration_every_pod_is_scheduled(mixed: Path) -> None:
    summary = simulated(mixed)
    assert sorted(summary["placements"]) == ["default/none", "default/ours", "default/theirs"]
    assert summary["counts"]["otherSchedulers"] == 0


def test_with_a_configuration_only_pods_of_its_profiles_are_scheduled(
    tmp_path: Path, mixed: Path
) -> None:
    config = profile()
    config["profiles"][0]["schedulerName"] = "ours"
    summary = simulated(mixed, "--config", write_objects(tmp_path / "c.yaml", config))
    assert list(summary["placements"]) == ["default/ours"]
    assert summary["unschedulable"] == {}
    assert summary["counts"]["otherSchedulers"] == 2


def test_a_missing_scheduler_name_is_the_default_name(tmp_path: Path, mixed: Path) -> None:
    summary = simulated(mixed, "--config", write_objects(tmp_path / "c.yaml", profile()))
    assert list(summary["placements"]) == ["default/none"]


# ---- traces --------------------------------------------------------------------------------


def trace(tmp_path: Path, header: str = f"{POD_LIST},{TIMES}", ends: str = ",0,50,0") -> list[Path]:
    """A node with room for one of two pods."""
    nodes = write_objects(
        tmp_path / "nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nn1,4000,8192,0,\n"
    )
    rows = f"{header}\np1,3000,1024,0,0{ends}\np2,3000,1024,0,0{ends.replace('0', '60', 1)}\n"
    return [nodes, write_objects(tmp_path / "pods.csv", rows)]


def test_with_time_arrivals_pods_stay(tmp_path: Path) -> None:
    summary = simulated(*trace(tmp_path))
    assert summary["placements"] == {"default/p1": "n1"}
    assert list(summary["unschedulable"]) == ["default/p2"]


def test_with_time_trace_pods_come_and_go(tmp_path: Path) -> None:
    summary = simulated(*trace(tmp_path), "--time", "trace")
    assert (summary["placements"], summary["counts"]["gone"]) == ({}, {"ended": 2})
    assert [summary["pods"][f"default/{name}"]["node"] for name in ("p1", "p2")] == ["n1", "n1"]
    assert summary["pods"]["default/p1"]["deletedAt"] == 50.0


def test_a_trace_without_times_cannot_be_replayed(tmp_path: Path) -> None:
    files = trace(tmp_path, header=POD_LIST, ends="")
    [line] = refusal("simulate", *files, "--time", "trace")
    assert line == (
        f"{files[1]}: line 1: has no creation_time and deletion_time: "
        "it cannot be replayed with its times"
    )


# ---- bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("", "found nothing in it", id="empty"),
        pytest.param("words", 'found "words", wanted an object', id="text"),
        pytest.param("[1, 2]", "found a list, wanted an object", id="list"),
        pytest.param('{"a":', "document 1, line", id="truncated"),
        pytest.param(
            "kind: Pod\napiVersion: v1\nmetadata: {name: p}", "spec.containers", id="no containers"
        ),
        pytest.param("{a: " * 400 + "}" * 400, "nested more than", id="deep"),
    ],
)
def test_bad_input_is_one_line_with_file_document_and_path(
    tmp_path: Path, content: str, message: str
) -> None:
    file = write_objects(tmp_path / "in.yaml", content)
    [line] = refusal("simulate", file)
    assert line.startswith(f"{file}")
    assert message in line


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    bad = pod("b", cpu="lots")
    file = write_objects(tmp_path / "in.yaml", node("n1"), node("n1"), bad)
    assert len(refusal("simulate", file, tmp_path / "ghost.yaml")) == 3


def test_a_patch_of_a_missing_object_is_refused(tmp_path: Path) -> None:
    ghost = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "ghost", "labels": {"a": "b"}},
    }
    file = write_objects(tmp_path / "in.yaml", scenario({"at": "1s", "patch": [ghost]}))
    assert refusal("simulate", file) == [
        f"{file}, document 1: spec.events[0].patch[0]: Node ghost is not there at that time"
    ]


def test_standard_input_cannot_be_used_twice() -> None:
    assert refusal("simulate", "-", "--config", "-") == [
        "standard input: found - for the configuration and for objects; one must be a file"
    ]


@pytest.mark.parametrize(
    "option",
    [("--config", "ghost.yaml"), ("--plugin", "ghost.py"), ("--feature-gates", "Ghost=true")],
)
def test_a_file_named_by_an_option_must_exist(objects: Path, option: tuple[str, str]) -> None:
    [line] = refusal("simulate", objects, *option)
    assert "host" in line


@pytest.mark.parametrize("option", [("--seed", "x"), ("--time", "never")])
def test_an_invalid_option_shows_the_usage(objects: Path, option: tuple[str, str]) -> None:
    result = bayplan("simulate", objects, *option)
    assert result.exit_code == 2
    assert f"Invalid value for '{option[0]}'" in result.stderr


# ---- remarks --------------------------------------------------------------------------------


def test_settings_without_effect_are_reported(tmp_path: Path, objects: Path) -> None:
    extender = {"urlPrefix": "http://example.com/"}
    config = {**profile(), "parallelism": 4, "extenders": [extender]}
    file = write_objects(tmp_path / "c.yaml", config)
    result = bayplan("simulate", objects, "--config", file)
    assert (
        f"bayplan: {file}: extenders[0]: http://example.com/ has no verb, so it is not called"
        in result.stderr
    )
    # That concerns a process in a cluster, not where pods go.
    assert "parallelism" not in result.stderr


def test_without_a_configuration_nothing_is_reported(objects: Path) -> None:
    assert bayplan("simulate", objects).stderr == ""


# ---- plugins of users -----------------------------------------------------------------------

CHEAP = """
from bayplan import ScalarScorePlugin

class Cheap(ScalarScorePlugin):
    name = "Cheap"

    def score_node(self, state, pod, node):
        print("looking at", node.name)
        return max(0, 100 - int(node.labels["cents"]))
"""


def test_a_plugin_file_decides(tmp_path: Path) -> None:
    nodes = [node(f"n{cents}", labels={"cents": str(cents)}) for cents in (30, 10, 20)]
    file = write_objects(tmp_path / "in.yaml", *nodes, pod("a"))
    plugin = write_objects(tmp_path / "cheap.py", CHEAP)
    config = write_objects(tmp_path / "c.yaml", profile(score=["Cheap"]))
    summary = simulated(file, "--plugin", plugin, "--config", config)
    assert summary["placements"] == {"default/a": "n10"}


def test_output_of_a_plugin_is_not_part_of_the_answer(tmp_path: Path, objects: Path) -> None:
    plugin = write_objects(tmp_path / "noisy.py", f"print('noise')\n{CHEAP}")
    result = bayplan("simulate", objects, "--plugin", plugin, "-o", "json")
    assert json.loads(result.stdout)["nodes"] == 1
    assert result.stderr.startswith("noise\n")


def test_a_plugin_that_no_profile_uses_is_reported(tmp_path: Path, objects: Path) -> None:
    plugin = write_objects(tmp_path / "cheap.py", CHEAP)
    result = bayplan("simulate", objects, "--plugin", plugin)
    assert result.exit_code == 0
    assert result.stderr == f"bayplan: {plugin}: Cheap is in no profile; enable it with --config\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param("from bayplan import (\n", "line 1: SyntaxError: ", id="a syntax error"),
        pytest.param("\nimport nowhere\n", "line 2: ModuleNotFoundError: ", id="an import"),
        pytest.param("x = 1\n", "no plugin is defined here", id="no plugin"),
        pytest.param(
            CHEAP + '    fields = ("Node.status.nodeInf.osImage",)\n',
            'Cheap: fields has "Node.status.nodeInf.osImage": Node.status has no field "nodeInf"; '
            'did you mean "nodeInfo"?',
            id="a misspelt field",
        ),
    ],
)
def test_a_plugin_file_that_fails_is_named_with_its_line(
    tmp_path: Path, objects: Path, source: str, message: str
) -> None:
    plugin = write_objects(tmp_path / "bad.py", source)
    [line] = refusal("simulate", objects, "--plugin", plugin)
    assert line.startswith(f"{plugin}: {message}")


def test_a_plugin_that_fails_in_setup_is_refused(tmp_path: Path, objects: Path) -> None:
    source = f"{CHEAP}\n    def setup(self):\n        raise RuntimeError('no licence')\n"
    plugin = write_objects(tmp_path / "cheap.py", source)
    config = write_objects(tmp_path / "c.yaml", profile(score=["Cheap"]))
    result = bayplan("simulate", objects, "--plugin", plugin, "--config", config)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        f"bayplan: {config}: profiles[0]: plugin Cheap cannot start: RuntimeError: no licence"
    )


BROKEN = """
from bayplan import ScalarFilterPlugin

class Broken(ScalarFilterPlugin):
    name = "Broken"

    def filter_node(self, state, pod, node):
        if pod.name == "a":
            return {}["nothing"]
"""


def test_a_failing_plugin_is_named_with_pod_file_and_line(tmp_path: Path) -> None:
    file = write_objects(tmp_path / "in.yaml", node("n1"), pod("a"), pod("b"))
    plugin = write_objects(tmp_path / "broken.py", BROKEN)
    config = write_objects(tmp_path / "c.yaml", profile(filter=["Broken"]))
    result = bayplan("simulate", file, "--plugin", plugin, "--config", config, "-o", "json")
    summary = json.loads(result.stdout)
    message = "running Filter plugin \"Broken\": KeyError: 'nothing' (broken.py:9)"
    assert summary["unschedulable"] == {"default/a": message}
    assert list(summary["placements"]) == ["default/b"]
    assert summary["failures"] == [
        {"plugin": "Broken", "count": 1, "example": "default/a", "message": message}
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 50.5", "score_node returned 50.5; wanted an int from 0 to 100, at half.py:7"),
        ("pass", "score_node returned nothing (is a return missing?); wanted an int from 0 to 100"),
    ],
)
def test_a_score_that_is_not_an_int_is_reported_with_the_line_of_the_function(
    tmp_path: Path, body: str, message: str
) -> None:
    source = f"""
from bayplan import ScalarScorePlugin

class Half(ScalarScorePlugin):
    name = "Half"

    def score_node(self, state, pod, node):
        {body}
"""
    file = write_objects(tmp_path / "in.yaml", node("n1"), node("n2"), pod("a"))
    plugin = write_objects(tmp_path / "half.py", source)
    config = write_objects(tmp_path / "c.yaml", profile(score=["Half"]))
    result = bayplan("simulate", file, "--plugin", plugin, "--config", config)
    assert result.exit_code == 1
    assert f'running Score plugins: plugin "Half" failed with: {message}' in result.stdout


def test_a_missing_plugin_file_is_requested(tmp_path: Path, objects: Path) -> None:
    config = write_objects(tmp_path / "c.yaml", profile(score=["PreferCheapNodes"]))
    [line] = refusal("simulate", objects, "--config", config)
    assert 'no plugin "PreferCheapNodes"; a plugin in a file is loaded by --plugin FILE.py' in line


#: Extension point of `profile` → a method of a plugin that raises there.
RAISING = {
    "preEnqueue": ("PreEnqueuePlugin", "def pre_enqueue(self, pod):"),
    "preFilter": ("PreFilterPlugin", "def pre_filter(self, state, pod, nodes):"),
    "filter": ("ScalarFilterPlugin", "def filter_node(self, state, pod, node):"),
    "preScore": ("PreScorePlugin", "def pre_score(self, state, pod, nodes):"),
    "score": ("ScalarScorePlugin", "def score_node(self, state, pod, node):"),
    "reserve": ("ReservePlugin", "def reserve(self, state, pod, node_name):"),
    "permit": ("PermitPlugin", "def permit(self, state, pod, node_name):"),
    "preBind": ("PreBindPlugin", "async def pre_bind(self, state, pod, node_name, port):"),
    "bind": ("BindPlugin", "async def bind(self, state, pod, node_name, port):"),
    "postBind": ("PostBindPlugin", "async def post_bind(self, state, pod, node_name, port):"),
}


def raising(point: str) -> str:
    base, head = RAISING[point]
    return f"""from bayplan import {base}

class Broken({base}):
    name = "Broken"
    {head}
        raise RuntimeError("broken")

    def unreserve(self, state, pod, node_name): ...
"""


@pytest.mark.parametrize("point", RAISING)
def test_a_plugin_that_raises_ends_the_command_with_1_and_is_named_in_the_summary(
    tmp_path: Path, point: str
) -> None:
    file = write_objects(tmp_path / "in.yaml", node("n1"), node("n2"), pod("a"))
    plugin = write_objects(tmp_path / "broken.py", raising(point))
    sets = profile(**{point: ["Broken"]})
    if point == "bind":
        sets["profiles"][0]["plugins"]["bind"]["disabled"] = [{"name": "*"}]
    config = write_objects(tmp_path / "c.yaml", sets)
    result = bayplan("simulate", file, "--plugin", plugin, "--config", config)
    assert result.exit_code == 1, result.output
    [line] = [line for line in result.stdout.splitlines() if "of plugin Broken" in line]
    assert line.startswith("1 failure of plugin Broken, at default/a: running ")
    assert line.endswith("RuntimeError: broken (broken.py:6)")


def test_a_pod_that_fits_nowhere_is_not_a_failure(objects: Path) -> None:
    result = bayplan("simulate", objects)
    assert (result.exit_code, simulated(objects)["failures"]) == (0, [])


@pytest.mark.parametrize("point", ["filter", "reserve", "permit", "preBind"])
def test_a_member_of_a_group_whose_plugin_raises_is_a_failure(tmp_path: Path, point: str) -> None:
    members = [pod(f"m{i}", labels={"pod-group.scheduling.x-k8s.io": "g"}) for i in range(2)]
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"minMember": 2},
    }
    file = write_objects(tmp_path / "in.yaml", node("n1"), node("n2"), group, *members)
    plugin = write_objects(tmp_path / "broken.py", raising(point))
    config = write_objects(tmp_path / "c.yaml", profile(**{point: ["Broken"]}))
    result = bayplan("simulate", file, "--plugin", plugin, "--config", config)
    assert result.exit_code == 1, result.output
    assert "of plugin Broken, " in result.stdout


def test_a_replay_reports_the_same_failure(tmp_path: Path) -> None:
    """The plugin file has its original name in the folder of the run."""
    file = write_objects(tmp_path / "in.yaml", node("n1"), pod("a"), pod("b"))
    plugin = write_objects(tmp_path / "broken.py", BROKEN)
    config = write_objects(tmp_path / "c.yaml", profile(filter=["Broken"]))
    run = tmp_path / "run"
    bayplan("simulate", file, "--plugin", plugin, "--config", config, "--out", run)
    text = answer("why", "a", "--run", run, "--node", "n1", "--allow-plugins")
    assert "n1: no plugin had rejected it when the attempt failed" in text
    assert "(broken.py:9) (Error)" in text
    words = ("why", "b", "--run", run, "--node", "n1", "--allow-plugins")
    assert "n1: chosen" in answer(*words)


# ---- run folders ----------------------------------------------------------------------------


def test_a_run_is_stored_completely_and_the_summary_names_the_next_command(
    tmp_path: Path, objects: Path
) -> None:
    run = tmp_path / "my run"
    lines = answer("simulate", objects, "--out", run).splitlines()
    assert lines[-2:] == [
        f"run written to {run}; to ask why:",
        f"  bayplan why default/large --run '{run}'",
    ]
    files = sorted(path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file())
    assert files == [
        "inputs/workload.json",
        "journal.jsonl",
        "placements.csv",
        "run.json",
        "states/000000.jsonl",
        "summary.json",
    ]


def test_the_summary_file_equals_the_printed_object(tmp_path: Path, objects: Path) -> None:
    printed = simulated(objects, "--out", tmp_path / "run")
    assert json.loads((tmp_path / "run/summary.json").read_text()) == printed


def test_an_unwritable_folder_is_refused(objects: Path) -> None:
    [line] = refusal("simulate", objects, "--out", objects / "run")
    assert line == f"{objects}/run: cannot be written: Not a directory"


def test_a_refused_run_leaves_no_folder(tmp_path: Path) -> None:
    refusal("simulate", tmp_path / "ghost.yaml", "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("folder", ["runs/a", "."])
def test_a_run_stored_beside_its_input_is_not_read_as_input(
    tmp_path: Path, objects: Path, folder: str
) -> None:
    first = simulated(objects.parent, "--out", tmp_path / folder)
    assert simulated(objects.parent, "--out", tmp_path / folder)["digest"] == first["digest"]


def test_a_plugin_that_fails_in_setup_does_not_replace_an_earlier_run(
    tmp_path: Path, objects: Path
) -> None:
    answer("simulate", objects, "--out", tmp_path / "run")
    source = f"{CHEAP}\n    def setup(self):\n        raise RuntimeError('no licence')\n"
    plugin = write_objects(tmp_path / "cheap.py", source)
    config = write_objects(tmp_path / "c.yaml", profile(score=["Cheap"]))
    more = ("--plugin", plugin, "--config", config, "--out", tmp_path / "run")
    assert bayplan("simulate", objects, *more).exit_code == 2
    assert (tmp_path / "run/summary.json").exists()


def test_an_empty_folder_name_is_refused(objects: Path) -> None:
    assert refusal("simulate", objects, "--out", "") == ["--out: found nothing, wanted a folder"]
