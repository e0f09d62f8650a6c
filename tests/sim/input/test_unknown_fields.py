"""Reports about fields and kinds of an input that the simulation does not read."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.api.field_tables import unknown_fields
from bayplan.sim.input.errors import LINES_MAX
from bayplan.sim.input.inputs import InputError, load_inputs
from bayplan.sim.input.object_checks import READ_KINDS
from bayplan.sim.input.workload import Workload
from tests.kit.manifests import Content, node, pod
from tests.sim.manifests import controller, scenario, template


def written(folder: Path, *contents: Content) -> str:
    path = folder / "input.yaml"
    path.write_text(yaml.safe_dump_all(contents), encoding="utf-8")
    return str(path)


def loaded(folder: Path, *contents: Content, **options: Any) -> Workload:
    return load_inputs([written(folder, *contents)], **options)


def refused(folder: Path, *contents: Content) -> list[str]:
    path = written(folder, *contents)
    with pytest.raises(InputError) as problem:
        load_inputs([path], is_strict=True)
    return [line.removeprefix(f"{path}, ") for line in problem.value.lines]


def of_kind(api_version: str, kind: str, name: str = "x") -> Content:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": {}}


CRON_JOB = of_kind("batch/v1", "CronJob")
MESSAGE = 'spec.nodeSelectr is not a field of Pod; did you mean "nodeSelector"?'
TYPO = pod("a", nodeSelectr={"disk": "ssd"})


# ---- kinds ----------------------------------------------------------------------------------


def test_every_ignored_kind_is_named_with_its_count(tmp_path: Path) -> None:
    autoscalers = [
        of_kind("autoscaling/v2", "HorizontalPodAutoscaler", name) for name in ("a", "b")
    ]
    feed = loaded(tmp_path, node("n1"), CRON_JOB, *autoscalers, pod("a"))
    assert feed.ignored_kinds == {
        "batch/v1 CronJob": 1,
        "autoscaling/v2 HorizontalPodAutoscaler": 2,
    }
    note, cron_jobs = feed.notes
    assert cron_jobs.startswith("1 CronJob is not expanded: ")
    # Fixes read autoscalers.
    assert note == "not read: 1 CronJob"


def test_the_note_about_ignored_kinds_is_one_short_line(tmp_path: Path) -> None:
    ignored = [of_kind("example.com/v1", f"Kind{letter}") for letter in "ABCDEF"]
    [note] = loaded(tmp_path, *ignored, of_kind("example.com/v1", "KindF", "y")).notes
    assert note == "not read: 2 KindF, 1 KindA, 1 KindB, 1 KindC and 2 more kinds"


def test_ignored_objects_of_a_scenario_are_counted(tmp_path: Path) -> None:
    late = scenario({"at": "5s", "create": [CRON_JOB]})
    assert loaded(tmp_path, late).ignored_kinds == {"batch/v1 CronJob": 1}


def test_a_kind_that_a_plugin_reads_is_not_ignored(tmp_path: Path) -> None:
    quota = of_kind("example.com/v1", "Quota")
    assert not loaded(tmp_path, quota, read_kinds=["example.com/v1 Quota"]).ignored_kinds


def test_an_older_version_of_a_supported_kind_is_read(tmp_path: Path) -> None:
    older = of_kind("resource.k8s.io/v1beta2", "DeviceClass")
    feed = loaded(tmp_path, older)
    assert not feed.ignored_kinds
    name = "DeviceClass"
    assert feed.notes == (f"1 resource.k8s.io/v1beta2 {name}: read as resource.k8s.io/v1 {name}",)


@pytest.mark.parametrize(
    ("version", "kind", "read"),
    [
        ("extensions/v1beta1", "Deployment", "apps/v1"),
        ("apps/v1beta2", "StatefulSet", "apps/v1"),
        ("v1", "Deployment", "apps/v1"),
        ("apps/v1", "Pod", "v1"),
        ("policy/v1beta1", "PodDisruptionBudget", "policy/v1"),
        ("resource.k8s.io/v1alpha3", "ResourceClaim", "resource.k8s.io/v1"),
        ("scheduling.k8s.io/v1beta1", "PriorityClass", "scheduling.k8s.io/v1"),
        ("bayplan.example/v1", "Scenario", "bayplan.dev/v1alpha1"),
        ("v1", "WhatIf", "bayplan.dev/v1alpha1"),
    ],
)
def test_a_version_that_is_not_read_is_ignored_with_the_version_that_is(
    tmp_path: Path, version: str, kind: str, read: str
) -> None:
    feed = loaded(tmp_path, of_kind(version, kind), of_kind(version, kind, "y"))
    assert feed.ignored_kinds == {f"{version} {kind}": 2}
    assert feed.notes == (
        f"2 {version} {kind}: ignored, {read} {kind} is read; change the apiVersion",
    )


@pytest.mark.parametrize(
    ("version", "kind", "read"),
    [
        ("v1", "node", "v1 Node"),
        ("apps/v1", "deployment", "apps/v1 Deployment"),
        ("bayplan.dev/v1alpha1", "scenario", "bayplan.dev/v1alpha1 Scenario"),
    ],
)
def test_a_kind_that_is_written_otherwise_is_named_as_it_is_read(
    tmp_path: Path, version: str, kind: str, read: str
) -> None:
    [note] = loaded(tmp_path, of_kind(version, kind)).notes
    assert note == f"1 {version} {kind}: ignored, {read} is read; change the kind"


def test_a_custom_resource_with_the_name_of_a_kind_is_no_older_version(tmp_path: Path) -> None:
    [note] = loaded(tmp_path, of_kind("batch.volcano.sh/v1alpha1", "Job")).notes
    assert note == "not read: 1 Job.batch.volcano.sh"


def test_a_version_that_is_not_read_may_explain_a_refusal(tmp_path: Path) -> None:
    older = of_kind("scheduling.k8s.io/v1beta1", "PriorityClass", "high")
    with pytest.raises(InputError) as problem:
        loaded(tmp_path, older, pod("a", nodeName="n1", priorityClassName="high"))
    refusal, note = str(problem.value).splitlines()
    assert 'found "high", wanted a PriorityClass of the input' in refusal
    assert note.endswith("scheduling.k8s.io/v1 PriorityClass is read; change the apiVersion")


def test_strict_mode_refuses_an_ignored_kind(tmp_path: Path) -> None:
    expectation = "wanted a kind that a simulation or a plugin reads"
    assert refused(tmp_path, node("n1"), CRON_JOB) == [
        f"document 2 (CronJob default/x): found kind batch/v1 CronJob, {expectation}"
    ]


# ---- fields ---------------------------------------------------------------------------------


def test_every_supported_kind_has_a_table_of_fields() -> None:
    not_served = {f"scheduling.k8s.io/{version} PodGroup" for version in ("v1alpha2", "v1")}
    assert {kind for kind in READ_KINDS if not unknown_fields(kind, {"nonsens": 1})} == not_served


def test_a_typo_is_a_note_with_object_path_and_nearest_name(tmp_path: Path) -> None:
    [note] = loaded(tmp_path, node("n1"), TYPO).notes
    assert note.removeprefix(f"{tmp_path}/input.yaml, ") == (
        f"document 2 (Pod default/a): {MESSAGE}"
    )


def test_a_typo_in_the_template_of_a_controller_is_one_note(tmp_path: Path) -> None:
    web = controller("Deployment", replicas=3, template=template(tolerance=[]))
    notes = [one for one in loaded(tmp_path, web).notes if "is not a field" in one]
    assert len(notes) == 1
    assert "spec.template.spec.tolerance is not a field of Deployment" in notes[0]


def test_a_mistake_shared_by_objects_is_one_note(tmp_path: Path) -> None:
    [note] = loaded(tmp_path, *(pod(f"p{number}", foo=1) for number in range(1001))).notes
    assert "document 1 (Pod default/p0) and 1,000 more: spec.foo is not a field of Pod" in note


def test_an_unknown_field_in_a_patch_counts_its_object_once(tmp_path: Path) -> None:
    pod_header = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    change = scenario({"at": "5s", "patch": [{**pod_header, "spec": {"hostNam": "a"}}]})
    first, second = loaded(tmp_path, TYPO, change).notes
    assert "(Pod default/a): spec.nodeSelectr" in first
    assert "(Pod default/a): spec.hostNam" in second


def test_many_mistakes_are_counted_beyond_a_limit(tmp_path: Path) -> None:
    fields: Content = {f"unheardOf{number}": 1 for number in range(LINES_MAX + 5)}
    notes = loaded(tmp_path, pod("a", **fields)).notes
    assert (len(notes), notes[-1]) == (LINES_MAX + 1, "and 5 more fields that no kind has")


def test_strict_mode_refuses_a_typo(tmp_path: Path) -> None:
    assert refused(tmp_path, TYPO) == [f"document 1 (Pod default/a): {MESSAGE}"]


def test_strict_mode_accepts_existing_fields(tmp_path: Path) -> None:
    assert loaded(tmp_path, node("n1"), pod("a"), is_strict=True).pod_count == 1
