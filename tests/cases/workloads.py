"""Workloads and their pods as a server has stored them, and a simulation of a few objects."""

import json
from pathlib import Path
from typing import Any

from tests.cli.command_line import answer, write_objects
from tests.kit.manifests import Content, container, pod

TERMINATING: Content = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def workload(
    kind: str, name: str, spec: Content | None = None, status: Content | None = None, **meta: Any
) -> Content:
    labels = {"app": name}
    content: Content = {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **meta},
        "spec": {
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container("1")]},
            },
            **(spec or {}),
        },
    }
    if kind == "Job":
        content["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    else:
        content["spec"]["selector"] = {"matchLabels": labels}
    return {**content, "status": status} if status else content


def owned(owner: Content, name: str, **fields: Any) -> Content:
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    labels = {"app": owner["metadata"]["name"]}
    return pod(
        name,
        labels=labels,
        cpu="1",
        ownerReferences=[{**reference, "controller": True}],
        **fields,
    )


def simulated(path: Path, *objects: Content) -> dict[str, Any]:
    return json.loads(answer("simulate", write_objects(path / "in.yaml", *objects), "-o", "json"))
