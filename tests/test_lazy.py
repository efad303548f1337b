"""Lazy packages: names load on first use, importing apexrank loads no numerical or optional dependency."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import apexrank
from apexrank.lazy import attach

PACKAGES = ["apexrank", *(f"apexrank.{module.name}" for module in pkgutil.iter_modules(apexrank.__path__))]
LAZY = [name for name in PACKAGES if hasattr(importlib.import_module(name), "__getattr__")]
HEAVY = (
    "numpy",
    "scipy",
    "sklearn",
    "numba",
    "polars",
    "matplotlib",
    "jinja2",
    "torch",
    "dask",
    "networkx",
    "onnx",
)


@pytest.mark.parametrize("package", LAZY)
def test_every_public_name_loads_and_is_kept(package):
    module = importlib.import_module(package)
    assert module.__all__ == sorted(set(module.__all__))
    for name in dir(module):
        value = getattr(module, name)
        assert vars(module)[name] is value
        assert (name in module.__all__) != (value is sys.modules.get(f"{package}.{name}"))


@pytest.mark.parametrize("package", LAZY)
def test_all_that_type_checkers_see_is_public(package):
    module = importlib.import_module(package)
    tree = ast.parse(inspect.getsource(module))
    blocks = [node.body for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.asname for body in blocks for node in body for alias in node.names}
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert seen | own == set(dir(module))


def test_most_packages_are_lazy():
    assert {"apexrank", "apexrank.graph", "apexrank.metrics", "apexrank.rankers", "apexrank.report"} <= set(
        LAZY
    )


def test_a_function_of_the_init_itself_is_public():
    assert "build" in importlib.import_module("apexrank.report").__all__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'apexrank' has no attribute 'PageRnk'"):
        apexrank.PageRnk  # noqa: B018
    load, _, public = attach("apexrank.graph")
    assert "networkx" not in public
    with pytest.raises(AttributeError, match=r"module 'apexrank\.graph' has no attribute 'missing'"):
        load("missing")


@pytest.mark.parametrize("package", [name for name in LAZY if name.count(".") < 2])
def test_importing_a_package_loads_none_of_its_modules(package):
    code = f"import sys, {package}; print(*(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
