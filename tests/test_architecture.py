"""What no linter checks: the size of things, their names, their tests.

Each limit has a list of exceptions that may only shrink. An entry holds today's value: a place that
grows beyond it fails, and so does one that got better, until its entry is lowered or removed.
The layers themselves are import-linter's, in pyproject.toml.
"""

import ast
import functools
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bayplan.framework.interface import SignPlugin
from bayplan.framework.profile import extension_points_of
from bayplan.plugins.registry import IN_TREE_PLUGINS

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "bayplan"
TESTS = ROOT / "tests"

# ---------------------------------------------------------------- exceptions, which may only shrink

# "path": lines
LONG_FILES: dict[str, int] = {}
# "path:Class.function": lines without the docstring
LONG_FUNCTIONS: dict[str, int] = {}
# "path:Class": methods
LARGE_CLASSES: dict[str, int] = {
    "state/nodes.py:NodeView": 49,  # an accessor for each column there is, and little else
    "state/nodes.py:NodeInfo": 23,  # upstream's names, each of them
}
# "path:Class.function": parameters without self
MANY_PARAMETERS: dict[str, int] = {}
# "path": where its tests are instead
TESTED_ELSEWHERE: dict[str, str] = {
    "framework/normalizer.py": "framework/test_arithmetic.py",
    "sim/assumed_classes.py": "sim/test_volumes.py",
    "sim/claim_binding.py": "sim/test_volumes.py",
    "sim/free_volumes.py": "sim/test_volumes.py",
    "sim/made_volumes.py": "sim/test_volumes.py",
    "sim/volume_controller.py": "sim/test_volumes.py",
}

# Names that say nothing about what is inside.
BANNED_NAMES = {"utils", "helpers", "common", "base", "misc", "manager"}

# Paths of one machine, and hosts of package registries: neither means anything to a reader.
MACHINE_PATH = re.compile(r"(?<![\w.-])/(?:(?:work|root)(?![\w.-])|(?:home|Users)/\w)")
REGISTRY_HOST = re.compile(
    r"pypi\.org|files\.pythonhosted\.|registry\.npmjs\.|registry\.yarnpkg\."
    r"|(?:index|static)\.crates\.|proxy\.golang\.|repo1?\.maven\.|deb\.debian\."
)
MARKDOWN_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Measure = Callable[[str, ast.Module], dict[str, int]]


# ---------------------------------------------------------------- reading the tree


def paths_under(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.py"))


def project_files() -> list[str]:
    """Every file that is, or could be, committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    names = set(listed.stdout.split("\0")) - {""}
    return sorted(name for name in names if (ROOT / name).is_file())


@functools.cache
def parsed(path: str) -> ast.Module:
    return ast.parse((SOURCE / path).read_text(encoding="utf-8"), filename=path)


def definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function | ast.ClassDef]]:
    """Classes and functions with their qualified names, nested ones included."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef):
            name = prefix + child.name
            yield name, child
            yield from definitions(child, name + ".")
        else:
            yield from definitions(child, prefix)


def functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    for name, node in definitions(tree):
        if isinstance(node, Function):
            yield name, node


def methods(owner: ast.ClassDef) -> list[Function]:
    return [child for child in owner.body if isinstance(child, Function)]


def last_name(expression: ast.expr) -> str:
    """`final` for both `final` and `typing.final`, `Plugin` for `interface.Plugin[T]`."""
    if isinstance(expression, ast.Subscript):
        return last_name(expression.value)
    if isinstance(expression, ast.Call):
        return last_name(expression.func)
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else ""


# ---------------------------------------------------------------- measuring


def file_lines(path: str, tree: ast.Module) -> dict[str, int]:
    return {path: (SOURCE / path).read_text(encoding="utf-8").count("\n")}


def function_lines(path: str, tree: ast.Module) -> dict[str, int]:
    return {f"{path}:{name}": lines_without_docstring(node) for name, node in functions(tree)}


def lines_without_docstring(node: Function) -> int:
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if ast.get_docstring(node, clean=False) is not None:
        docstring = node.body[0]
        lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return lines


def class_methods(path: str, tree: ast.Module) -> dict[str, int]:
    """A property with its setter, or a method with its overloads, counts once."""
    return {
        f"{path}:{name}": len({method.name for method in methods(node)})
        for name, node in definitions(tree)
        if isinstance(node, ast.ClassDef)
    }


def function_parameters(path: str, tree: ast.Module) -> dict[str, int]:
    bound = {
        method
        for _, owner in definitions(tree)
        if isinstance(owner, ast.ClassDef)
        for method in methods(owner)
        if "staticmethod" not in map(last_name, method.decorator_list)
    }
    return {f"{path}:{name}": parameters(node) - (node in bound) for name, node in functions(tree)}


def parameters(node: Function) -> int:
    given = node.args
    named = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)
    return named + (given.vararg is not None) + (given.kwarg is not None)


LIMITS: dict[str, tuple[Measure, int, dict[str, int]]] = {
    "lines in a file": (file_lines, 500, LONG_FILES),
    "lines in a function": (function_lines, 50, LONG_FUNCTIONS),
    "methods in a class": (class_methods, 20, LARGE_CLASSES),
    "parameters": (function_parameters, 6, MANY_PARAMETERS),
}


def complaints(measured: dict[str, int], limit: int, allowed: dict[str, int]) -> list[str]:
    found: list[str] = []
    for place, value in measured.items():
        bound = allowed.get(place, limit)
        if value > bound:
            found.append(f"{place}: {value}, at most {bound}")
        elif place in allowed and value <= limit:
            found.append(f"{place}: {value} keeps the limit of {limit}; remove its exception")
        elif place in allowed and value < bound:
            found.append(f"{place}: lower its exception from {bound} to {value}")
    return found


# ---------------------------------------------------------------- the tests

every_module = pytest.mark.parametrize("path", paths_under(SOURCE))
every_limit = pytest.mark.parametrize("limit", LIMITS)


@every_limit
@every_module
def test_sizes_stay_within_limits(path: str, limit: str) -> None:
    measure, bound, allowed = LIMITS[limit]
    assert not complaints(measure(path, parsed(path)), bound, allowed)


@every_limit
def test_every_exception_names_a_place_that_exists(limit: str) -> None:
    measure, _, allowed = LIMITS[limit]
    places = {place for path in paths_under(SOURCE) for place in measure(path, parsed(path))}
    assert not sorted(set(allowed) - places)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param(5, "remove its exception", id="the limit is kept again"),
        pytest.param(6, "lower its exception from 8 to 6", id="it shrank"),
        pytest.param(9, "at most 8", id="it grew"),
    ],
)
def test_an_exception_may_only_shrink(value: int, said: str) -> None:
    assert said in complaints({"a.py": value}, 5, {"a.py": 8})[0]


def test_what_keeps_the_limit_or_its_exception_is_not_named() -> None:
    assert not complaints({"a.py": 5, "b.py": 8}, 5, {"b.py": 8})


@every_module
def test_the_module_says_what_it_is(path: str) -> None:
    assert ast.get_docstring(parsed(path)), f"{path} has no docstring"


@every_module
def test_names_say_what_is_inside(path: str) -> None:
    parts = Path(path).with_suffix("").parts
    assert not BANNED_NAMES.intersection(part.strip("_") for part in parts)


@every_module
def test_no_import_hides_inside_a_function(path: str) -> None:
    hidden = [
        f"{path}:{inner.lineno} in {name}"
        for name, function in functions(parsed(path))
        for inner in ast.walk(function)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    ]
    assert not hidden


@every_module
def test_nothing_inside_comes_through_the_front_door(path: str) -> None:
    """`bayplan` re-exports from every layer: an import of its names would point up."""
    modules = {Path(name).parts[0].removesuffix(".py") for name in paths_under(SOURCE)}
    through = [
        f"{path}:{node.lineno} {alias.name}"
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "bayplan"
        for alias in node.names
        if alias.name not in modules
    ]
    assert not through


@every_module
def test_public_functions_say_what_they_return(path: str) -> None:
    silent = [
        f"{path}:{node.lineno} {name}"
        for name, node in functions(parsed(path))
        if node.returns is None and not any(part.startswith("_") for part in name.split("."))
    ]
    assert not silent


@pytest.mark.parametrize("path", [path for path in paths_under(SOURCE) if "plugins/" in path])
def test_every_plugin_is_final(path: str) -> None:
    """A plugin is changed by wrapping it, never by inheriting from it."""
    open_classes = [
        f"{path}:{node.lineno} {name}"
        for name, node in definitions(parsed(path))
        if isinstance(node, ast.ClassDef)
        and any(last_name(parent).endswith("Plugin") for parent in node.bases)
        and "final" not in map(last_name, node.decorator_list)
    ]
    assert not open_classes


#: What answers are kept and ranked by.
REUSE = {
    f"engine/{name}.py"
    for name in (
        "asking",
        "kept_answers",
        "known_pods",
        "known_rest",
        "likes",
        "out_of_date",
        "picks",
        "ranking",
        "reuse",
        "reusing",
        "row_totals",
        "shadow",
        "shares",
        "standing",
    )
}

READERS = {"TopologyScorer", "Invert", "Normalize", "Scale", "Steps", "Combine"}


def test_every_plugin_that_filters_or_scores_signs_pods() -> None:
    """Or it would be asked about every node in every cycle (KEP-5598)."""
    answering = {
        plugin
        for plugin in IN_TREE_PLUGINS
        if {"filter", "score"} & set(extension_points_of(plugin))
    }
    # What reads other plugins' scores follows from more than a pod and a row.
    answering = {plugin for plugin in answering if plugin.name not in READERS}
    unsigned = {plugin.name for plugin in answering if not issubclass(plugin, SignPlugin)}
    assert not unsigned
    tests = {p.__module__.removeprefix("bayplan.").replace(".", "/") for p in answering}
    untested = [
        path
        for path in sorted(tests)
        if ".sign_pod(" not in (TESTS / mirrored(f"{path}.py")).read_text(encoding="utf-8")
    ]
    assert not untested


@pytest.mark.parametrize("path", [path for path in paths_under(SOURCE) if path in REUSE])
def test_reuse_knows_neither_plugins_nor_groups(path: str) -> None:
    """A formula changes in its plugin's file only, and a group is a caller like any other."""
    imported = {
        node.module
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom) and node.module is not None
    }
    unknown = ("bayplan.plugins", "bayplan.engine.group", "bayplan.engine.gangs")
    groups = {"bayplan.api.pod_groups", "bayplan.state.pod_groups"}
    assert not [module for module in imported if module.startswith(unknown)]
    assert not imported & groups


def test_all_of_reuse_is_looked_at() -> None:
    assert set(paths_under(SOURCE)) >= REUSE


def has_code(tree: ast.Module) -> bool:
    """More than a docstring, imports and `__all__`."""
    return not all(
        isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or (isinstance(node, ast.Assign) and "__all__" in map(last_name, node.targets))
        for node in tree.body
    )


def mirrored(path: str) -> str:
    """`state/nodes.py` is tested by `state/test_nodes.py`."""
    module = Path(path)
    return module.with_name(f"test_{module.name}").as_posix()


@every_module
def test_every_module_has_its_test_file(path: str) -> None:
    exists = (TESTS / mirrored(path)).is_file()
    if path in TESTED_ELSEWHERE:
        assert not exists, f"{path} has its own tests now; remove its exception"
        assert (TESTS / TESTED_ELSEWHERE[path]).exists()
    elif has_code(parsed(path)):
        assert exists, f"{path} needs tests/{mirrored(path)}"


def test_every_module_tested_elsewhere_exists() -> None:
    assert not sorted(set(TESTED_ELSEWHERE) - set(paths_under(SOURCE)))


@pytest.mark.parametrize("path", project_files())
def test_no_machine_and_no_registry_is_named(path: str) -> None:
    text = (ROOT / path).read_bytes().decode("utf-8", errors="ignore")
    named = [
        f"{path}:{number} {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), start=1)
        if MACHINE_PATH.search(line) or REGISTRY_HOST.search(line)
    ]
    assert not named


@pytest.mark.parametrize("path", [path for path in project_files() if path.endswith(".md")])
def test_links_in_documents_lead_somewhere(path: str) -> None:
    document = ROOT / path
    targets = MARKDOWN_LINK.findall(FENCE.sub("", document.read_text(encoding="utf-8")))
    local = [target for target in targets if not re.match(r"[a-z]+:|#", target)]
    assert not [target for target in local if not (document.parent / target.split("#")[0]).exists()]
