"""The options that name admission plugins, as a user types them."""

from pathlib import Path

from bayplan.cli.admission import admission_of
from tests.cli.command_line import answer, refusal

LIMITED = Path(__file__).parents[1] / "cases" / "11-podtruth.yaml"


def test_without_the_limit_ranger_pods_get_no_default_requests() -> None:
    assert answer("simulate", LIMITED).startswith("2 of 3 pods placed")
    without = answer("simulate", LIMITED, "--disable-admission-plugins", "LimitRanger")
    assert without.startswith("3 of 3 pods placed")


def test_a_misspelt_plugin_is_refused_with_the_nearest_name() -> None:
    lines = refusal("simulate", LIMITED, "--enable-admission-plugins", "LimitRange")
    assert 'plugin "LimitRange" is not simulated; did you mean "LimitRanger"?' in " ".join(lines)


def test_options_that_name_no_plugin_change_nothing() -> None:
    assert admission_of("", "") is None
