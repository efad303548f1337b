"""Rankers on Dask collections: rows stay where they are, coefficients travel.

:class:`PNormPush` and :class:`MonotoneRetargeting` have the parameters of their namesakes in :mod:`apexrank.rankers`.
A pass sends the coefficients to the blocks and brings a few sums back (:mod:`.blocks`); measures are in
:mod:`.metrics`.
"""

from apexrank.distributed.blocks import DaskBlocks, repartition_by_group
from apexrank.distributed.rankers import MonotoneRetargeting, PNormPush

__all__ = ["DaskBlocks", "MonotoneRetargeting", "PNormPush", "repartition_by_group"]
