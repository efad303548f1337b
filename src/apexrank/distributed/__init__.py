"""Rankers on Dask collections; rows stay in their partitions, and only coefficients and sums are sent.

Every linear estimator fits Dask arrays and data frames. A pass sends the coefficients to the blocks and returns a few
sums, or the scores of all rows (:mod:`apexrank.problem`). ``predict`` and ``decision_function`` of a Dask collection
return lazy Dask arrays; measures are in :mod:`.metrics`. :func:`collection_blocks` controls whether blocks are kept in
memory between passes.
"""

from typing import TYPE_CHECKING

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank.problem.dask import DaskBlocks as DaskBlocks
    from apexrank.problem.dask import collection_blocks as collection_blocks
    from apexrank.problem.dask import repartition_by_group as repartition_by_group
    from apexrank.rankers import MonotoneRetargeting as MonotoneRetargeting
    from apexrank.rankers import PNormPush as PNormPush
else:
    __getattr__, __dir__, __all__ = attach(__name__)
