"""Merging, clustering and modelling rankings by Lovász–Bregman divergences, beside classic rules of voting and fusion.

Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apexrank.aggregation.bootstrap import RankBootstrap
    from apexrank.aggregation.kemeny import Kemeny
    from apexrank.aggregation.kmeans import LovaszBregmanKMeans, elbow, silhouette
    from apexrank.aggregation.learn import LovaszAggregator
    from apexrank.aggregation.lovasz_bregman import LovaszBregman
    from apexrank.aggregation.mallows import LovaszMallows
    from apexrank.aggregation.posterior import OrderPosterior
    from apexrank.aggregation.rank_aggregation import Aggregation, aggregate

_HOME = {
    "Aggregation": "rank_aggregation",
    "Kemeny": "kemeny",
    "LovaszAggregator": "learn",
    "LovaszBregman": "lovasz_bregman",
    "LovaszBregmanKMeans": "kmeans",
    "LovaszMallows": "mallows",
    "OrderPosterior": "posterior",
    "RankBootstrap": "bootstrap",
    "aggregate": "rank_aggregation",
    "elbow": "kmeans",
    "silhouette": "kmeans",
}

__all__ = [
    "Aggregation",
    "Kemeny",
    "LovaszAggregator",
    "LovaszBregman",
    "LovaszBregmanKMeans",
    "LovaszMallows",
    "OrderPosterior",
    "RankBootstrap",
    "aggregate",
    "elbow",
    "silhouette",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"apexrank.aggregation.{_HOME[name]}"), name)
    raise AttributeError(f"module 'apexrank.aggregation' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
