"""Files of other tools: passed over in a folder, and refused by name on the command line."""

import json
from pathlib import Path

import pytest

from bayplan.sim.input.inputs import InputError, load_inputs
from tests.kit.manifests import node, pod

#: Files that a folder may have beside manifests, and what they are if they are named.
FOREIGN = {
    "kustomization.yaml": (
        "resources: [web.yaml]\n",
        "a kustomization; render it: kubectl kustomize",
    ),
    "overlays/kustomization.yml": (
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n",
        "a kustomization; render it: kubectl kustomize",
    ),
    "Chart.yaml": (
        "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        "the Chart.yaml of a Helm chart; render the chart: helm template",
    ),
    "values.yaml": ("replicas: 3\nkind: Deployment\n", "a file of values for Helm"),
    "values-prod.yaml": ("replicas: 9\n", "a file of values for Helm"),
    "package.json": ('{"name": "x", "scripts": {}}', "a package.json of npm"),
    "dashboard.json": ('{"panels": [], "schemaVersion": 39}', "a dashboard of Grafana"),
    "terraform.tfstate.json": (
        '{"version": 4, "terraform_version": "1.9", "resources": []}',
        "a state of Terraform",
    ),
    "ci.yml": ("on: push\njobs: {}\n", "a workflow of GitHub Actions"),
    "compose.yaml": ("services: {}\nvolumes: {}\n", "a file of Docker Compose"),
    "kubeconfig.yaml": ("apiVersion: v1\nkind: Config\nclusters: []\n", "a kubeconfig"),
    "kind.yaml": ("apiVersion: kind.x-k8s.io/v1alpha4\nkind: Cluster\n", "a configuration of kind"),
    "error.json": (
        '{"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure"}',
        "an error of an API server",
    ),
    "table.yaml": ("NAME   STATUS\nn1     Ready\n", "a table of kubectl; add -o yaml"),
    "none.yaml": ("No resources found\n", "a message of kubectl"),
    "describe.yaml": (
        "Name: n1\nLabels: a=b\n",
        "the text of kubectl describe; kubectl get -o yaml",
    ),
    "event.json": (
        '{"type": "ADDED", "object": {"kind": "Pod"}}',
        "an event of a watch; jq .object",
    ),
    "items.json": ('[{"kind": "Pod"}]', "a list of objects that is no List; jq '.[]'"),
    "wide.json": (
        '{"apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": {}}',
        "a table or the metadata of objects; kubectl get -o yaml",
    ),
}
#: These are passed over, too; nothing says what they are.
UNKNOWN = {
    "tsconfig.json": '{\n  // a comment\n  "include": []\n}',
    "mkdocs.yml": "x: !!python/name:a.b\n",
    "list.json": "[1, 2]",
    "words.yaml": "only words\n",
    "empty.yaml": "",
    "comments.yaml": "# nothing\n",
    "prices.csv": "type,price\nm5.large,0.1\n",
}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def refusal(path: Path) -> list[str]:
    with pytest.raises(InputError) as refused:
        load_inputs([str(path)])
    return str(refused.value).splitlines()


def test_a_folder_is_read_without_the_files_of_other_tools(tmp_path: Path) -> None:
    objects = {"web.yaml": json.dumps(pod("web")), "zone/n1.json": json.dumps(node("n1"))}
    write(tmp_path, {name: text for name, (text, _) in FOREIGN.items()} | UNKNOWN | objects)
    workload = load_inputs([str(tmp_path)])
    names = {content["metadata"]["name"] for content in workload.initial}
    assert {"web", "n1"} <= names
    assert workload.ignored_kinds == {}
    count = len(FOREIGN) + len(UNKNOWN)
    first, *more = workload.notes
    assert first.startswith(f"{tmp_path}: passed over {count} files without objects: Chart.yaml, ")
    assert first.endswith(f" and {count - 8} more")
    assert more == [
        f"{tmp_path}/{path} is not applied, its files are read as they are; or: "
        f"kubectl kustomize {(tmp_path / path).parent} | bayplan … -"
        for path in ("kustomization.yaml", "overlays/kustomization.yml")
    ]


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_of_another_tool_that_is_named_is_refused_with_what_it_is(
    tmp_path: Path, name: str
) -> None:
    text, description = FOREIGN[name]
    write(tmp_path, {name: text})
    [line] = refusal(tmp_path / name)
    assert line.startswith(f"{tmp_path}/{name}, document 1: found {description}")


def test_a_folder_of_nothing_but_other_files_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"values.yaml": "a: 1\n"})
    assert refusal(tmp_path) == [
        f"{tmp_path}: found no objects of Kubernetes in its files",
        f"{tmp_path}: passed over 1 file without objects: values.yaml",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("kind: Pod\nmetadata: {name: p}\n", "apiVersion", id="no apiVersion"),
        pytest.param("apiVersion: v1\nmetadata: {name: p}\n", "kind", id="no kind"),
        pytest.param("apiVersion: v1\nkind: Pod\nspec: {}\n", "metadata", id="no metadata"),
        pytest.param("apiVersion: v1\nkind: Pod\n  x: 1\n", "line 3", id="not YAML"),
        pytest.param('{"kind": "PodList", "items": 5}', "items", id="a list without items"),
    ],
)
def test_a_mistake_in_an_object_of_a_folder_is_still_reported(
    tmp_path: Path, text: str, message: str
) -> None:
    write(tmp_path, {"values.yaml": "a: 1\n", "p.yaml": text})
    lines = refusal(tmp_path)
    assert lines[0].startswith(f"{tmp_path}/p.yaml, document 1")
    assert message in lines[0]
    assert lines[-1] == f"{tmp_path}: passed over 1 file without objects: values.yaml"


TEMPLATES = {
    "a value": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Release.Name }}-web\n",
    "a condition first": "{{- if .Values.on }}\napiVersion: v1\nkind: Pod\n{{- end }}\n",
    "a block": "apiVersion: v1\nkind: Pod\nmetadata:\n  labels:\n"
    '    {{- include "web.labels" . | nindent 4 }}\n  name: web\n',
    "a quoted value": 'apiVersion: v1\nkind: Pod\nmetadata: {name: "{{ .Release.Name }}"}\n',
    "a quoted quantity": "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n"
    '  - {name: c, resources: {requests: {cpu: "{{ .Values.cpu }}"}}}\n',
}


@pytest.mark.parametrize("text", TEMPLATES.values(), ids=TEMPLATES.keys())
def test_an_unrendered_template_says_how_to_render_it(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"pod.yaml": text})
    [line] = refusal(tmp_path / "pod.yaml")
    assert line.startswith(f"{tmp_path}/pod.yaml, document 1")
    assert line.endswith(
        ": found a Helm template that is not rendered; render it: helm template CHART | bayplan … -"
    )


def test_a_template_after_an_object_in_brackets_says_so_too(tmp_path: Path) -> None:
    node = "{apiVersion: v1, kind: Node, metadata: {name: n1}}\n---\n"
    write(tmp_path, {"pod.yaml": node + TEMPLATES["a value"]})
    [line] = refusal(tmp_path / "pod.yaml")
    assert line.startswith(f"{tmp_path}/pod.yaml, document 2, line 6: found a Helm template")


def test_the_templates_of_a_chart_in_a_folder_are_one_line(tmp_path: Path) -> None:
    templates = {f"web/templates/{n}.yaml": text for n, text in enumerate(TEMPLATES.values())}
    chart = {"web/Chart.yaml": "apiVersion: v2\nname: web\n", "web/values.yaml": "a: 1\n"}
    write(tmp_path, {**chart, **dict(list(templates.items())[:3])})
    first, *_ = refusal(tmp_path)
    assert first == (
        f"{tmp_path}/web/templates: found a Helm template that is not rendered; "
        f"render it: helm template {tmp_path}/web | bayplan … -"
    )


def test_braces_elsewhere_do_not_explain_an_error(tmp_path: Path) -> None:
    alert = "data:\n  alert: '{{ $labels.pod }} is down'\n"
    write(tmp_path, {"a.yaml": f"{alert}\n\n\n\n\n\nspec:\n\tx: 1\n"})
    [line] = refusal(tmp_path / "a.yaml")
    assert "tabs" in line
    write(tmp_path, {"a.json": '{"kind": "List", "items": [{"data": "{{ $labels.pod }}"}, {'})
    [line] = refusal(tmp_path / "a.json")
    assert "is it complete?" in line
    (tmp_path / "a.json").unlink()
    config_map = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\n{alert}"
    write(tmp_path, {"a.yaml": config_map})
    assert load_inputs([str(tmp_path)]).ignored_kinds == {"v1 ConfigMap": 1}


def test_a_path_in_a_command_is_quoted_and_no_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"-rf $(x)/Chart.yaml": "apiVersion: v2\nname: web\n"})
    [line] = refusal(Path("-rf $(x)/Chart.yaml"))
    assert line.endswith("helm template './-rf $(x)' | bayplan … -")
