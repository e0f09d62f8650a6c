"""Every operation of upstream is either supported or listed as unsupported."""

import pytest
from msgspec import convert, inspect

from bayplan.perf.schema import NOT_SUPPORTED, OPERATIONS

#: scheduler_perf.go, v1.37.
UPSTREAM = {
    "allocResourceClaims",
    "barrier",
    "churn",
    "createAny",
    "createNamespaces",
    "createNodes",
    "createPodGroups",
    "createPodSets",
    "createPods",
    "createResourceClaims",
    "deletePods",
    "sleep",
    "startCollectingMetrics",
    "startCollectingProfile",
    "stopCollectingMetrics",
    "stopCollectingProfile",
    "updateAny",
}


def test_all_opcodes_are_listed() -> None:
    assert OPERATIONS.keys() | NOT_SUPPORTED == UPSTREAM
    assert not OPERATIONS.keys() & NOT_SUPPORTED


@pytest.mark.parametrize("opcode", OPERATIONS)
def test_an_operation_is_listed_under_its_opcode(opcode: str) -> None:
    kind = inspect.type_info(OPERATIONS[opcode])
    assert isinstance(kind, inspect.StructType)
    (field,) = [one for one in kind.fields if one.name == "opcode"]
    assert convert(opcode, field.type.values[0].__class__) == opcode  # type: ignore[attr-defined]
    assert field.type.values == (opcode,)  # type: ignore[attr-defined]
