"""Files are read strictly, and all problems are reported at once."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.api.objects import Pod
from bayplan.perf.reading import read_files, with_field_names
from bayplan.perf.schema import Barrier, CreateNodes, CreatePods, NotSupported
from bayplan.sim.input.errors import InputErrors
from tests.perf.kit import case, complaints_about, op, read, write_cases

# ---- reading --------------------------------------------------------------------------------


def test_operations_are_read_by_their_opcodes(tmp_path: Path) -> None:
    path = write_cases(tmp_path, case(op("createPods", CountParam="$n"), op("barrier")))
    (result,) = read(path)
    assert result.place == f"{path}: [0] (Case)"
    assert result.operations == (
        CreatePods(opcode="createPods", count_param="$n"),
        Barrier(opcode="barrier"),
    )


def test_unsupported_upstream_operations_are_recognized(tmp_path: Path) -> None:
    path = write_cases(tmp_path, case(op("startCollectingProfile", name="test")))
    assert read(path)[0].operations == (NotSupported(opcode="startCollectingProfile"),)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param(
            case(op("createPod")),
            '[0].workloadTemplate[0].opcode: found "createPod"; did you mean "createPods"?',
            id="unknown opcode",
        ),
        pytest.param(
            case({}), "[0].workloadTemplate[0].opcode: found null; known are alloc", id="no opcode"
        ),
        pytest.param(
            case(op("barrier", namespace="a")),
            '[0].workloadTemplate[0].namespace: unknown field; did you mean "namespaces"?',
            id="unknown field",
        ),
        pytest.param(
            case(op("createNodes", count="5")),
            '[0].workloadTemplate[0].count: "5"; wanted an integer',
            id="wrong type",
        ),
        pytest.param(
            case(op("createNodes", countParam="n")),
            '[0].workloadTemplate[0].countParam: "n"; wanted a parameter such as $measurePods',
            id="wrong reference",
        ),
        pytest.param(
            case(op("createPodSets", namespacePrefix="a", createPodsOp={"cont": 1})),
            '[0].workloadTemplate[0].createPodsOp.cont: unknown field; did you mean "count"?',
            id="wrong nested field",
        ),
        pytest.param(
            case(), "[0].workloadTemplate: found no operation; wanted some", id="empty value"
        ),
        pytest.param(
            {**case(op("barrier")), "workloads": []},
            "[0].workloads: found none; wanted at least one",
            id="no workload",
        ),
        pytest.param(
            {**case(op("barrier")), "workloads": [{"name": "a"}, {"name": "a"}]},
            '[0].workloads[1].name: "a" is given twice; wanted once',
            id="repeated workload",
        ),
        pytest.param(
            {**case(op("barrier")), "workloadz": []},
            '[0].workloadz: unknown field; did you mean "workloads"?',
            id="wrong field of a test case",
        ),
    ],
)
def test_an_invalid_field_is_reported_with_its_path(
    tmp_path: Path, value: Any, message: str
) -> None:
    assert complaints_about(write_cases(tmp_path, value)).startswith(message)


def test_the_name_of_a_test_case_is_unique(tmp_path: Path) -> None:
    path = write_cases(tmp_path, case(op("barrier")), case(op("barrier")))
    assert complaints_about(path) == '[1].name: "Case" is given twice; wanted once'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "wanted one list of test cases, as in scheduler_perf"),
        ("[]", "wanted one list of test cases, as in scheduler_perf"),
        ("[a", "line 2: "),
    ],
)
def test_a_file_contains_one_list(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    assert complaints_about(path).startswith(message)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in complaints_about(tmp_path / "none.yaml")


def names(folder: Path) -> list[str]:
    return [one.source.relative_to(folder).as_posix() for one in read(folder)]


def test_folders_are_searched_for_upstreams_file_names(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name / "templates").mkdir(parents=True)
        write_cases(tmp_path / name, case(op("barrier")))
        (tmp_path / name / "templates" / "pod.yaml").write_text("a: 1")
    assert names(tmp_path) == ["a/performance-config.yaml", "b/performance-config.yaml"]


def test_folders_without_such_files_are_searched_for_any_yaml_file(tmp_path: Path) -> None:
    write_cases(tmp_path, case(op("barrier"))).rename(tmp_path / "mine.yaml")
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "pod.yaml").write_text("a: 1")
    assert names(tmp_path) == ["mine.yaml"]


def test_an_empty_folder_is_reported(tmp_path: Path) -> None:
    errors = InputErrors()
    assert read_files([str(tmp_path)], errors) == []
    with pytest.raises(ValueError, match=r"found no performance-config.yaml"):
        errors.raise_if_any()


# ---- field names ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        pytest.param(CreateNodes, {"CountParam": "$n"}, {"countParam": "$n"}, id="a struct"),
        pytest.param(
            Pod,
            {"spec": {"topologySpreadConstraints": [{"NodeTaintsPolicy": "Honor"}]}},
            {"spec": {"topologySpreadConstraints": [{"nodeTaintsPolicy": "Honor"}]}},
            id="a struct in an optional list",
        ),
        pytest.param(
            Pod,
            {"metadata": {"labels": {"Name": "a", "name": "b"}}},
            {"metadata": {"labels": {"Name": "a", "name": "b"}}},
            id="an unknown name is unchanged",
        ),
        pytest.param(
            Pod, {"Spec": {}, "spec": {"a": 1}}, {"Spec": {}, "spec": {"a": 1}}, id="both"
        ),
        pytest.param(Pod, {"other": {"Deep": 1}}, {"other": {"Deep": 1}}, id="an unknown field"),
        pytest.param(Pod, {"spec": None}, {"spec": None}, id="a null"),
    ],
)
def test_field_names_get_the_case_of_their_type(kind: Any, value: Any, expected: Any) -> None:
    assert with_field_names(value, kind) == expected
