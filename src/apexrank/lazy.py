"""Package attributes that are imported on first use.

The ``__init__`` of a package lists its public names once, as imports that only type checkers run::

    if TYPE_CHECKING:
        from apexrank.graph.lpq import LpqRank as LpqRank
    else:
        __getattr__, __dir__, __all__ = attach(__name__)

:func:`attach` reads the same list from the source, so there is nothing beside it to keep in step. It does the job of
`lazy_loader.attach_stub` (Scientific Python SPEC 1) without the dependency and the stub files.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make ``__getattr__``, ``__dir__`` and ``__all__`` of a package from its ``if TYPE_CHECKING`` block.

    Public functions and classes that the ``__init__`` defines itself are in ``__all__`` as well.

    Examples
    --------
    >>> load, names, public = attach("apexrank")
    >>> load("PNormPush").__name__, "PNormPush" in public
    ('PNormPush', True)
    """
    module = sys.modules[package]
    tree = ast.parse(module.__spec__.loader.get_source(package))  # type: ignore[union-attr]
    homes = dict(_lazy_imports(tree))
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    public = sorted(homes.keys() | {name for name in own if not name.startswith("_")})

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        value = import_module(f"{package}.{name}") if home == package else getattr(import_module(home), name)
        setattr(module, name, value)  # the next use finds it without asking here
        return value

    return load, lambda: public, public


def _lazy_imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each name imported under ``if TYPE_CHECKING``, with the module it comes from."""
    for block in tree.body:
        if (
            isinstance(block, ast.If)
            and isinstance(block.test, ast.Name)
            and block.test.id == "TYPE_CHECKING"
        ):
            for node in block.body:
                if isinstance(node, ast.ImportFrom) and node.module:
                    yield from ((alias.name, node.module) for alias in node.names)
