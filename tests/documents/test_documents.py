"""The code blocks, configurations and commands of the documents work as written."""

import ast
import os
import re
from enum import Enum
from pathlib import Path

import pytest

from bayplan.config import ConfigError
from bayplan.framework.events import ActionType, EventResource
from bayplan.framework.status import Code
from bayplan.state.change_log import Facet
from tests.documents.reading import DOCUMENTS, ROOT, commands_of, excerpts_of, make_targets
from tests.documents.sandbox import Sandbox
from tests.documents.trials import NOT_RUN, SCRIPTS, TRIALS, program_of, ways_of


@pytest.mark.parametrize("path", DOCUMENTS)
def test_a_document_works_as_written(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its beginning to its end, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    # Comparisons of two small runs: processes of their own would take longer to start.
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    sandbox = Sandbox(tmp_path)
    excerpt = excerpts_of((ROOT / path).read_text(encoding="utf-8"))
    for each in excerpt:
        sandbox.try_out(each)
    here = [one.command for one in commands_of(path) if ways_of(one)[0] in ("folder", "server")]
    assert [command for command in here if command not in sandbox.ran] == []


@pytest.mark.parametrize(
    "block",
    [
        "    bayplan fit -f missing.yaml cluster.yaml\n",
        "    bayplan plugins --no-such-option\n",
        "    kubectl apply -f deploy/missing\n",
        "```console\n$ bayplan plugins new Mine\nsomething else\n```\n",
        "```yaml\npodGroups: {reserveAfter: 600}\n```\n",
        "```yaml\nspec: {schedulerNam: bayplan}\n```\n",
        "```yaml\ngroups: [{rules: [{expr: bayplan_headroom_podz > 1}]}]\n```\n",
        "```yaml\nkind: Unknown\n```\n",
    ],
)
def test_a_block_that_does_not_work_fails(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (excerpt,) = excerpts_of(f"Look:\n\n{block}")
    with pytest.raises((AssertionError, ConfigError)):
        Sandbox(tmp_path).try_out(excerpt)


@pytest.mark.parametrize("path", DOCUMENTS)
def test_each_command_of_a_document_is_tried_in_one_way(path: str) -> None:
    """A command that no test runs has its reason in `trials.NOT_RUN`."""
    ways = {f"line {one.line}: {one.text}": ways_of(one) for one in commands_of(path)}
    assert {text: found for text, found in ways.items() if len(found) != 1} == {}


def test_each_trial_is_of_a_command_in_a_document() -> None:
    commands = [one for path in DOCUMENTS for one in commands_of(path)]
    assert {*TRIALS, *SCRIPTS} - {one.command for one in commands} == set()
    assert NOT_RUN.keys() - {program_of(one) for one in commands} == set()


def test_a_command_of_an_unknown_program_and_a_placeholder_are_tried_in_no_way() -> None:
    for text in ("terraform apply", "bayplan why default/FILE", "bayplan fit -f MINE.csv"):
        (excerpt,) = excerpts_of(f"Run:\n\n    {text}\n")
        assert ways_of(excerpt) == [], text


@pytest.mark.parametrize("path", DOCUMENTS)
def test_make_targets_in_documents_exist(path: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))
    assert set(make_targets((ROOT / path).read_text(encoding="utf-8"))) <= targets


def test_the_start_page_links_every_document() -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = [path.removeprefix("docs/") for path in DOCUMENTS if path.startswith("docs/")]
    assert [page for page in pages if page != "index.md" and f"]({page})" not in text] == []


def test_all_three_kinds_of_plugins_are_documented() -> None:
    """Copying is none of them: by the configuration, by a source, by holding another."""
    text = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    for words in ("**In the configuration**", "**In a plugin of your own**", "**In code**"):
        assert words in text


@pytest.mark.parametrize("values", [Code, Facet, EventResource])
def test_the_guide_for_plugins_lists_every_code_facet_and_resource(values: type[Enum]) -> None:
    text = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    assert not [one.name for one in values if f"`{values.__name__}.{one.name}`" not in text]


def test_the_guide_for_plugins_lists_every_action() -> None:
    text = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    assert not [one.name for one in ActionType if f"`{one.name}`" not in text]


def test_the_architecture_names_every_module_of_the_engine() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    engine = ROOT / "src" / "bayplan" / "engine"
    modules = [one for one in engine.rglob("*.py") if one.name != "__init__.py"]
    names = [one.relative_to(engine).as_posix() for one in modules]
    packages = [f"{one.parent.name}/" for one in engine.glob("*/__init__.py")]
    assert not [name for name in (*names, *packages) if f"`engine/{name}`" not in text]


def test_modules_that_the_architecture_names_exist() -> None:
    """A module is named with its folders, or by its file alone where the folder is clear."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)`", text))
    files = [
        f"/{one.as_posix()}" for folder in ("src", "tests") for one in (ROOT / folder).rglob("*.py")
    ]
    assert len(names) > 40
    assert not {name for name in names if not any(file.endswith(f"/{name}") for file in files)}


def test_methods_that_the_architecture_names_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([A-Z]\w+\.\w+)`", text))
    classes = [
        node
        for file in (ROOT / "src" / "bayplan").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    methods = {
        f"{c.name}.{one.name}" for c in classes for one in c.body if isinstance(one, functions)
    }
    assert len(named) > 10
    assert not named - methods


def test_modules_that_the_glossary_names_exist() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    cells = [row.split("|")[3] for row in text.splitlines() if row.count("|") == 4]
    names = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    assert len(names) > 10
    source = ROOT / "src" / "bayplan"
    missing = {n for n in names if not (source / n).is_dir() and not (source / f"{n}.py").is_file()}
    assert not missing
