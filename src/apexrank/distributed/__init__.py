"""Rankers on Dask collections: rows stay where they are, coefficients travel.

Every linear estimator fits Dask arrays and data frames. A pass sends the coefficients to the blocks and brings back a
few sums, or the scores of all rows (:mod:`apexrank.problem`). ``predict`` and ``decision_function`` of a Dask
collection are lazy Dask arrays; measures are in :mod:`.metrics`. :func:`collection_blocks` chooses whether blocks are
kept in memory between passes.
"""

from apexrank.problem.dask import DaskBlocks, collection_blocks, repartition_by_group
from apexrank.rankers import MonotoneRetargeting, PNormPush

__all__ = ["DaskBlocks", "MonotoneRetargeting", "PNormPush", "collection_blocks", "repartition_by_group"]
