"""deploy/crds: the API server stores every field of groups that Bayplan reads or writes."""

from typing import Any

import pytest
import yaml

from bayplan.api.pod_groups import (
    KINDS,
    UPSTREAM_GROUP,
    Condition,
    CoschedulingSpec,
    PodGroupStatus,
    api_group_of,
)
from tests.deploy.rendering import DEPLOY

FILES = sorted((DEPLOY / "crds").glob("*.yaml"))
every_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def definition(file: Any) -> dict[str, Any]:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def schema(file: Any) -> dict[str, Any]:
    (version,) = definition(file)["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]["properties"]


def fields(struct: Any) -> set[str]:
    return set(struct.__struct_encode_fields__)


def test_every_custom_kind_has_a_definition() -> None:
    results: set[str] = set()
    for file in FILES:
        spec = definition(file)["spec"]
        (version,) = spec["versions"]
        results.add(f"{spec['group']}/{version['name']} {spec['names']['kind']}")
    assert results == {kind for kind in KINDS if api_group_of(kind) != UPSTREAM_GROUP}


@every_file
def test_a_definition_has_the_name_that_the_api_server_requires(file: Any) -> None:
    content = definition(file)
    spec = content["spec"]
    assert content["metadata"]["name"] == f"{spec['names']['plural']}.{spec['group']}"
    assert file.stem == f"{spec['group']}_{spec['names']['plural']}"


@every_file
def test_no_field_that_bayplan_reads_or_writes_is_pruned(file: Any) -> None:
    properties = schema(file)
    assert set(properties["spec"]["properties"]) == fields(CoschedulingSpec)
    status = properties["status"]["properties"]
    # Only Kubernetes' own kind has claims that members share.
    assert set(status) == fields(PodGroupStatus) - {"resourceClaimStatuses"}
    assert set(status["conditions"]["items"]["properties"]) == fields(Condition)


@every_file
def test_the_status_is_a_subresource_with_printer_columns(file: Any) -> None:
    (version,) = definition(file)["spec"]["versions"]
    assert version["subresources"] == {"status": {}}
    columns = [column["name"] for column in version["additionalPrinterColumns"]]
    assert columns == ["Phase", "MinMember", "Running", "Succeeded", "Failed", "Age"]


@every_file
def test_the_columns_show_the_state_of_a_group(file: Any) -> None:
    """The row that `kubectl get podgroups` prints for a running group of three pods."""
    status = {"phase": "Running", "running": 3, "succeeded": 0, "failed": 0}
    group: Any = {"spec": {"minMember": 3}, "status": status}
    group["metadata"] = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    (version,) = definition(file)["spec"]["versions"]
    row: list[Any] = []
    for column in version["additionalPrinterColumns"]:
        value = group
        for part in column["jsonPath"].strip(".").split("."):
            value = value[part]
        row.append(value)
    assert row == ["Running", 3, 3, 0, 0, "2026-01-01T00:00:00Z"]


@every_file
def test_a_negative_minimum_is_refused(file: Any) -> None:
    assert schema(file)["spec"]["properties"]["minMember"]["minimum"] >= 0
