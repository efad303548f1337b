"""Rankers on Dask collections: rows stay where they are, coefficients travel.

:class:`PNormPush` and :class:`MonotoneRetargeting` have the parameters of their namesakes in :mod:`apexrank.rankers`.
A pass sends the coefficients to the blocks and brings a few sums back (:mod:`.blocks`); measures are in
:mod:`.metrics`.
"""

from typing import TYPE_CHECKING

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank.distributed.blocks import DaskBlocks as DaskBlocks
    from apexrank.distributed.blocks import repartition_by_group as repartition_by_group
    from apexrank.distributed.rankers import MonotoneRetargeting as MonotoneRetargeting
    from apexrank.distributed.rankers import PNormPush as PNormPush
else:
    __getattr__, __dir__, __all__ = attach(__name__)
