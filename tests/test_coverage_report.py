"""The parts of the code with a coverage floor, and the report about them."""

from typing import Any

from tests.coverage_report import below, lines, parts


def summary(covered_count: int, line_count: int) -> dict[str, Any]:
    return {"summary": {"covered_lines": covered_count, "num_statements": line_count}}


def report(signed_count: int, clock_count: int = 10) -> dict[str, Any]:
    functions = {"NodePorts.sign_pod": summary(signed_count, 20), "NodePorts.filter": summary(0, 9)}
    return {
        "files": {
            "src/bayplan/engine/reuse/cache.py": {**summary(99, 100), "functions": {}},
            "src/bayplan/plugins/node_ports.py": {**summary(60, 99), "functions": functions},
            "src/bayplan/clock.py": {**summary(clock_count, 20), "functions": {}},
        },
        "totals": {
            "percent_covered": 91.25,
            "covered_lines": 1000,
            "num_statements": 1100,
            "covered_branches": 30,
            "num_branches": 40,
        },
    }


def test_every_module_has_a_floor_and_that_of_reuse_and_sign_pod_is_higher() -> None:
    assert {part.name: part.floor_percent for part in parts(report(20))} == {
        "engine/reuse/cache.py": 95,
        "plugins/node_ports.py": 50,
        "plugins/node_ports.py NodePorts.sign_pod": 95,
        "clock.py": 50,
    }


def test_a_module_without_tests_is_named() -> None:
    assert [part.name for part in below(report(20, clock_count=9))] == ["clock.py"]


def test_a_part_below_the_floor_is_named() -> None:
    assert [part.name for part in below(report(18))] == ["plugins/node_ports.py NodePorts.sign_pod"]
    assert below(report(19)) == []
    message = list(lines(report(18)))
    assert message[0] == "below 95 % of lines: plugins/node_ports.py NodePorts.sign_pod, 90.0 %"
    assert message[-1] == "coverage 91.2 %: 1,000 of 1,100 lines, 30 of 40 branches"


def test_the_total_names_the_measured_code() -> None:
    *_, total = lines(report(20), "the plugins")
    assert total.startswith("coverage of the plugins 91.2 %: ")


def test_a_file_that_no_test_imported_is_named() -> None:
    empty = {**report(20), "files": {}}
    assert next(iter(lines(empty))) == "not measured: engine/reuse/cache.py"
