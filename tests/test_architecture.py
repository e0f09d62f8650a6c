"""Rules that no linter checks: sizes, names, imports of tests, links of documents.

A file of more than 800 lines and a function of more than 70 are listed below; the docstring of each
says why it is one idea. The number of modules, methods and parameters has no limit: code follows
ideas. import-linter checks the layers; pyproject.toml has its contracts. `make coverage` names
modules that tests do not run.
"""

import ast
import functools
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bayplan.config.behaviour import Behaviour
from bayplan.framework.plugin import SignPlugin
from bayplan.framework.profile import extension_points_of
from bayplan.plugins.registry import in_tree_plugins

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "bayplan"
TESTS = ROOT / "tests"

# ---------------------------------------------------------------- exceptions

# "path": each has a docstring that says why it is one idea.
LONG_FILES: frozenset[str] = frozenset()
# "path:Class.function": likewise.
LONG_FUNCTIONS: frozenset[str] = frozenset()
# "path:Class.function": positional parameters without self. A partial of each stands in place of
# a plugin's method, which is called with positional arguments.
POSITIONAL_PARAMETERS: frozenset[str] = frozenset(
    {
        "framework/calls.py:_change_pod",
        "framework/calls.py:_pre_filter",
        "framework/filtering.py:filter_nodes",
        "framework/tie_break.py:_numbers",
        "framework/tie_break.py:_scores",
    }
)
# Words that name nothing: participles in place of nouns, pronouns in place of subjects.
BANNED_WORDS = frozenset(
    [
        "found",
        "told",
        "said",
        "asked",
        "known",
        "kept",
        "wanted",
        "held",
        "given",
        "like",
        "likes",
        "alike",
        "whom",
        "others",
        "rest",
        "story",
        "stories",
        "hope",
        "hopes",
        "telling",
        "spared",
        "picks",
        "standing",
        "parked",
        "gathering",
    ]
)
# Endings of participles; irregular ones are whole words. No class is named by a participle.
PARTICIPLE = re.compile(
    "([a-z]ed|[a-z]ing|Begun|Chosen|Drawn|Given|Held|Kept|Known|Made|Taken|Told|Written)$"
)
# Last words of classes: no participles, nouns of the field, or words that say what failed.
PARTICIPLES_IN_USE = frozenset(
    [
        "Aborted",
        "Binding",
        "Caching",
        "Coscheduling",
        "Ended",
        "Failed",
        "Finding",
        "Listing",
        "Mapping",
        "Need",
        "Ranking",
        "Recording",
        "Remembered",
        "Renumbering",
        "Ring",
        "Scaling",
        "Scheduling",
        "Setting",
        "Supported",
        "Translated",
        "Unstructured",
    ]
)
# Words of the field, and of protocols, in which such a word is a part.
FIELD_WORDS = ("NotFound", "not_found", "NOT_FOUND", "well_known", "WELL_KNOWN", "WellKnown")

# Longest run of equal lines, without imports, that may stand in two places.
EQUAL_LINES_MAX = 10

# Methods with five positional parameters that plugins call: Handle.emit and BindPort.patch.
CONTRACT_CALLS = {"emit", "patch"}

# Names that say nothing about what is inside.
BANNED_NAMES = {"utils", "helpers", "common", "base", "misc", "manager"}

# Paths of one machine, and hosts of package registries: neither means anything to a reader.
MACHINE_PATH = re.compile(r"(?<![\w.-])/(?:(?:work|root)(?![\w.-])|(?:home|Users)/\w)")
REGISTRY_HOST = re.compile(
    r"pypi\.org|files\.pythonhosted\.|registry\.npmjs\.|registry\.yarnpkg\."
    r"|(?:index|static)\.crates\.|proxy\.golang\.|repo1?\.maven\.|deb\.debian\."
)
#: Of the tests, on one line or within parentheses.
IMPORT = re.compile(r"^(?:from|import) (?:tests|examples)\b[^(\n]*(?:\([^)]*\))?", re.MULTILINE)
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


@functools.cache
def definitions(tree: ast.Module) -> list[tuple[str, Function | ast.ClassDef]]:
    """Classes and functions with their qualified names, nested ones included."""
    return list(_definitions(tree, ""))


def _definitions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function | ast.ClassDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef):
            name = prefix + child.name
            yield name, child
            yield from _definitions(child, name + ".")
        else:
            yield from _definitions(child, prefix)


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


def arguments(node: Function) -> list[ast.arg]:
    declared = node.args
    variadic = [one for one in (declared.vararg, declared.kwarg) if one is not None]
    return [*declared.posonlyargs, *declared.args, *declared.kwonlyargs, *variadic]


def positional_parameters(path: str, tree: ast.Module) -> dict[str, int]:
    """Without self and the parts of the plugin contract that plugins already call."""
    bound = bound_to(tree)
    return {
        f"{path}:{name}": len(node.args.posonlyargs) + len(node.args.args) - (node in bound)
        for name, node in functions(tree)
        if node.name not in CONTRACT_CALLS
    }


def bound_to(tree: ast.Module) -> set[Function]:
    return {
        method
        for _, owner in definitions(tree)
        if isinstance(owner, ast.ClassDef)
        for method in methods(owner)
        if "staticmethod" not in map(last_name, method.decorator_list)
    }


LIMITS: dict[str, tuple[Measure, int, frozenset[str]]] = {
    "lines in a file": (file_lines, 800, LONG_FILES),
    "lines in a function": (function_lines, 70, LONG_FUNCTIONS),
    "positional parameters": (positional_parameters, 4, POSITIONAL_PARAMETERS),
}


def complaints(measured: dict[str, int], limit: int, allowed: frozenset[str]) -> list[str]:
    over = {place for place, value in measured.items() if value > limit}
    return [
        *(f"{place}: {measured[place]}, at most {limit}" for place in sorted(over - allowed)),
        *(f"{place} keeps the limit of {limit}; remove it" for place in sorted(allowed - over)),
    ]


# ---------------------------------------------------------------- the tests

MODULES = paths_under(SOURCE)
every_limit = pytest.mark.parametrize("limit", LIMITS)


@every_limit
def test_sizes_stay_within_limits(limit: str) -> None:
    measure, bound, allowed = LIMITS[limit]
    measured = {p: n for path in MODULES for p, n in measure(path, parsed(path)).items()}
    assert not complaints(measured, bound, allowed)


def test_a_place_beyond_its_limit_must_be_listed_and_no_other_may_be() -> None:
    measured = {"a.py": 5, "b.py": 8, "c.py": 8}
    assert complaints(measured, 5, frozenset({"a.py", "b.py", "gone.py"})) == [
        "c.py: 8, at most 5",
        "a.py keeps the limit of 5; remove it",
        "gone.py keeps the limit of 5; remove it",
    ]


def test_every_module_has_a_docstring() -> None:
    assert not [path for path in MODULES if not ast.get_docstring(parsed(path))]


def test_no_module_has_a_meaningless_name() -> None:
    parts = {path: Path(path).with_suffix("").parts for path in MODULES}
    assert not [p for p in MODULES if BANNED_NAMES & {part.strip("_") for part in parts[p]}]


def words_of(name: str) -> set[str]:
    for word in FIELD_WORDS:
        name = name.replace(word, "")
    return set(re.findall("[a-z]+", re.sub("([a-z0-9])([A-Z])", r"\1_\2", name).lower()))


def stored_names(body: list[ast.stmt]) -> Iterator[str]:
    """Names that the assignments of a module or class define."""
    for statement in body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def defined_names(path: str) -> Iterator[str]:
    """Of the module, its classes, functions, parameters, fields and values."""
    tree = parsed(path)
    yield from Path(path).with_suffix("").parts
    yield from stored_names(tree.body)
    for _, node in definitions(tree):
        yield node.name
        if isinstance(node, ast.ClassDef):
            yield from stored_names(node.body)
        else:
            yield from (argument.arg for argument in arguments(node))


def test_names_are_nouns_and_verbs_not_participles() -> None:
    banned = {
        f"{path}: {name}"
        for path in MODULES
        for name in defined_names(path)
        if BANNED_WORDS & words_of(name)
    }
    assert not sorted(banned)


def test_participles_in_use_are_the_listed_ones() -> None:
    """No other class ends in a participle, and each word of the list is still the end of one."""
    names = {
        name.rpartition(".")[2]
        for path in MODULES
        for name, node in definitions(parsed(path))
        if isinstance(node, ast.ClassDef)
    }
    last_words = {last_word(name) for name in names}
    participles = {last_word(name) for name in names if PARTICIPLE.search(name)}
    assert participles <= PARTICIPLES_IN_USE <= last_words


def last_word(name: str) -> str:
    return re.findall("[A-Z][a-z]*", name)[-1]


@pytest.mark.parametrize("name", ["found_nodes", "KnownPods", "ASKED_MAX", "is_kept"])
def test_a_banned_word_is_recognized_inside_a_name(name: str) -> None:
    assert BANNED_WORDS & words_of(name)


@pytest.mark.parametrize("name", ["NotFoundError", "well_known_label", "restore", "likely"])
def test_words_of_the_field_are_allowed(name: str) -> None:
    assert not BANNED_WORDS & words_of(name)


def code_lines(path: str) -> list[tuple[int, str]]:
    """Lines with their numbers, without imports, comments and blank lines."""
    imports = {
        number
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    text = (SOURCE / path).read_text(encoding="utf-8")
    stripped = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    return [(n, s) for n, s in stripped if n not in imports and s and not s.startswith("#")]


def test_no_long_run_of_lines_occurs_twice() -> None:
    places: dict[tuple[str, ...], str] = {}
    twice: list[str] = []
    for path in MODULES:
        lines = code_lines(path)
        for start in range(len(lines) - EQUAL_LINES_MAX):
            run = tuple(text for _, text in lines[start : start + EQUAL_LINES_MAX + 1])
            place = f"{path}:{lines[start][0]}"
            if places.setdefault(run, place) != place:
                twice.append(f"{place} ~ {places[run]}")
    assert not twice


def test_no_import_is_inside_a_function() -> None:
    hidden = [
        f"{path}:{inner.lineno} in {name}"
        for path in MODULES
        for name, function in functions(parsed(path))
        for inner in ast.walk(function)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    ]
    assert not hidden


def test_one_module_imports_at_run_time() -> None:
    importers = [path for path in MODULES if "import_module" in (SOURCE / path).read_text("utf-8")]
    assert importers == ["lazy_loader.py"]


def lazy_places(path: str) -> Iterator[str]:
    """The modules of Bayplan that a module loads lazily, by a name that is written out."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call) and last_name(node.func) == "load" and node.args:
            [first, *_] = node.args
            if isinstance(first, ast.Constant) and str(first.value).startswith("bayplan."):
                yield str(first.value).partition(":")[0]


def test_what_is_loaded_lazily_lies_in_the_same_layer_or_below() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    [layers] = [one["layers"] for one in contracts["contracts"] if one["type"] == "layers"]
    level_of = {
        name: level for level, names in enumerate(layers) for name in re.findall(r"\w+", names)
    }
    upward = [
        f"{path} loads {module}"
        for path in MODULES
        for module in lazy_places(path)
        if level_of[module.split(".")[1]] < level_of.get(Path(path).parts[0].removesuffix(".py"), 0)
    ]
    assert not upward


def test_no_internal_module_imports_the_package_root() -> None:
    """`bayplan` re-exports from every layer: an import of its names would point up. Its version is
    its own."""
    modules = {Path(name).parts[0].removesuffix(".py") for name in MODULES} | {"__version__"}
    through = [
        f"{path}:{node.lineno} {alias.name}"
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "bayplan"
        for alias in node.names
        if alias.name not in modules
    ]
    assert not through


def test_public_functions_have_a_return_type() -> None:
    silent = [
        f"{path}:{node.lineno} {name}"
        for path in MODULES
        for name, node in functions(parsed(path))
        if node.returns is None and not any(part.startswith("_") for part in name.split("."))
    ]
    assert not silent


def test_every_plugin_is_final() -> None:
    """A plugin is changed by wrapping it, never by inheriting from it."""
    open_classes = [
        f"{path}:{node.lineno} {name}"
        for path in MODULES
        if "plugins/" in path
        for name, node in definitions(parsed(path))
        if isinstance(node, ast.ClassDef)
        and any(last_name(parent).endswith("Plugin") for parent in node.bases)
        and "final" not in map(last_name, node.decorator_list)
    ]
    assert not open_classes


#: The cache of results, and the rankings in it.
REUSE = [
    path for path in paths_under(SOURCE) if path.startswith(("engine/reuse", "engine/ranking"))
]

READERS = {"TopologyScorer", "Invert", "Normalize", "Scale", "Steps", "Combine"}


def test_every_plugin_that_filters_or_scores_signs_pods() -> None:
    """A plugin without a signature is called for every node in every cycle (KEP-5598)."""
    answering = {
        plugin
        for plugin in in_tree_plugins()
        if {"filter", "score"} & set(extension_points_of(plugin))
    }
    # Plugins that read other plugins' scores depend on more than a pod and a row.
    answering = {plugin for plugin in answering if plugin.name not in READERS}
    unsigned = {plugin.name for plugin in answering if not issubclass(plugin, SignPlugin)}
    assert not unsigned


@pytest.mark.parametrize("path", REUSE)
def test_reuse_knows_neither_plugins_nor_groups(path: str) -> None:
    """A formula changes in its plugin's file only, and a group calls reuse as a pod does."""
    imported = {
        node.module
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom) and node.module is not None
    }
    unknown = ("bayplan.plugins", "bayplan.engine.podgroups")
    groups = {"bayplan.api.pod_groups", "bayplan.state.pod_groups"}
    assert not [module for module in imported if module.startswith(unknown)]
    assert not imported & groups


def test_the_rule_about_reuse_covers_all_of_its_modules() -> None:
    assert {"engine/reuse/cache.py", "engine/ranking/row_cache.py"} <= {*REUSE}


def imported_test_modules(text: str) -> list[str]:
    """Names of test modules that a module imports, in whichever way."""
    statements = [each[0] for each in IMPORT.finditer(text) if "test_" in each[0]]
    return [
        name
        for node in ast.walk(ast.parse("\n".join(statements)))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in imported_names(node)
        if re.search(r"\btest_\w+$", name)
    ]


def imported_names(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Of `from a import b`, both a and a.b, because b may be a module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    package = node.module or ""
    return [package, *(f"{package}.{alias.name}" for alias in node.names)]


def test_no_test_module_is_imported() -> None:
    """Code that several tests share is in a module of its own beside them."""
    imports = {
        path: imported_test_modules((TESTS / path).read_text(encoding="utf-8"))
        for path in paths_under(TESTS)
    }
    assert not {path: names for path, names in imports.items() if names}


@pytest.mark.parametrize(
    "line",
    [
        "from tests.a.test_b import c",
        "from tests.a import b, test_c",
        "from tests import test_a",
        "import tests.a.test_b as c",
        "from tests.a import (\n    b,\n    test_c,\n)",
    ],
)
def test_each_form_of_an_import_of_a_test_module_is_recognized(line: str) -> None:
    assert imported_test_modules(line)
    assert not imported_test_modules(line.replace("test_", "kit_"))


def test_no_path_of_a_machine_and_no_registry_host_is_named() -> None:
    texts = {
        path: (ROOT / path).read_bytes().decode("utf-8", errors="ignore")
        for path in project_files()
    }
    named = [
        f"{path}:{number} {line.strip()[:100]}"
        for path, text in texts.items()
        if MACHINE_PATH.search(text) or REGISTRY_HOST.search(text)
        for number, line in enumerate(text.splitlines(), start=1)
        if MACHINE_PATH.search(line) or REGISTRY_HOST.search(line)
    ]
    assert not named


def test_links_in_documents_have_targets() -> None:
    broken: list[str] = []
    for path in (path for path in project_files() if path.endswith(".md")):
        document = ROOT / path
        targets = MARKDOWN_LINK.findall(FENCE.sub("", document.read_text(encoding="utf-8")))
        local = [target for target in targets if not re.match(r"[a-z]+:|#", target)]
        missing = [t for t in local if not (document.parent / t.split("#")[0]).exists()]
        broken += [f"{path}: {target}" for target in missing]
    assert not broken


# ---- versions ------------------------------------------------------------------------------

#: Where a version may be named: its tables, the pages made from them, and the commands.
_KNOWS_VERSIONS = ("config/", "cli/", "profile/config_schema.py")
_VERSION = re.compile(r"KubernetesVersion\.\w|gates\.version|NEWEST\b(?!_)|changes_between")


def test_no_code_asks_for_a_version_of_kubernetes() -> None:
    """What versions do differently is in the tables of `config`; see config/behaviour_table.py."""
    asking = {
        path
        for path in MODULES
        if not path.startswith(_KNOWS_VERSIONS)
        and _VERSION.search((SOURCE / path).read_text(encoding="utf-8"))
    }
    # The plugins of a version, the gates of a version for a remark, a metric and a test's cluster.
    assert asking <= {
        "engine/instrumentation.py",
        "profile/effective_config.py",
        "profile/plugin_sets.py",
        "testing/clusters.py",
        "whatif/upgrade/configuration.py",
        "whatif/upgrade/upgrade.py",
    }


def test_every_switch_of_a_version_is_read() -> None:
    text = "\n".join((SOURCE / path).read_text(encoding="utf-8") for path in MODULES)
    unread = [name for name in Behaviour.__struct_fields__ if f".{name}" not in text]
    assert not unread
