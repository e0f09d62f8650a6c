"""Extensions from installed packages."""

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from bayplan.comparison import RunMetric, extensions
from bayplan.comparison.extensions import METRICS_GROUP, installed_metrics
from bayplan.comparison.job import perform
from bayplan.comparison.planning import plan
from bayplan.journal import AttemptRecord, Record
from bayplan.sim.input.errors import InputError
from tests.comparison.kit import spec


class Counts(RunMetric):
    """Counts all calls of its observer methods."""

    name = "counts"

    def __init__(self) -> None:
        self.nodes = self.pods = self.bound = self.attempts = 0

    def node(self, old: Any, new: Any) -> None:
        self.nodes += old is None

    def pod(self, old: Any, new: Any) -> None:
        self.pods += old is None
        self.bound += bool(new.node_name) and not old.node_name if old else False

    def record(self, record: Record) -> None:
        self.attempts += isinstance(record, AttemptRecord)

    def values(self, result: Any) -> Mapping[str, float]:
        return {"nodes": self.nodes, "pods": self.pods, "bound": self.bound, "tried": self.attempts}


class Nameless(RunMetric):
    def values(self, result: Any) -> Mapping[str, float]:
        return {}


def bring(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    point = EntryPoint("one", f"tests.comparison.test_extensions:{what}", METRICS_GROUP)
    brought = {METRICS_GROUP: [point]}
    monkeypatch.setattr(extensions, "entry_points", lambda group: brought.get(group, []))


def test_a_metric_of_an_installed_package_observes_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(monkeypatch, "Counts")
    [packed, _] = plan(spec(tmp_path, metrics=("counts",)), "test").jobs
    assert perform(packed).result.metrics == {"nodes": 3, "pods": 4, "bound": 4, "tried": 4}


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("spec", "not a metric; wanted a subclass of RunMetric"),
        ("Nameless", 'wanted a name, as in name = "nodes_used"'),
        ("missing", "AttributeError"),
    ],
)
def test_an_invalid_metric_is_refused_with_its_entry_point(
    monkeypatch: pytest.MonkeyPatch, attribute: str, message: str
) -> None:
    bring(monkeypatch, attribute)
    with pytest.raises(InputError, match=f"^entry point one = .*:{attribute}: {message}"):
        installed_metrics()
