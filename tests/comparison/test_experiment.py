"""Experiment files and their problems."""

import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.comparison.experiment import ExperimentDocument, is_experiment, read_experiment
from bayplan.sim.input.errors import InputError, InputErrors
from tests.comparison.kit import configuration


def document(**spec: Any) -> dict[str, Any]:
    whole = {"configurations": [{"name": "a", "config": configuration("MostAllocated")}], **spec}
    return {"apiVersion": "bayplan.dev/v1alpha1", "kind": "Experiment", "spec": whole}


def read(folder: Path, value: Any) -> ExperimentDocument:
    file = folder / "e.yaml"
    file.write_text(value if isinstance(value, str) else json.dumps(value))
    errors = InputErrors()
    result = read_experiment(str(file), errors)
    errors.raise_if_any()
    assert result is not None
    return result


def wrong(folder: Path, value: Any) -> list[str]:
    with pytest.raises(InputError) as refused:
        read(folder, value)
    return [line.removeprefix(f"{folder}/e.yaml: ") for line in refused.value.lines]


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    value = document(
        inputs=[{"paths": ["c.yaml"]}], configurations=[{"file": "x/packed.yaml"}], plugins=["p.py"]
    )
    spec = read(tmp_path, value).spec
    assert spec.inputs[0].paths == (str(tmp_path / "c.yaml"),)
    assert spec.configurations[0].file == str(tmp_path / "x/packed.yaml")
    assert spec.configurations[0].name == "packed"
    assert spec.plugins == (str(tmp_path / "p.py"),)


def test_absent_fields_have_their_defaults(tmp_path: Path) -> None:
    spec = read(tmp_path, document()).spec
    assert (spec.seeds, spec.time, spec.metrics, spec.arrivals.shuffled) == (
        0,
        "arrivals",
        (),
        False,
    )


def test_all_problems_are_reported_at_once_with_their_paths(tmp_path: Path) -> None:
    value = document(
        time="later",
        seed="0..9",
        arrivals={"shuffled": "yes", "untilDemand": {"resource": "cpu", "percent": 0}},
        configurations=[
            {"name": "a", "file": "a.yaml", "config": {}},
            {"config": configuration("MostAllocated")},
            {"name": "c", "feature_gates": ""},
        ],
    )
    assert wrong(tmp_path, value) == [
        'spec.configurations[2].feature_gates: unknown field; did you mean "featureGates"?',
        'spec.seed: unknown field; did you mean "seeds"?',
        'spec.arrivals.shuffled: "yes"; wanted true or false',
        'spec.time: found "later", wanted "arrivals" or "trace"',
        "spec.configurations[0]: has file and config; wanted one of them",
        "spec.configurations[1].name: found nothing, wanted a name",
        "spec.arrivals.untilDemand.percent: found 0.0, wanted a percentage above 0, such as 130",
    ]


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({"kind": "Experiment"}, "spec: missing"),
        (document(configurations=[]), "spec.configurations: found nothing"),
        ({**document(), "apiVersion": "v1"}, 'apiVersion: found "v1", wanted bayplan.dev/v1alpha1'),
        ("a: [", "e.yaml"),
        ("{}\n---\n{}", "found 2 documents, wanted one Experiment"),
    ],
)
def test_an_invalid_document_is_refused(tmp_path: Path, value: Any, line: str) -> None:
    [result] = wrong(tmp_path, value)
    assert line in result


def test_an_experiment_is_recognized_by_its_kind(tmp_path: Path) -> None:
    for name, text, is_one in (
        ("a.yaml", json.dumps(document()), True),
        ("b.yaml", "kind: Pod", False),
        ("c.yaml", "a: [", False),
        ("d.csv", json.dumps(document()), False),
    ):
        (tmp_path / name).write_text(text)
        assert is_experiment(str(tmp_path / name)) is is_one
    assert not is_experiment(str(tmp_path))
    assert not is_experiment(str(tmp_path / "nowhere.yaml"))
