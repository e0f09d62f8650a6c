"""Files that hold no objects of Kubernetes: what they are, and which command makes objects of them.

Folders of manifests also hold files of other tools: a kustomization, the values of a Helm chart,
package.json, a dashboard. From a folder such files are passed over. A file that is named itself is
refused with a line that says what it is. Unrendered templates are refused in both cases, because
objects are meant by them.
"""

import re
import shlex
from pathlib import PurePath
from typing import Any

from bayplan.printable import path_argument
from bayplan.sim.input.controller_kinds import CONTROLLERS

_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_KUSTOMIZE_GROUP = "kustomize.config.k8s.io/"
#: Helm's file of a chart, which gives the folder its name.
CHART = "Chart.yaml"
_VALUES = re.compile(r"values([-_.].*)?\.(ya?ml|json)")

#: A file of another tool, by members that no object has at its top.
_BY_MEMBERS: tuple[tuple[frozenset[str], str], ...] = (
    (
        frozenset(("Name", "Labels")),
        "the text of kubectl describe; kubectl get -o yaml has objects",
    ),
    (frozenset(("type", "object")), "an event of a watch; jq .object makes an object of it"),
    (frozenset(("terraform_version", "resources")), "a state of Terraform"),
    (frozenset(("format_version", "terraform_version")), "a plan of Terraform"),
    (frozenset(("panels", "schemaVersion")), "a dashboard of Grafana"),
    (frozenset(("name", "dependencies")), "a package.json of npm"),
    (frozenset(("name", "scripts")), "a package.json of npm"),
    (frozenset(("compilerOptions",)), "a tsconfig.json of TypeScript"),
    (frozenset(("services", "volumes")), "a file of Docker Compose"),
    (frozenset(("true", "jobs")), "a workflow of GitHub Actions"),
    (frozenset(("on", "jobs")), "a workflow of GitHub Actions"),
    (frozenset(("stages",)), "a pipeline of GitLab"),
    (frozenset(("openapi", "paths")), "an OpenAPI document"),
    (frozenset(("swagger", "paths")), "an OpenAPI document"),
    (frozenset(("$schema", "properties")), "a JSON schema"),
    (frozenset(("groups",)), "a file of Prometheus' rules"),
    (frozenset(("scrape_configs",)), "a configuration of Prometheus"),
)
#: The same by group of the apiVersion, or by apiVersion and kind.
_BY_KIND = (
    ("v1 Config", "a kubeconfig; it is given with --kubeconfig, without files"),
    ("v1 Status", "an error of an API server, not its objects"),
    ("meta.k8s.io/", "a table or the metadata of objects; kubectl get -o yaml has the objects"),
    ("kind.x-k8s.io/", "a configuration of kind"),
    ("kubeadm.k8s.io/", "a configuration of kubeadm"),
    ("kubelet.config.k8s.io/", "a configuration of the kubelet"),
    ("kubeproxy.config.k8s.io/", "a configuration of kube-proxy"),
    ("skaffold/", "a configuration of Skaffold"),
)

#: What kubectl prints without -o, and in place of an answer.
_KUBECTL_TABLE = re.compile(r"(NAMESPACE +)?NAME +[A-Z]")
_KUBECTL_TEXT = re.compile(r"No resources found|Error from server|error: |The connection to the ")
#: Lines that kubectl prints among objects: on standard error, and in a dump on standard output.
_KUBECTL_LOGS = re.compile(rb"^==== (START|END) logs for ", re.MULTILINE)
_KUBECTL_REMARK = re.compile(rb"^(Warning: |[IWEF]\d{4} \d\d:\d\d:\d\d)", re.MULTILINE)

#: An action of a Go template, as Helm charts have them.
_ACTION = re.compile(
    r"\{\{-?\s*(/\*|[.$(]|(if|else|end|with|range|define|template|block|include|tpl|toYaml|default"
    r"|quote|printf|lookup|required|fail|int|eq|not|and|or)\b)"
)
_OBJECT_MEMBER = re.compile(rb'^\W*"?(apiVersion|kind)"?\s*:', re.MULTILINE)
_LINES_BEFORE = 2


def description(value: Any, path: str) -> str | None:
    """What the document of a file is, with advice. None: an object, or nothing that is known."""
    name, folder = PurePath(path).name, str(PurePath(path).parent)
    if isinstance(value, str):
        return _described_text(value)
    if isinstance(value, list) and any(isinstance(each, dict) and "kind" in each for each in value):
        return "a list of objects that is no List; jq '.[]' prints its objects one by one"
    if not isinstance(value, dict):
        return None
    kind = f"{value.get('apiVersion', '')} {value.get('kind', '')}"
    if kind.startswith(_KUSTOMIZE_GROUP) or (name in _KUSTOMIZATIONS and not _has_name(value)):
        return f"a kustomization; render it: {kustomize_command(folder)}"
    known = next((text for start, text in _BY_KIND if kind.startswith(start)), None)
    if known is not None and not _has_name(value):
        return known
    if "kind" in value and ("apiVersion" in value or "metadata" in value):
        return None
    if name == CHART:
        return f"the {CHART} of a Helm chart; render the chart: {helm_command(folder)}"
    if _VALUES.fullmatch(name):
        return f"a file of values for Helm; render the chart: {helm_command('CHART', path)}"
    return next((text for members, text in _BY_MEMBERS if members <= value.keys()), None)


def _described_text(text: str) -> str | None:
    if _KUBECTL_TABLE.match(text):
        return "a table of kubectl; add -o yaml to the command"
    return "a message of kubectl, not its objects" if _KUBECTL_TEXT.match(text) else None


def _has_name(value: dict[str, Any]) -> bool:
    meta = value.get("metadata")
    return isinstance(meta, dict) and bool(meta.get("name") or meta.get("generateName"))


def is_foreign(value: Any, path: str) -> bool:
    """Whether a document of a folder is meant for another tool.

    A document with two of apiVersion, kind and metadata is meant as an object, and a mistake in
    it is reported.
    """
    if not isinstance(value, dict):
        return True
    kind = value.get("kind")
    if isinstance(kind, str) and kind.endswith("List") and "items" in value:
        return False
    if sum(member in value for member in ("apiVersion", "kind", "metadata")) < 2:
        return True
    if description(value, path) is not None:
        return True
    return not _has_name(value) and kind not in _MEANT_KINDS


#: An object of these kinds that has no name is a mistake, not a configuration of another tool.
_MEANT_KINDS = frozenset(("Pod", "Node", "Scenario", "WhatIf", "KubeSchedulerConfiguration")).union(
    kind.rpartition(" ")[2] for kind in CONTROLLERS
)


def can_hold_objects(content: bytes) -> bool:
    """Whether a text that cannot be read has the members of an object."""
    return _OBJECT_MEMBER.search(content) is not None


def text_among_objects(content: bytes) -> str | None:
    """Why a text cannot be read that has lines of kubectl besides objects, with advice. None: it
    has no such lines."""
    if _KUBECTL_LOGS.search(content):
        command = "kubectl cluster-info dump --output-directory=DIR"
        return f"logs among objects; files without them: {command}"
    if match := _KUBECTL_REMARK.search(content):
        line = content.count(b"\n", 0, match.start()) + 1
        return f"a remark of kubectl among objects, line {line}; keep standard error out (no 2>&1)"
    return None


def is_kustomization(path: str) -> bool:
    return PurePath(path).name in _KUSTOMIZATIONS


# ---- templates -----------------------------------------------------------------------------


def has_action(text: str) -> bool:
    """Whether a text has an action of a Go template."""
    return _ACTION.search(text) is not None


def is_template(content: bytes, line: int | None) -> bool:
    """Whether actions of a Go template explain why a text cannot be read at a line, from 1.

    Actions elsewhere explain nothing: a ConfigMap may hold the template of an alert. No template
    begins with the bracket of a JSON object.
    """
    lines = content.decode(errors="replace").splitlines()
    if line is None:
        return not _is_json(lines) and has_action("\n".join(lines))
    starts = [number for number, each in enumerate(lines[:line]) if each.startswith("---")]
    if _is_json(lines[starts[-1] + 1 :] if starts else lines):
        return False
    return has_action("\n".join(lines[max(line - 1 - _LINES_BEFORE, 0) : line + 1]))


def _is_json(lines: list[str]) -> bool:
    """Whether a text begins with the bracket of an object, and not with an action."""
    first = next((each.lstrip() for each in lines if each.strip()), "")
    return first.startswith("{") and not first.startswith("{{")


def template_message(chart: str | None) -> str:
    """``chart``: the folder of the chart; None: it is not known."""
    return f"a Helm template that is not rendered; render it: {helm_command(chart or 'CHART')}"


def helm_command(chart: str, values: str | None = None) -> str:
    option = "" if values is None else f" -f {shlex.quote(values)}"
    return f"helm template {_path(chart)}{option} | bayplan … -"


def kustomize_command(folder: str) -> str:
    return f"kubectl kustomize {_path(folder)} | bayplan … -"


def _path(path: str) -> str:
    return shlex.quote(path_argument(path))
