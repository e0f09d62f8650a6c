"""Names are found whatever their case, where a type knows them."""

from typing import Any

import pytest

from bayplan.api.objects import Pod
from bayplan.perf.field_names import with_field_names
from bayplan.perf.schema import CreateNodes


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        pytest.param(CreateNodes, {"CountParam": "$n"}, {"countParam": "$n"}, id="a struct"),
        pytest.param(
            Pod,
            {"spec": {"topologySpreadConstraints": [{"NodeTaintsPolicy": "Honor"}]}},
            {"spec": {"topologySpreadConstraints": [{"nodeTaintsPolicy": "Honor"}]}},
            id="a struct in a list that may be absent",
        ),
        pytest.param(
            Pod,
            {"metadata": {"labels": {"Name": "a", "name": "b"}}},
            {"metadata": {"labels": {"Name": "a", "name": "b"}}},
            id="what is no field's name stays",
        ),
        pytest.param(
            Pod, {"Spec": {}, "spec": {"a": 1}}, {"Spec": {}, "spec": {"a": 1}}, id="both"
        ),
        pytest.param(Pod, {"other": {"Deep": 1}}, {"other": {"Deep": 1}}, id="an unknown field"),
        pytest.param(Pod, {"spec": None}, {"spec": None}, id="a null"),
    ],
)
def test_members_get_the_names_their_type_knows(kind: Any, value: Any, found: Any) -> None:
    assert with_field_names(value, kind) == found
