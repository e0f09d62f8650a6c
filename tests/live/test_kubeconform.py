"""Every object of the chart is valid for kubeconform, with the schemas of the real API server.

kubeconform refuses unknown fields, missing fields, and values of a wrong type. Its schemas are made
from the OpenAPI document of kube-apiserver. The kinds of the Prometheus operator have no schema
there; they are skipped by name. `make test-live` builds kubeconform.
"""

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.checkers import KUBECONFORM
from tests.deploy.rendering import CHART, CRDS, DEPLOY, KUBERNETES, rendered
from tests.live.control_plane import LOOPBACK, ControlPlane, token

#: Kinds of the Prometheus operator.
WITHOUT_SCHEMA = ("PodMonitor", "PrometheusRule", "ServiceMonitor")
#: All parts of the chart except the two kinds of monitors, of which only one can be enabled.
PARTS = (
    "networkPolicy.enabled",
    "podDisruptionBudget.enabled",
    "prometheusRule.enabled",
    "grafanaDashboard.enabled",
    "webhook.enabled",
)
SETS = sorted((CHART / "ci").glob("*-values.yaml"))
_KINDS = "x-kubernetes-group-version-kind"


@pytest.fixture(name="schemas", scope="module")
def _schemas(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one schema for each kind of the API server."""
    request = urllib.request.Request(
        f"https://{LOOPBACK}:{control_plane.port}/openapi/v2",
        headers={"Authorization": f"Bearer {token('admin')}"},
    )
    context = control_plane.client_ssl_context()
    with urllib.request.urlopen(request, timeout=60, context=context) as answer:
        definitions: dict[str, Any] = json.load(answer)["definitions"]
    folder = tmp_path_factory.mktemp("schemas")
    strict = {name: strictly(schema) for name, schema in definitions.items()}
    for schema in strict.values():
        for kind in schema.get(_KINDS, ()):
            names = reachable(schema, strict)
            whole = {**schema, "definitions": {name: strict[name] for name in names}}
            group = kind["group"].partition(".")[0]
            parts = [kind["kind"], *([group] if group else []), kind["version"]]
            name = "-".join(parts).lower()
            (folder / f"{name}.json").write_text(json.dumps(whole))
    return folder


def strictly(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without unknown fields; a field without a value may be null."""
    if schema.get("format") == "int-or-string":
        return {"type": ["string", "integer"]}
    changed = dict(schema)
    if "properties" in schema:
        changed["properties"] = {
            name: strictly(part) for name, part in schema["properties"].items()
        }
        changed.setdefault("additionalProperties", False)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            changed[key] = strictly(schema[key])
    return changed


def references(schema: Any) -> Iterator[str]:
    """The names of all referenced definitions."""
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].rpartition("/")[2]
        for part in schema.values():
            yield from references(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from references(part)


def reachable(schema: dict[str, Any], definitions: dict[str, Any]) -> set[str]:
    """Names of all definitions that a schema needs."""
    names: set[str] = set()
    waiting = [*references(schema)]
    while waiting:
        name = waiting.pop()
        if name not in names:
            names.add(name)
            waiting += references(definitions[name])
    return names


def problems(schemas: Path, text: str) -> tuple[list[str], dict[str, int]]:
    """(problems that kubeconform reports, its counts)."""
    folder = KUBECONFORM.folder()
    if folder is None:
        pytest.skip("no kubeconform: `make test-live` builds it, or set KUBECONFORM_ASSETS")
    location = f"{schemas}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    command = [folder / "kubeconform", "-strict", "-summary", "-output", "json"]
    command += ["-schema-location", location, "-kubernetes-version", KUBERNETES]
    command += ["-skip", ",".join(WITHOUT_SCHEMA), "-"]
    completed = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    answer = json.loads(completed.stdout)
    lines = [f"{one['kind']} {one['name']}: {one['msg']}" for one in answer["resources"] or ()]
    return lines, answer["summary"]


@pytest.mark.parametrize("values", SETS, ids=lambda path: path.stem)
def test_the_objects_of_a_set_of_values_are_valid(schemas: Path, values: Path) -> None:
    lines, counts = problems(schemas, rendered("--values", str(values)))
    assert not lines
    assert counts["valid"] > 5
    assert counts["invalid"] == counts["errors"] == 0


@pytest.mark.parametrize("monitor", ["podMonitor", "serviceMonitor"])
def test_the_objects_of_all_parts_of_the_chart_are_valid(schemas: Path, monitor: str) -> None:
    parts = ",".join(f"{part}=true" for part in (*PARTS, f"{monitor}.enabled"))
    lines, counts = problems(schemas, rendered("--set", parts))
    assert not lines
    assert counts["invalid"] == counts["errors"] == 0
    assert counts["skipped"] == 2


@pytest.mark.parametrize("folder", [DEPLOY / "manifests", CRDS], ids=lambda path: path.name)
def test_the_plain_manifests_are_valid(schemas: Path, folder: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.yaml"))]
    lines, counts = problems(schemas, "\n---\n".join(texts))
    assert not lines
    assert counts["valid"] >= 2


@pytest.mark.parametrize(
    ("before", "after"),
    [("replicas: 2", "replicas: two"), ("replicas: 2", "replica: 2"), ("port: ", "prt: ")],
)
def test_a_mistake_is_reported(schemas: Path, before: str, after: str) -> None:
    text = (DEPLOY / "manifests" / "20-bayplan.yaml").read_text(encoding="utf-8")
    assert before in text
    assert problems(schemas, text.replace(before, after))[0]
