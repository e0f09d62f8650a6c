"""One run as a value."""

from pathlib import Path

import msgspec

from bayplan.comparison.experiment import ConfigurationSpec
from bayplan.comparison.job import Job, JobResult, perform
from bayplan.comparison.planning import plan
from tests.comparison.kit import configuration, spec

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
    wanted = spec(folder, configurations=configurations, plugins=(str(folder / "last.py"),))
    return plan(wanted, "test").jobs[0]


def lasting(done: JobResult) -> tuple[object, ...]:
    """All but how long it took."""
    result = done.result
    return done.decisions, result.metrics, result.curves, result.digest, result.attempts


def test_the_same_job_gives_the_same_result(tmp_path: Path) -> None:
    job = plan(spec(tmp_path), "test").jobs[0]
    assert lasting(perform(job)) == lasting(perform(job))


def test_a_job_can_be_sent_and_brings_its_plugins_along(tmp_path: Path) -> None:
    job = with_plugin(tmp_path)
    here = perform(job)
    (tmp_path / "last.py").unlink()
    (tmp_path / "cluster.json").unlink()
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(job), type=Job)
    assert sent.key == job.key
    assert lasting(perform(sent)) == lasting(here)
    assert b"default/p0,1,scheduled,n2" in here.decisions


def test_a_plugin_that_was_edited_makes_another_run(tmp_path: Path) -> None:
    job = with_plugin(tmp_path)
    [file] = job.plugin_files
    edited = msgspec.structs.replace(file, content=file.content + b"\n")
    other = msgspec.structs.replace(job, plugin_files=(edited,))
    moved = msgspec.structs.replace(file, path="elsewhere/last.py")
    same = msgspec.structs.replace(job, plugin_files=(moved,))
    assert other.key != job.key == same.key


def test_without_a_configuration_all_pods_are_the_default_schedulers(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    wanted = spec(tmp_path, configurations=(ConfigurationSpec(name="default"),))
    text = (tmp_path / "cluster.json").read_text()
    file.write_text(text.replace('"containers"', '"schedulerName": "x", "containers"'))
    [one] = wanted.inputs
    wanted = msgspec.structs.replace(
        wanted, inputs=(msgspec.structs.replace(one, paths=(str(file),)),)
    )
    assert perform(plan(wanted, "test").jobs[0]).result.metrics["placed"] == 4
