"""All mutants of a module by cosmic-ray's operators, except those known to be equivalent to the original.

Left out are

- annotations: never evaluated, as every module has ``from __future__ import annotations``;
- ``if TYPE_CHECKING:`` with all that is in it: it only runs in a type checker;
- the decorator ``@kernel(...)`` and its arguments: they say how to compile, and kernels run as plain Python here;
- the bare ``*`` and ``/`` among parameters, which cosmic-ray takes for operators: their mutants are not Python.

All others count, also those that happen to be equivalent.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

PACKAGE = "apexrank"
ATOMS = ("losses", "prices", "divergences", "projections")
FOLDERS = ("kernels", "submodular", "objectives")


@dataclass(frozen=True)
class Mutant:
    """One change in one module (its path in the package without .py): the n-th occurrence of an operator."""

    module: str
    operator: str
    occurrence: int
    line: int
    column: int


def source_path(root: Path, module: str) -> Path:
    """The file of a module."""
    return root / "src" / PACKAGE / f"{module}.py"


def all_modules(root: Path) -> list[str]:
    """Modules under test."""
    package = root / "src" / PACKAGE
    inside = [path for folder in FOLDERS for path in sorted((package / folder).glob("*.py"))]
    atoms = [package / f"{name}.py" for name in ATOMS]
    return [path.relative_to(package).with_suffix("").as_posix() for path in inside + atoms if path.exists()]


def chosen_modules(root: Path, names: list[str]) -> list[str]:
    """Modules with the given names (``kernels/pav``) or in the given folders (``kernels``); all if none is given."""
    modules = all_modules(root)
    wrong = [n for n in names if not any(m == n or m.startswith(f"{n}/") for m in modules)]
    if wrong:
        raise SystemExit(f"not a measured module: {', '.join(wrong)} (there are {', '.join(modules)})")
    return [m for m in modules if not names or any(m == n or m.startswith(f"{n}/") for n in names)]


def module_mutants(root: Path, module: str) -> list[Mutant]:
    """All mutants of a module, in source order."""
    from cosmic_ray.ast import ast_nodes, get_ast

    nodes = list(ast_nodes(get_ast(source_path(root, module).read_text())))
    mutants = []
    for name, operator in operators().items():
        places = ((node, start) for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, (node, start) in enumerate(places):
            if not left_out(node):
                mutants.append(Mutant(module, name, occurrence, *start))
    return sorted(mutants, key=lambda m: (m.line, m.column, m.operator, m.occurrence))


@lru_cache
def operators() -> dict:
    """cosmic-ray's operators, without those that need user arguments, as in its own runs."""
    from cosmic_ray.plugins import get_operator, operator_names

    classes = {name: get_operator(name) for name in operator_names()}
    return {name.removeprefix("core/"): made() for name, made in classes.items() if not made.arguments()}


def mutated_source(root: Path, mutant: Mutant) -> str:
    """The module's text with the change."""
    from cosmic_ray.mutating import mutate_code

    text = source_path(root, mutant.module).read_text()
    return mutate_code(text, operators()[mutant.operator], mutant.occurrence)


def left_out(node) -> bool:
    """Whether no test can detect a change at this place of a parso tree (see the top of this file)."""
    if node.type == "operator" and node.parent.type == "parameters":
        return True
    if node.type == "operator" and node.parent.type == "param" and len(node.parent.children) <= 2:
        return True
    while node.parent is not None:
        if _is_annotation(node) or _is_compile_only(node) or _is_type_checking(node):
            return True
        node = node.parent
    return False


def _is_annotation(node) -> bool:
    parent = node.parent
    if parent.type == "funcdef":
        return node is parent.annotation
    position = {"annassign": 1, "tfpdef": 2}.get(parent.type)
    return position is not None and node is parent.children[position]


def _is_compile_only(node) -> bool:
    return node.type == "decorator" and node.children[1].get_first_leaf().value == "kernel"


def _is_type_checking(node) -> bool:
    return node.type == "if_stmt" and node.children[1].get_code().strip() == "TYPE_CHECKING"


def lines_of(text: str, mutant: Mutant) -> list[range]:
    """Lines whose tests may detect the change, best first; later ones are used if no test runs the earlier ones.

    Inside a function these are the lines of the statement. Code that runs at import is covered by the tests of the
    function, class or module that it defines.
    """
    tree = ast.parse(text)
    around = [
        s for s in ast.walk(tree) if isinstance(s, ast.stmt) and _first(s) <= mutant.line <= s.end_lineno
    ]
    around.sort(key=lambda s: (_first(s), -s.end_lineno))  # statements are nested: outermost first
    inner, holders = around[-1], around[:-1]
    if isinstance(inner, ast.FunctionDef | ast.ClassDef) or not any(
        isinstance(s, ast.FunctionDef) for s in holders
    ):
        defined = [s for s in around if isinstance(s, ast.FunctionDef | ast.ClassDef)]
        return [range(_first(s), s.end_lineno + 1) for s in reversed(defined)] + [
            range(1, len(text.splitlines()) + 1)
        ]
    if not hasattr(inner, "body"):
        return [range(inner.lineno, inner.end_lineno + 1)]
    if inner.lineno <= mutant.line < inner.body[0].lineno:
        return [range(inner.lineno, inner.body[0].lineno)]
    return [range(mutant.line, mutant.line + 1)]


@lru_cache
def _statements(text: str) -> list[ast.stmt]:
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]


def _first(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", [])
    return min([statement.lineno] + [d.lineno for d in decorators])
