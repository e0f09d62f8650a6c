"""`bayplan serve-extender`: its command line."""

from pathlib import Path

import pytest
import yaml

from tests.cli.command_line import bayplan
from tests.scenarios.world import Setup, config_dict


def test_with_several_profiles_one_must_be_named(tmp_path: Path) -> None:
    config = config_dict(Setup())
    config["profiles"].append({**config["profiles"][0], "schedulerName": "other"})
    file = tmp_path / "c.yaml"
    file.write_text(yaml.safe_dump(config))
    for options, actual in (((), "nothing"), (("--profile", "x"), "x")):
        result = bayplan("serve-extender", "--config", file, *options)
        assert result.exit_code == 2
        assert f"--profile: found {actual}, wanted one of bayplan, other" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tls-cert-file", "a"), "wanted both or none"),
        (("--client-ca-file", "a"), "wanted --tls-cert-file, too"),
        (("--tls-cert-file", "no.crt", "--tls-private-key-file", "no.key"), "no.crt"),
        (("--bind-address", "0.0.0.0"), "--bind-address 0.0.0.0: everybody could send requests"),
        (
            *(("--bind-address", "::", "--tls-cert-file", "a", "--tls-private-key-file", "b"),),
            "and --client-ca-file, or --insecure",
        ),
        (("--bind-address", "0.0.0.0", "--insecure", "no.yaml"), "no.yaml"),
        (("--config", "no.yaml"), "no.yaml: cannot be read"),
        (("no.yaml",), "no.yaml"),
    ],
)
def test_problems_are_reported_before_the_server_starts(
    options: tuple[str, ...], message: str
) -> None:
    result = bayplan("serve-extender", *options)
    assert result.exit_code == 2
    assert message in result.stderr
