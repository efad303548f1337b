"""From names and numbers on the command line to a graph rank."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

from apexrank.errors import InputError


class Method(NamedTuple):
    """A rank by its name on the command line: its class, what it takes and needs beside numbers, its own words."""

    estimator: str
    takes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    renamed: Mapping[str, str] = {}


METHODS = {
    "lpq": Method("LpqRank", ("teleport", "trusted", "distrusted", "signed", "start", "explain")),
    "pagerank": Method("PageRank", ("teleport", "start", "explain")),
    "indegree": Method("InDegree"),
    "trustrank": Method("TrustRank", ("trusted", "explain"), ("trusted",)),
    "anti-trustrank": Method("AntiTrustRank", ("distrusted",), ("distrusted",), {"distrust": "direction"}),
    "demoted": Method(
        "DemotedRank",
        ("trusted", "distrusted"),
        ("trusted", "distrusted"),
        {"distrust": "direction"},
    ),
    "top-mean": Method("TopMeanRank", ("teleport", "start", "explain")),
}
_ABOUT_LABELS = ("trust", "gamma", "distrust", "neutral")


def build_method(name: str, given: set[str], **options: Any) -> Any:
    """Make the unfitted rank; options that are None keep the library's default.

    Raises
    ------
    InputError
        When the method is unknown, has no such option, or lacks what it needs.
    """
    if name not in METHODS:
        raise InputError(f"unknown method {name!r}: use one of {', '.join(METHODS)}")
    method = METHODS[name]
    for option in sorted(given - {*method.takes}):
        raise InputError(f"--method {name} has no --{option}: leave it out")
    for option in method.needs:
        if option not in given:
            raise InputError(f"--method {name} needs --{option} FILE, the vertices it starts from")
    estimator = getattr(import_module("apexrank.graph"), method.estimator)()
    chosen = {option: value for option, value in options.items() if value is not None}
    for option, value in chosen.items():
        parameter = method.renamed.get(option, option)
        if parameter not in estimator.get_params():
            flag = f"-{option}" if len(option) == 1 else f"--{option.replace('_', '-')}"
            raise InputError(f"--method {name} has no {flag}: leave it out")
        estimator.set_params(**{parameter: value})
    _check_labels(given, chosen)
    return estimator


def _check_labels(given: set[str], chosen: dict[str, Any]) -> None:
    """Refuse options about labels where there are none."""
    for option in _ABOUT_LABELS:
        if option in chosen and not given & {"trusted", "distrusted", "signed"}:
            raise InputError(
                f"--{option} is about labels: add --trusted, --distrusted or --signed, or leave it out"
            )
    if "negative" in chosen and "signed" not in given:
        raise InputError("--negative is about negative edges: add --signed, or leave it out")
