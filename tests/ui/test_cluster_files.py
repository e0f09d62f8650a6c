"""The page of the files of a cluster: it shows every file that a simulation reads.

CASES=FOLDER adds the files of a folder.
"""

import json
import os
from pathlib import Path

import pytest
import yaml

from bayplan.api.pod_groups import COSCHEDULING_LABEL
from bayplan.config import config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.internal_errors import REPORT
from bayplan.plugins.registry import default_registry
from bayplan.sim.input.inputs import InputError, load_inputs
from bayplan.sim.input.object_checks import ObjectChecks
from bayplan.sim.input.workload import ExpansionMode
from bayplan.ui import pages
from bayplan.ui.model_answers import explanation_answer
from bayplan.ui.object_answers import object_text
from bayplan.ui.subjects import ClusterSubject, RunSubject, Subject, subject_of_files
from tests.history.stored_runs import write_run
from tests.kit.group_claims import GATES, group, members, one_device
from tests.kit.manifests import node, pod, pod_group
from tests.ui.fetching import fetched, ready

_EXAMPLES = Path(__file__).parents[2] / "examples"
_SUFFIXES = (".json", ".yaml", ".yml")
_NODE = """
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "20"}}
---
"""
_CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
"""
_POD = """
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec:
  containers: [{name: c, image: app}]
"""
#: Nodes and pods, named after what the page has to cope with.
CLUSTERS = {
    "a claim": _NODE + _CLAIM + _POD + "  volumes:\n"
    "  - {name: data, persistentVolumeClaim: {claimName: data}}\n",
    "a claim that is missing": _NODE + _POD + "  volumes:\n"
    "  - {name: data, persistentVolumeClaim: {claimName: data}}\n",
    "a claim for one pod": _NODE + _POD + "  volumes:\n"
    "  - name: data\n    ephemeral: {volumeClaimTemplate: {spec: "
    "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}\n",
    "a projected volume": _NODE + _POD + "  volumes:\n"
    "  - {name: kube-api-access, projected: {sources: [{serviceAccountToken: {path: token}}]}}\n",
    "a claim and its volume": _NODE
    + _CLAIM
    + """
apiVersion: v1
kind: PersistentVolume
metadata: {name: v}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  hostPath: {path: /data}
---
"""
    + _POD,
    "a claim of a stateful set": _NODE
    + """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: default}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: app}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
""",
    "no node": _POD,
    "nothing but a claim": _CLAIM,
}
_DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: app}]}
"""
_CUSTOM = "apiVersion: example.com/v1\nkind: Foo\nmetadata: {name: a}\n"
_NO_NODE = (
    "no node was read: name a file with the nodes of the cluster, too; "
    "kubectl get nodes -o yaml prints them, bayplan capture writes all"
)
_MADE = "2 pods were created for controllers: 2 for 1 Deployment"
_NO_OBJECT = "wanted an object with apiVersion, kind and metadata"
_NOTHING = "found nothing in it, wanted Kubernetes objects or a Scenario"
#: What somebody may name as a file of a cluster, and the lines for the page and the terminal.
ANYTHING = {
    "a Deployment": (_DEPLOYMENT, [_MADE, _NO_NODE]),
    "a custom object": (_CUSTOM, ["not read: 1 Foo", _NO_NODE]),
    "a list of Deployments": (
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(_DEPLOYMENT)]}),
        [_MADE, _NO_NODE],
    ),
    "an empty list": ('{"apiVersion": "v1", "kind": "List", "items": []}', [_NO_NODE]),
    "several documents": (_NODE + _DEPLOYMENT + "---\n" + _CUSTOM, [_MADE, "not read: 1 Foo"]),
}
#: The same of what is no cluster.
NO_CLUSTERS = {
    "an empty file": ("", f"cluster.yaml: {_NOTHING}"),
    "separators": ("---\n---\n", f"cluster.yaml: {_NOTHING}"),
    "a comment": ("# later\n", f"cluster.yaml: {_NOTHING}"),
    "prose": ("hello world", f'cluster.yaml, document 1: found "hello world", {_NO_OBJECT}'),
    "a list": ("[1, 2]", f"cluster.yaml, document 1: found a list, {_NO_OBJECT}"),
    "no YAML": ("a: [\n", "cluster.yaml, document 1, line 2: "),
    "no text": (
        "\xff\x00",
        "cluster.yaml, document 1: UTF-16 or UTF-32 without a byte order mark, or no text",
    ),
    "a configuration": (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n",
        (
            'cluster.yaml, document 1: kind: found "KubeSchedulerConfiguration", wanted objects of '
            "a cluster; a scheduler's configuration is given with --config"
        ),
    ),
}


def _files() -> list[Path]:
    paths = [path for path in _EXAMPLES.rglob("*") if path.suffix in _SUFFIXES]
    paths += [path for path in _EXAMPLES.iterdir() if path.is_dir()]
    if folder := os.environ.get("CASES"):
        paths += [path for path in Path(folder).iterdir() if path.suffix in _SUFFIXES]
    return sorted(paths)


def _loaded(path: Path, **fields: object) -> tuple[ClusterSubject, list[str]]:
    """``fields``: of the configuration."""
    remarks: list[str] = []
    config, registry = config_from({**DEFAULT_CONFIG, **fields}), default_registry()
    subject = subject_of_files([str(path)], config, registry, remarks.append)
    subject.load()
    return subject, remarks


@pytest.mark.parametrize("path", _files(), ids=str)
def test_the_page_shows_every_file_that_a_simulation_reads(path: Path) -> None:
    subject, remarks = _loaded(path)
    answer = subject.answer()
    assert answer.problem == _problem(path)
    assert answer.phase == ("failed" if answer.problem else "ready")
    expected = [f"{path.name} cannot be shown: {answer.problem}"] if answer.problem else []
    assert [line for line in remarks if "cannot be shown" in line] == expected


def _problem(path: Path) -> str:
    """Why a simulation does not read the file; "": it does."""
    try:
        load_inputs([str(path)], expansion=ExpansionMode.ONCE)
    except InputError as problem:
        return str(problem)
    return ""


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_page_shows_a_cluster_with(tmp_path: Path, name: str) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTERS[name])
    subject, _ = _loaded(path)
    assert (subject.answer().phase, subject.answer().problem) == ("ready", "")
    has_pod = "kind: Pod\n" in CLUSTERS[name]
    assert ("default/p" in subject.timeline.rows_by_name) == has_pod


@pytest.mark.parametrize("name", ANYTHING)
def test_any_object_is_shown_and_what_is_missing_is_told_on_the_page_and_in_the_terminal(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "cluster.yaml"
    text, notes = ANYTHING[name]
    path.write_text(text)
    subject, remarks = _loaded(path)
    answer = subject.answer()
    assert (answer.phase, answer.problem) == ("ready", "")
    assert list(answer.notes) == remarks == notes


@pytest.mark.parametrize("name", NO_CLUSTERS)
def test_what_is_no_cluster_is_one_message_on_the_page_and_in_the_terminal(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "cluster.yaml"
    text, problem = NO_CLUSTERS[name]
    path.write_bytes(text.encode("latin-1"))
    subject, remarks = _loaded(path)
    answer = subject.answer()
    assert answer.phase == "failed"
    # The path stands before it, and what YAML says after it.
    assert problem in answer.problem
    assert remarks == [f"cluster.yaml cannot be shown: {answer.problem}"]


def test_a_pod_with_a_claim_waits_for_the_reason_that_the_scheduler_gives(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTERS["a claim that is missing"])
    subject, _ = _loaded(path)
    (cause,) = [cause for cause in subject.timeline.causes if cause.parts]
    assert [part.reason for part in cause.parts] == [
        '0/1 nodes are available: persistentvolumeclaim "data" not found. not found'
    ]


def test_the_page_reads_the_claims_of_a_group_as_its_scheduler_does(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    contents = [node("n1"), node("n2"), *one_device(), group(), *members()]
    path.write_text("".join(f"---\n{json.dumps(one)}\n" for one in contents))
    without, _ = _loaded(path)
    assert any(cause.parts for cause in without.timeline.causes)
    subject, _ = _loaded(path, featureGates=GATES)
    assert [cause.kind for cause in subject.timeline.causes if cause.parts] == []


def test_a_cause_stands_since_the_creation_of_its_oldest_pod_as_the_file_has_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cluster.yaml"
    pods = [
        _POD.replace("name: p,", f"name: {name}, {stamp}").replace(
            "name: c,", "name: c, resources: {requests: {cpu: 9}},"
        )
        for name, stamp in (
            ("young", 'creationTimestamp: "2026-11-24T10:00:00Z",'),
            ("old", 'creationTimestamp: "2026-11-20T08:30:00Z",'),
            ("unknown", ""),
        )
    ]
    path.write_text(_NODE + "---".join(pods))
    subject, _ = _loaded(path)
    line = subject.timeline
    (group,) = pages.waiting(line.state(line.last_change)).groups
    assert (group.pods, group.created) == (3, "2026-11-20T08:30:00Z")
    answer = ready(lambda: object_text(subject, 0, "Pod", "default/old"))
    assert answer.value is not None
    assert "creationTimestamp: '2026-11-20T08:30:00Z'" in answer.value.yaml


@pytest.mark.parametrize("is_run", [False, True], ids=["files", "run"])
@pytest.mark.parametrize(("third", "kind", "pods"), [("3", "unschedulable", 3), (None, "group", 2)])
def test_all_members_of_a_group_wait_for_what_the_first_rejected_one_lacks(
    third: str | None, kind: str, pods: int, is_run: bool, tmp_path: Path
) -> None:
    requests = ["1", "1", third] if third else ["1", "1"]
    members = [
        pod(f"m{index}", cpu=cpu, labels={COSCHEDULING_LABEL: "g"})
        for index, cpu in enumerate(requests)
    ]
    path = tmp_path / "cluster.json"
    path.write_text("\n".join(map(json.dumps, [node("n1", cpu="4"), pod_group(), *members])))
    if is_run:
        subject: Subject = RunSubject(write_run(tmp_path / "run", load_inputs([path])))
        subject.load()
    else:
        subject, _ = _loaded(path)
    state = subject.timeline.state(subject.timeline.last_change)
    (group,) = pages.waiting(state).groups
    assert (group.cause.kind, group.pods) == (kind, pods)
    assert ("NodeResourcesFit" in str(group.cause)) == bool(third)


def test_what_was_made_up_for_the_cluster_is_a_remark(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTERS["a claim of a stateful set"])
    _, remarks = _loaded(path)
    assert remarks[0] == "2 pods were created for controllers: 2 for 1 StatefulSet"


def _raise(*_: object, **__: object) -> None:
    raise KeyError("name")


def test_a_defect_while_the_files_load_is_one_line_on_the_page_and_in_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(_NODE + _POD)
    monkeypatch.setattr(ObjectChecks, "_problems", _raise)
    subject, remarks = _loaded(path)
    problem = subject.answer().problem
    assert problem.startswith("internal error at Node a (sim/input/object_checks.py, line ")
    assert f": KeyError: 'name'; {REPORT}" in problem
    assert remarks == [f"cluster.yaml cannot be shown: {problem}"]


def test_a_defect_in_an_answer_is_one_line_on_the_page_and_in_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(_NODE + _POD)
    subject, remarks = _loaded(path)
    monkeypatch.setattr(subject, "answer", _raise)
    response, body = fetched([subject], "api/sources")
    assert response.status == 500
    [line] = remarks
    assert line.startswith("internal error")
    assert json.loads(body) == {"error": line}


def test_a_failed_computation_stands_on_the_page_and_once_in_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(_NODE)
    subject, remarks = _loaded(path)
    problem = "default/absent does not exist at this moment"
    for _ in range(2):
        answer = ready(lambda: explanation_answer(subject, 0, "default/absent"))
        assert (answer.phase, answer.problem) == ("failed", problem)
    assert remarks == [problem]


def test_a_pod_of_another_scheduler_waits_for_that_scheduler(tmp_path: Path) -> None:
    """`bayplan why` gives the same answer about the same files."""
    path = tmp_path / "cluster.yaml"
    path.write_text(json.dumps(node("n1")) + "\n---\n" + json.dumps(pod(schedulerName="theirs")))
    subject, _ = _loaded(path)
    answer = ready(lambda: explanation_answer(subject, 0, "default/web"))
    assert answer.value is not None
    assert (answer.value.result, answer.value.scheduler) == ("foreign", "theirs")
