"""Ranking by convex optimisation that gets the top of the list right.

Names are imported when they are first used, so ``import apexrank`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apexrank import (
        aggregation,
        bounds,
        bregman,
        checkpoints,
        datasets,
        distributed,
        divergences,
        export,
        graph,
        losses,
        metrics,
        objectives,
        penalties,
        plot,
        preprocessing,
        prices,
        problem,
        projections,
        rankers,
        report,
        solvers,
        submodular,
    )
    from apexrank.aggregation import LovaszBregman, LovaszBregmanKMeans, LovaszMallows, aggregate
    from apexrank.checkpoints import checkpoint
    from apexrank.errors import ApexrankError, InputError
    from apexrank.graph import (
        AntiTrustRank,
        ConsensusRank,
        DemotedRank,
        InDegree,
        LpqRank,
        PageRank,
        TrustRank,
    )
    from apexrank.rankers import (
        CrucialPairsPush,
        IRPush,
        LinearRanker,
        ListwiseRanker,
        MonotoneRetargeting,
        PNormPush,
        PNormPushCV,
        PushBoost,
        RankBoost,
        TwoStagePush,
        UnknownLinkRegressor,
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
    "LinearRanker": "rankers",
    "ListwiseRanker": "rankers",
    "MonotoneRetargeting": "rankers",
    "UnknownLinkRegressor": "rankers",
    "IRPush": "rankers",
    "push_path": "rankers",
    "PageRank": "graph",
    "LpqRank": "graph",
    "InDegree": "graph",
    "TrustRank": "graph",
    "AntiTrustRank": "graph",
    "DemotedRank": "graph",
    "ConsensusRank": "graph",
    "LovaszBregman": "aggregation",
    "LovaszBregmanKMeans": "aggregation",
    "LovaszMallows": "aggregation",
    "aggregate": "aggregation",
    "checkpoint": "checkpoints",
    "ApexrankError": "errors",
    "InputError": "errors",
}
_MODULES = (
    "aggregation",
    "bounds",
    "bregman",
    "checkpoints",
    "datasets",
    "distributed",
    "divergences",
    "export",
    "graph",
    "losses",
    "metrics",
    "objectives",
    "penalties",
    "plot",
    "preprocessing",
    "prices",
    "problem",
    "projections",
    "rankers",
    "report",
    "solvers",
    "submodular",
)

__all__ = [
    "AntiTrustRank",
    "ApexrankError",
    "ConsensusRank",
    "CrucialPairsPush",
    "DemotedRank",
    "IRPush",
    "InDegree",
    "InputError",
    "LinearRanker",
    "ListwiseRanker",
    "LovaszBregman",
    "LovaszBregmanKMeans",
    "LovaszMallows",
    "LpqRank",
    "MonotoneRetargeting",
    "PNormPush",
    "PNormPushCV",
    "PageRank",
    "PushBoost",
    "RankBoost",
    "TrustRank",
    "TwoStagePush",
    "UnknownLinkRegressor",
    "aggregate",
    "aggregation",
    "bounds",
    "bregman",
    "checkpoint",
    "checkpoints",
    "datasets",
    "distributed",
    "divergences",
    "export",
    "graph",
    "losses",
    "metrics",
    "objectives",
    "penalties",
    "plot",
    "preprocessing",
    "prices",
    "problem",
    "projections",
    "push_path",
    "rankers",
    "report",
    "solvers",
    "submodular",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"apexrank.{name}")
    if name in _HOME:
        return getattr(import_module(f"apexrank.{_HOME[name]}"), name)
    raise AttributeError(f"module 'apexrank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
