"""The reference pages are complete."""

import re

import pytest

import bayplan
from bayplan import testing
from bayplan.cli.entry import cli
from tests.deploy.monitoring import families
from tests.site.reference import pages


@pytest.fixture(scope="module")
def reference() -> dict[str, str]:
    return pages()


def test_every_command_and_option_is_listed(reference: dict[str, str]) -> None:
    page = reference["reference/command-line.md"]
    headings = re.findall(r"^##+ (.*)$", page, re.MULTILINE)
    assert {f"bayplan {name}" for name in cli.entries} <= {*headings}
    assert "bayplan config rbac" in headings
    assert "| `--out DIR` | Folder for the run" in page
    assert "[default: 10259; 0&lt;=x&lt;=65535]" in page
    assert "Sentinel" not in page


def test_every_field_of_the_configuration_has_a_row(reference: dict[str, str]) -> None:
    page = reference["reference/configuration.md"]
    assert "| `parallelism` | integer | `16` |" in page
    links = {*re.findall(r"\]\(#([\w-]+)\)", page)}
    headings = {name.lower() for name in re.findall(r"^## (\w+)$", page, re.MULTILINE)}
    assert links
    assert links <= headings


def test_every_exported_name_with_a_docstring_is_documented(reference: dict[str, str]) -> None:
    page = reference["reference/plugin-api.md"]
    names = {each.rpartition(".")[2] for each in re.findall(r"^::: (\S+)$", page, re.MULTILINE)}
    assert {"FilterPlugin", "Caching", "NodeView", "Handle", "Status"} <= names
    assert names <= {*bayplan.__all__}
    own = re.findall(r"^::: (\S+)$", reference["reference/testing-api.md"], re.MULTILINE)
    assert {name.rpartition(".")[2] for name in own} == {*testing.__all__}


def test_every_metric_has_a_row_with_its_labels(reference: dict[str, str]) -> None:
    page = reference["reference/metrics.md"]
    assert page.count("\n| `") == len(families())
    assert (
        "| `bayplan_plugin_blocking_seconds_total` | counter | `plugin`, `extension_point` |"
        in page
    )


def test_every_plugin_of_the_default_profile_has_a_section(reference: dict[str, str]) -> None:
    page = reference["reference/plugins.md"]
    for name in ("NodeResourcesFit", "DefaultPreemption", "TopologyScorer"):
        assert f"\n## {name}\n" in page


def test_the_json_answers_have_their_fields(reference: dict[str, str]) -> None:
    page = reference["reference/json.md"]
    for field in ("placements", "unschedulable", "digest", "counts"):
        assert f"| `{field}` |" in page
    assert "| `bayplan fit -o json` | [Fit](#fit) |" in page
    links = {*re.findall(r"\]\(#([\w-]+)\)", page)}
    assert links <= {name.lower() for name in re.findall(r"^## (\w+)$", page, re.MULTILINE)}
