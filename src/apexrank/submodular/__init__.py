"""Submodular set functions as atoms: each gives the gains along an order (Iyer and Bilmes 2013).

``"sqrt"`` and ``Sqrt()`` mean the same: :func:`set_function` makes an atom of a name.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from apexrank.errors import InputError
from apexrank.submodular.base import (
    Combination,
    Custom,
    Modular,
    SetFunction,
    check_orders,
    check_scores,
    orders_of,
)
from apexrank.submodular.cut import Chain, Cut
from apexrank.submodular.prox import prox_extension
from apexrank.submodular.size import BySize, Cardinality, Indicator, Log, Product, Sqrt, Top, is_by_size
from apexrank.validation import Registry

__all__ = [
    "SET_FUNCTIONS",
    "BySize",
    "Cardinality",
    "Chain",
    "Combination",
    "Custom",
    "Cut",
    "Indicator",
    "Log",
    "Modular",
    "Product",
    "SetFunction",
    "Sqrt",
    "Top",
    "check_orders",
    "check_scores",
    "is_by_size",
    "orders_of",
    "prox_extension",
    "set_function",
]

SET_FUNCTIONS: Registry[SetFunction] = Registry(
    "set function", SetFunction, (Sqrt, Log, Top, Cardinality, Product, Indicator, Chain, Cut)
)


def set_function(f: str | SetFunction = "sqrt", **arguments: Any) -> SetFunction:
    """The set function ``f`` itself, or the one it names, made with the arguments given.

    Parameters
    ----------
    f : {"sqrt", "log", "top", "cardinality", "product", "indicator", "chain", "cut"} or SetFunction
        A name or an atom.
    **arguments
        What the named atom takes: ``m`` for ``"top"``, ``"sqrt"``, ``"log"`` and ``"cardinality"``, ``g`` for
        ``"cardinality"``, ``weights`` for ``"cut"``. An argument that the atom does not know is refused.

    Examples
    --------
    >>> set_function("top", m=2).gains([2, 0, 1]).tolist()
    [1.0, 1.0, 0.0]
    """
    if isinstance(f, SetFunction) and arguments:
        raise InputError(
            f"{next(iter(arguments))}= is for a set function given by its name, and this one is made already: give it "
            "where the set function is made"
        )
    if not isinstance(f, str) or f not in SET_FUNCTIONS.members:
        return SET_FUNCTIONS.get(f)
    taken = [field for field in fields(SET_FUNCTIONS.members[f]) if field.init]
    missing = [field.name for field in taken if field.default is MISSING and field.name not in arguments]
    known = [field.name for field in taken]
    for name in arguments:
        if name not in known:
            raise InputError(
                f"the set function {f!r} takes no {name!r}: it takes {', '.join(known) or 'nothing'}"
            )
    if missing:
        raise InputError(f"the set function {f!r} needs {missing[0]}=")
    return SET_FUNCTIONS.get(f, **arguments)
