"""A manifest of a file has what kube-apiserver requires, also where no scheduler reads it.

tests/live/test_validation.py compares the verdicts and the words with a real kube-apiserver.
"""

import copy
from pathlib import Path
from typing import Any

import pytest

from bayplan.sim.input.errors import InputError
from bayplan.sim.input.inputs import load_inputs
from tests.kit.manifests import Content, api_object, container, pod
from tests.sim.manifests import controller, template

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
NFS = {"server": "s", "path": "/x"}
VOLUME = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "nfs": NFS}
EPHEMERAL = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}


def refusals(content: Content) -> list[str]:
    try:
        load_inputs([content])
    except InputError as problem:
        return [line.partition("): ")[2] for line in problem.lines]
    return []


def claim(**changes: Any) -> Content:
    return api_object("v1 PersistentVolumeClaim", "x", "default", spec={**CLAIM, **changes})


def volume(**changes: Any) -> Content:
    return api_object("v1 PersistentVolume", "x", spec={**VOLUME, **changes})


KEY = {"name": "m", "key": "k"}
FIRST = "spec.containers[0]."


def with_container(**fields: Any) -> Content:
    return pod(containers=[container(**fields)])


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (claim(), []),
        (volume(), []),
        (
            pod(containers=[{}]),
            [
                "spec.containers[0].name: Required value",
                "spec.containers[0].image: Required value",
            ],
        ),
        (
            pod(containers=[container(image="app ")]),
            ['spec.containers[0].image: Invalid value: "app ": must not have leading or'],
        ),
        (
            controller("Deployment", template=template(initContainers=[{"name": "i"}])),
            ["spec.template.spec.initContainers[0].image: Required value"],
        ),
        (claim(accessModes=[]), ["spec.accessModes: Required value: at least 1 access mode is"]),
        (claim(resources={"requests": {}}), ["spec.resources[storage]: Required value"]),
        (
            controller("StatefulSet", volumeClaimTemplates=[{"metadata": {"name": "d"}}]),
            [
                "spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1",
                "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value",
            ],
        ),
        (
            pod(volumes=[EPHEMERAL]),
            [
                "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Required value",
                "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required",
            ],
        ),
        (volume(nfs=None), ["spec: Required value: must specify a volume type"]),
        (volume(csi={}), ["spec.csi: Forbidden: may not specify more than 1 volume type"]),
        (
            pod(volumes=[{"name": "v", "emptyDir": {}, "secret": {"secretName": "s"}}]),
            ["spec.volumes[0].secret: Forbidden: may not specify more than 1 volume type"],
        ),
        (
            with_container(env=[{"name": "A", "value": "x", "valueFrom": {"secretKeyRef": KEY}}]),
            ['env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
        ),
        (
            with_container(livenessProbe={"httpGet": {"port": "80"}, "periodSeconds": -1}),
            [
                "livenessProbe.periodSeconds: Invalid value: -1: must be greater than or",
                'livenessProbe.httpGet.port: Invalid value: "80": must contain at least one letter',
            ],
        ),
        (
            with_container(readinessProbe={"periodSeconds": 5}),
            ["readinessProbe: Required value: must specify a handler type"],
        ),
        (
            with_container(ports=[{"containerPort": 80, "name": "a"}] * 2),
            ['ports[1].name: Duplicate value: "a"'],
        ),
        (
            with_container(imagePullPolicy="always"),
            ['imagePullPolicy: Unsupported value: "always": supported values: "Always", "IfNotPr'],
        ),
        (with_container(command="ls"), ['command: found "ls", wanted a list']),
        (with_container(env={"A": "b"}), ["env: found a mapping, wanted a list"]),
        (
            with_container(livenessProbe={"exec": {"command": "ls"}, "timeoutSeconds": "5"}),
            [
                'livenessProbe.exec.command: found "ls", wanted a list',
                'livenessProbe.timeoutSeconds: found "5", wanted a whole number',
            ],
        ),
        (api_object("storage.k8s.io/v1 StorageClass", "x"), ["provisioner: Required value"]),
        (pod(hostname="Bad_"), ['spec.hostname: Invalid value: "Bad_": a lowercase RFC 1123']),
        (pod(finalizers=["mine"]), ['metadata.finalizers[0]: Invalid value: "mine": name is']),
    ],
)
def test_what_a_manifest_lacks_is_refused_in_the_words_of_kube_apiserver(
    content: Content, lines: list[str]
) -> None:
    found = [line.removeprefix(FIRST) for line in refusals(content)]
    lines = [line.removeprefix(FIRST) for line in lines]
    assert len(found) == len(lines), found
    assert all(line.startswith(said) for line, said in zip(found, lines, strict=True)), found
    stored = copy.deepcopy(content)
    stored["metadata"]["uid"] = "u"
    assert refusals(stored) == []


def test_all_problems_of_a_file_are_one_message() -> None:
    wrong = pod(containers=[{"name": "c", "args": [80]}], annotations={"bayplan.dev/duration": "x"})
    assert [line.split(":")[0] for line in refusals(wrong)] == [
        "spec.containers[0].args[0]",
        "spec.containers[0].image",
        "metadata.annotations.bayplan.dev/duration",
    ]


@pytest.mark.parametrize("number", [10**30, -(10**30)])
def test_a_number_beyond_64_bits_is_named_with_its_field(number: int) -> None:
    (line,) = refusals(pod(requests={"example.com/a": number}))
    assert line.startswith("spec.containers[0].resources.requests.example.com/a: found ")
    assert f"{number}, wanted a whole number" in line


def test_an_empty_path_is_not_the_present_folder_and_a_broken_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("nowhere.yaml")
    with pytest.raises(InputError) as problem:
        load_inputs(["", str(tmp_path / "a.yaml")])
    empty, broken = problem.value.lines
    assert empty == '"": found nothing, wanted a file, a folder or -'
    assert broken.endswith(
        "cannot be read: No such file or directory; it is a link to nowhere.yaml"
    )
