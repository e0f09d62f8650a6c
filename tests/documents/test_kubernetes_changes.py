"""The pages of what versions do differently and of feature gates are those of the tables."""

import pytest

from bayplan.config.feature_gates import gates_of
from bayplan.config.gate_effects import EFFECTS, NOT_BUILT
from bayplan.config.kubernetes_versions import KubernetesVersion
from tests.documents.gate_tests import TESTS
from tests.documents.kubernetes_changes import GATES_PAGE, PAGE, ROOT, gates_page, page


def test_the_pages_are_current() -> None:
    """`python -m tests.documents.kubernetes_changes` writes them again."""
    assert PAGE.read_text(encoding="utf-8") == page()
    assert GATES_PAGE.read_text(encoding="utf-8") == gates_page()


def test_every_gate_has_an_effect_and_a_test_or_is_not_built() -> None:
    gates = {name for version in KubernetesVersion for name in gates_of(version)}
    assert set(EFFECTS) == gates
    assert set(TESTS) | {name for name, _ in NOT_BUILT} == gates


@pytest.mark.parametrize("reference", sorted(set(TESTS.values())))
def test_the_test_of_a_gate_exists(reference: str) -> None:
    file, _, name = reference.partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert f"def {name}(" in text if name else text
