"""Flags are parsed as kube-scheduler parses its flags."""

from typing import Any

import click
import pytest
from click.testing import CliRunner

from bayplan.cli.pflag import GoBool, PflagCommand, feature_gates_option


def parsed(*arguments: str) -> dict[str, Any] | str:
    """The values of the flags, or the error message."""
    values: list[dict[str, Any]] = []

    @click.command(cls=PflagCommand)
    @click.option("--leader-elect", type=GoBool())
    @click.option("--config")
    @click.option("-v", "--v", "verbosity")
    @click.argument("positional", nargs=-1)
    @feature_gates_option()
    def command(**parameters: Any) -> None:
        values.append(parameters)

    result = CliRunner().invoke(command, arguments)
    return values[0] if result.exit_code == 0 else result.output


@pytest.mark.parametrize(
    ("arguments", "leader_elect", "positional"),
    [
        ([], None, ()),
        (["--leader-elect"], True, ()),
        (["--leader-elect", "--config", "c"], True, ()),
        (["--leader-elect", "false"], True, ("false",)),
        (["--leader-elect=false"], False, ()),
        (["--leader_elect=F"], False, ()),
        (["--leader-elect=0", "--leader-elect"], True, ()),
        (["--config", "--leader-elect"], None, ()),
        (["--", "--leader-elect"], None, ("--leader-elect",)),
    ],
)
def test_a_boolean_takes_its_value_only_after_an_equals_sign(
    arguments: list[str], leader_elect: bool | None, positional: tuple[str, ...]
) -> None:
    values = parsed(*arguments)
    assert isinstance(values, dict)
    assert (values["leader_elect"], values["positional"]) == (leader_elect, positional)


@pytest.mark.parametrize("value", ["yes", "on", "", "TRue"])
def test_a_boolean_has_gos_spellings(value: str) -> None:
    complaint = parsed(f"--leader-elect={value}")
    assert "wanted true or false" in complaint


@pytest.mark.parametrize("form", [["-v", "4"], ["-v4"], ["--v=4"], ["--v", "4"]])
def test_the_value_of_a_short_or_long_flag_has_several_forms(form: list[str]) -> None:
    values = parsed(*form)
    assert isinstance(values, dict)
    assert values["verbosity"] == "4"


def test_repeated_feature_gates_are_merged() -> None:
    values = parsed("--feature-gates", "A=true,B=false", "--feature-gates=C=true")
    assert isinstance(values, dict)
    assert values["feature_gates"] == "A=true,B=false,C=true"


def test_a_list_that_names_the_component_for_only_some_gates_is_refused() -> None:
    values = parsed("--feature-gates=kube:A=true", "--feature-gates=kube:B=true")
    assert isinstance(values, dict)
    assert values["feature_gates"] == "kube:A=true,kube:B=true"
    assert "kube: for all gates or for none" in parsed("--feature-gates=kube:A=true,B=true")
