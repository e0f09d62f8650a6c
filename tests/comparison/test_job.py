"""One run as a value, its key, and garbage collection during the run."""

import gc
from pathlib import Path

import msgspec
import pytest

from bayplan.comparison import job as identity
from bayplan.comparison.experiment import ConfigurationSpec
from bayplan.comparison.job import Job, JobResult, code_digest, key_of, perform, rarely_collected
from bayplan.comparison.planning import plan
from tests.comparison.kit import configuration, spec

# ---- job ------------------------------------------------------------------------------------


PLUGIN = """
from bayplan import ScalarScorePlugin

class LastIsBest(ScalarScorePlugin):
    name = "LastIsBest"

    def score_node(self, state, pod, node):
        return int(node.name[1:]) * 10
"""


def with_plugin(folder: Path) -> Job:
    (folder / "last.py").write_text(PLUGIN)
    value = configuration("MostAllocated")
    value["profiles"][0]["plugins"]["score"]["enabled"] = [{"name": "LastIsBest"}]
    configurations = (ConfigurationSpec(name="last", config=value),)
    experiment = spec(folder, configurations=configurations, plugins=(str(folder / "last.py"),))
    return plan(experiment, "test").jobs[0]


def lasting(job_result: JobResult) -> tuple[object, ...]:
    """All fields of the result except the duration."""
    result = job_result.result
    return job_result.decisions, result.metrics, result.curves, result.digest, result.attempts


def test_the_same_job_gives_the_same_result(tmp_path: Path) -> None:
    job = plan(spec(tmp_path), "test").jobs[0]
    assert lasting(perform(job)) == lasting(perform(job))


def test_a_job_can_be_sent_with_its_plugins(tmp_path: Path) -> None:
    job = with_plugin(tmp_path)
    here = perform(job)
    (tmp_path / "last.py").unlink()
    (tmp_path / "cluster.json").unlink()
    received = msgspec.msgpack.decode(msgspec.msgpack.encode(job), type=Job)
    assert received.key == job.key
    assert lasting(perform(received)) == lasting(here)
    assert b"default/p0,1,scheduled,n2" in here.decisions


def test_an_edited_plugin_gives_another_run(tmp_path: Path) -> None:
    job = with_plugin(tmp_path)
    [file] = job.plugin_files
    edited = msgspec.structs.replace(file, content=file.content + b"\n")
    other = msgspec.structs.replace(job, plugin_files=(edited,))
    moved = msgspec.structs.replace(file, path="elsewhere/last.py")
    same = msgspec.structs.replace(job, plugin_files=(moved,))
    assert other.key != job.key == same.key


def test_without_a_configuration_all_pods_belong_to_the_default_scheduler(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    experiment = spec(tmp_path, configurations=(ConfigurationSpec(name="default"),))
    text = (tmp_path / "cluster.json").read_text()
    file.write_text(text.replace('"containers"', '"schedulerName": "x", "containers"'))
    [one] = experiment.inputs
    experiment = msgspec.structs.replace(
        experiment, inputs=(msgspec.structs.replace(one, paths=(str(file),)),)
    )
    assert perform(plan(experiment, "test").jobs[0]).result.metrics["placed"] == 4


# ---- identity -------------------------------------------------------------------------------


def test_a_key_does_not_depend_on_the_order_of_a_mapping() -> None:
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})
    assert key_of({"a": 1}) != key_of({"a": 2})


def test_edited_code_gives_other_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "policy.py"
    monkeypatch.setattr(identity, "_sources", lambda _package: [file])
    keys = []
    for text in ("x = 1", "x = 2", "x = 1"):
        file.write_text(text)
        code_digest.cache_clear()
        keys.append(key_of("run"))
    code_digest.cache_clear()
    assert keys[0] == keys[2] != keys[1]


# ---- garbage collection ---------------------------------------------------------------------


def test_garbage_collections_are_rarer_inside_the_block() -> None:
    before = gc.get_threshold()
    with rarely_collected():
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before


def test_thresholds_are_restored_after_a_failure() -> None:
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="broken"), rarely_collected():
        raise ValueError("broken")
    assert gc.get_threshold() == before
