"""Imports go one way: a module may import from its own layer or the layers below it."""

import ast
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "apexrank"

# from the bottom up; names in one row may import each other
LAYERS = [
    {"errors", "lazy", "parallel", "validation", "parameters", "files", "progress"},
    {"kernels"},
    {
        "losses",
        "prices",
        "divergences",
        "submodular",
        "projections",
        "metrics",
        "datasets",
    },
    {"tables"},
    {"objectives", "penalties"},
    {"problem"},
    {"graph"},  # shards on Dask use problem.dask
    {"solvers"},
    {"rankers", "preprocessing", "integrations", "clicks"},
    {"plot", "io"},
    {"networkx"},
    {"aggregation", "export", "distributed"},
    {"comparison"},
    {"report"},
    {"cli", "__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
MODULES = sorted(set(SRC.rglob("*.py")) - {SRC / "__init__.py"})  # only re-exports


TABLES = {"read", "delimited", "write", "columns"}  # of io, which graphs and ballots read as well


def named(parts: Sequence[str]) -> str:
    """Layer of a module; the networkx adapter depends on graphs, the others on rankers."""
    if len(parts) > 1 and parts[0] == "io" and parts[1] in TABLES:
        return "tables"
    return parts[1] if tuple(parts[:2]) == ("integrations", "networkx") else parts[0]


def layer_of(path: Path) -> str:
    return named(path.relative_to(SRC).with_suffix("").parts)


def imported_layers(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "apexrank":
            parts = node.module.split(".")
            found |= {named(parts[1:])} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("apexrank.")}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_imports_go_down(path):
    layer = layer_of(path)
    for other in imported_layers(path) & LEVEL.keys():
        assert LEVEL[other] <= LEVEL[layer], f"{layer} must not import {other}"


def test_every_module_has_a_layer():
    assert {layer_of(path) for path in MODULES} == LEVEL.keys()


def test_the_check_sees_imports():
    assert "kernels" in imported_layers(SRC / "objectives" / "push.py")
    assert "rankers" not in imported_layers(SRC / "objectives" / "push.py")


PACKAGES = sorted(path.parent for path in SRC.rglob("__init__.py"))


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda p: p.relative_to(SRC.parent).as_posix())
def test_no_public_name_is_also_that_of_a_module(folder):
    """An imported module becomes an attribute of its package and would hide a function of the same name."""
    package = import_module(".".join(folder.relative_to(SRC.parent).parts))
    inside = {
        path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    public = set(getattr(package, "__all__", ()))
    assert not {name for name in public & inside if callable(getattr(package, name))}
