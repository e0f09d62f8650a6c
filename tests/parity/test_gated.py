"""Recorded answers of kube-scheduler with gates that are not at their defaults.

`gate_cases` draws the cases and says how their answers are recorded.
"""

import json
from pathlib import Path

import pytest

from bayplan.config.gate_effects import changes_no_answer
from bayplan.config.kubernetes_versions import KubernetesVersion, version_of_release
from tests.parity.gate_cases import SUITES
from tests.parity.runner import compare_file_line, compare_files
from tests.parity.tally import Tally, report

FILES = sorted((Path(__file__).parent / "gated").glob("*.jsonl"))


def version_of(file: Path) -> KubernetesVersion:
    version = version_of_release(SUITES[file.stem].release)
    assert version is not None
    return version


def test_each_suite_has_its_file() -> None:
    assert {file.stem for file in FILES} == set(SUITES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_answers_with_the_gate_on_and_off_are_reproduced(file: Path) -> None:
    tally = compare_files([file], kubernetes=version_of(file))
    assert tally.compared > 0
    assert not tally.different, "\n".join(report(tally, 5))
    assert not tally.not_understood


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_answers_differ_with_the_gate_in_its_other_state(file: Path) -> None:
    gate = SUITES[file.stem].gate
    tally = Tally()
    for line in file.read_bytes().splitlines():
        case = json.loads(line)
        case["gates"][gate] = not case["gates"][gate]
        compare_file_line(json.dumps(case).encode(), file.stem, tally, version_of(file))
    assert bool(tally.different) is not changes_no_answer(gate)
