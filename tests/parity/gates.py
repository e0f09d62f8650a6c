"""feature-gates.json: stage, default and lock of each feature gate that the scheduler accepts."""

from typing import Any

from bayplan.config.feature_gates import STAGE_SWITCHES, every_gate_of
from tests.parity.tally import Sheet

Json = dict[str, Any]

SUITE = "feature-gates"


def compare_gates(recorded: Json, sheet: Sheet) -> None:
    gates = every_gate_of(sheet.kubernetes)
    unknown = sorted(set(recorded) - set(gates) - set(STAGE_SWITCHES))
    sheet.compare("names", [], unknown, "that the table lacks")
    for name, gate in gates.items():
        expected: Json = recorded.get(name) or {}
        sheet.compare("stage", str(expected.get("stage")).lower(), gate.stage, name)
        sheet.compare("default", expected.get("default"), gate.default, name)
        sheet.compare("locked", bool(expected.get("locked")), gate.is_locked, name)
