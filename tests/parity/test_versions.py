"""Answers of older versions of kube-scheduler, recorded from 1.34.4, 1.35.4 and 1.36.3."""

import json
from pathlib import Path

import pytest

from bayplan.config.kubernetes_versions import NEWEST, KubernetesVersion, version_of_release
from tests.parity.recorded import different_fields
from tests.parity.runner import compare_file_line, compare_files, main
from tests.parity.tally import Tally, report

FILES = sorted((Path(__file__).parent / "versions").iterdir())


def version_of(file: Path) -> KubernetesVersion:
    version = version_of_release(file.name.removesuffix(".jsonl"))
    assert version is not None
    return version


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_answers_of_the_version_are_reproduced(file: Path) -> None:
    tally = compare_files([file], kubernetes=version_of(file))
    assert tally.compared > 0
    assert not tally.different, "\n".join(report(tally, 5))
    assert not tally.not_understood


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_they_are_not_the_answers_of_the_newest_version(file: Path) -> None:
    assert compare_files([file], kubernetes=NEWEST).different


def test_a_changed_answer_of_a_version_is_a_difference() -> None:
    [file] = [each for each in FILES if version_of(each) is KubernetesVersion.V1_35]
    lines = file.read_bytes().splitlines()
    [line] = [each for each in lines if b'"probe-0004"' in each]
    content = json.loads(line)
    scores = content["answers"]["pods"][0]["scores"]["ImageLocality"]
    scores[min(scores)]["raw"] += 1
    tally = Tally()
    compare_file_line(json.dumps(content).encode(), "test", tally, KubernetesVersion.V1_35)
    assert different_fields(tally) == {"scores.raw"}


def test_an_unknown_version_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([str(FILES[0]), "--kubernetes", "1.20"])
    assert 'wanted "1.34", "1.35", "1.36", "1.37"' in capsys.readouterr().err
