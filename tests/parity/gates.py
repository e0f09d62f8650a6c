"""feature-gates.json: stage, default and lock of each feature gate that the scheduler has."""

from typing import Any

from bayplan.config.feature_gates import GATES
from tests.parity.tally import Sheet

Json = dict[str, Any]

SUITE = "feature-gates"


def compare_gates(recorded: Json, sheet: Sheet) -> None:
    """Compare the gates that exist here; the record has those of all components."""
    for name, gate in GATES.items():
        expected: Json = recorded.get(name) or {}
        sheet.compare("stage", str(expected.get("stage")).lower(), gate.stage, name)
        sheet.compare("default", expected.get("default"), gate.default, name)
        sheet.compare("locked", bool(expected.get("locked")), gate.is_locked, name)
