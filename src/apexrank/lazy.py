"""Lazy imports of package attributes.

The ``__init__`` of a package lists its public names once, as imports that only type checkers run::

    if TYPE_CHECKING:
        from apexrank.graph.lpq import LpqRank as LpqRank
    else:
        __getattr__, __dir__, __all__ = attach(__name__)

:func:`attach` reads this list from the source, so there is no second list to maintain. It does the same as
`lazy_loader.attach_stub` (Scientific Python SPEC 1) without the dependency and the stub files.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

# ruff keeps each re-export ("as" the same name) on one line, so a regular expression is enough; importing ast would
# double the time of "import apexrank"
_IMPORT = re.compile(r"^    from ([\w.]+) import (\w+) as \2$", re.M)
_DEFINITION = re.compile(r"^(?:def|class) ([^\W_]\w*)", re.M)


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Create ``__getattr__``, ``__dir__`` and ``__all__`` of a package from its ``if TYPE_CHECKING`` block.

    Public functions and classes defined in the ``__init__`` itself are in ``__all__`` as well. Submodules appear only
    in ``dir``, so that a star import does not load them all.

    Examples
    --------
    >>> load, names, public = attach("apexrank")
    >>> load("PNormPush").__name__, "PNormPush" in public
    ('PNormPush', True)
    """
    module = sys.modules[package]
    source = module.__spec__.loader.get_source(package)  # type: ignore[union-attr]
    homes = {name: home for home, name in _IMPORT.findall(source)}
    names = sorted([*homes, *_DEFINITION.findall(source)])
    public = [name for name in names if homes.get(name) != package]

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        value = import_module(f"{package}.{name}") if home == package else getattr(import_module(home), name)
        setattr(module, name, value)  # later lookups bypass this function
        return value

    return load, lambda: names, public
