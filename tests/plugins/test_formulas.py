"""A formula is in one place: plugins share arithmetic (framework) or nest each other; no
function that computes is a copy of another one with other names."""

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: The folders with score computations.
FOLDERS = (ROOT / "src/bayplan/plugins", ROOT / "src/bayplan/framework", ROOT / "examples")
#: Smaller functions may be equal by chance: `return a - b`.
NODES_MIN = 12


class _Unnamed(ast.NodeTransformer):
    """Replace names by numbers in order of their first use."""

    def __init__(self) -> None:
        self._numbers: dict[str, str] = {}

    def _number(self, name: str) -> str:
        return self._numbers.setdefault(name, f"name{len(self._numbers)}")

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._number(node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(self._number(node.arg), None)


def copies(sources: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Functions with equal code. ``sources``: name and text of each file."""
    names_by_source: defaultdict[str, list[str]] = defaultdict(list)
    for name, text in sources:
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.FunctionDef) and _computes(function):
                names_by_source[_shape(function)].append(f"{name}:{function.name}")
    return [values for values in names_by_source.values() if len(values) > 1]


def _computes(function: ast.FunctionDef) -> bool:
    nodes = [node for statement in _body(function) for node in ast.walk(statement)]
    arithmetic = [node for node in nodes if isinstance(node, ast.BinOp)]
    return len(nodes) >= NODES_MIN and any(
        not isinstance(node.op, ast.BitOr | ast.BitAnd) for node in arithmetic
    )


def _shape(function: ast.FunctionDef) -> str:
    unnamed = _Unnamed()
    copied = ast.Module(_body(function), type_ignores=[])
    body = ast.parse(ast.unparse(copied)).body
    return "".join(ast.dump(unnamed.visit(statement)) for statement in body)


def _body(function: ast.FunctionDef) -> list[ast.stmt]:
    """The body without its docstring."""
    return function.body[ast.get_docstring(function) is not None :]


def test_no_formula_is_copied() -> None:
    files = [file for folder in FOLDERS for file in sorted(folder.rglob("*.py"))]
    assert len(files) > 60
    assert not copies(
        (file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")) for file in files
    )


def test_a_copy_with_other_names_is_detected() -> None:
    one = "def least(free, has):\n    '''Less is better.'''\n    return (has - free) * 100 // has\n"
    other = "def mine(room, all):\n    return (all - room) * 100 // all\n"
    most = "def most(free, has):\n    return free * 100 // has - (has - free)\n"
    assert copies([("a", one), ("b", other), ("c", most)]) == [["a:least", "b:mine"]]
