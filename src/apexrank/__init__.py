"""Ranking by convex optimisation that gets the top of the list right.

Names are imported when they are first used, so ``import apexrank`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apexrank import (
        bounds,
        bregman,
        datasets,
        divergences,
        losses,
        metrics,
        objectives,
        plot,
        preprocessing,
        prices,
        projections,
    )
    from apexrank.errors import ApexrankError, InputError
    from apexrank.rankers import (
        CrucialPairsPush,
        IRPush,
        ListwiseRanker,
        MonotoneRetargeting,
        PNormPush,
        PNormPushCV,
        PushBoost,
        RankBoost,
        TwoStagePush,
        push_path,
    )

__version__ = "0.1.0"

_HOME = {
    "PNormPush": "rankers",
    "PNormPushCV": "rankers",
    "PushBoost": "rankers",
    "CrucialPairsPush": "rankers",
    "RankBoost": "rankers",
    "TwoStagePush": "rankers",
    "ListwiseRanker": "rankers",
    "MonotoneRetargeting": "rankers",
    "IRPush": "rankers",
    "push_path": "rankers",
    "ApexrankError": "errors",
    "InputError": "errors",
}
_MODULES = (
    "bounds",
    "bregman",
    "datasets",
    "divergences",
    "losses",
    "metrics",
    "objectives",
    "plot",
    "preprocessing",
    "prices",
    "projections",
)

__all__ = [
    "ApexrankError",
    "CrucialPairsPush",
    "IRPush",
    "InputError",
    "ListwiseRanker",
    "MonotoneRetargeting",
    "PNormPush",
    "PNormPushCV",
    "PushBoost",
    "RankBoost",
    "TwoStagePush",
    "bounds",
    "bregman",
    "datasets",
    "divergences",
    "losses",
    "metrics",
    "objectives",
    "plot",
    "preprocessing",
    "prices",
    "projections",
    "push_path",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"apexrank.{name}")
    if name in _HOME:
        return getattr(import_module(f"apexrank.{_HOME[name]}"), name)
    raise AttributeError(f"module 'apexrank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
