"""Linear problems, composed of a design (the rows), an objective of the scores and a penalty.

Designs hold rows in memory (:class:`DenseDesign`, :class:`SparseDesign`), in blocks on disk or on Dask workers
(:class:`BlockDesign` over :class:`Blocks`), or on a device (:mod:`.device`). :class:`Problem` combines a design, an
objective and a penalty, and bounds the distance of a point from the minimum.
"""

from apexrank.problem.block_design import BlockDesign
from apexrank.problem.blocks import ArrayBlocks, Block, Blocks, survey
from apexrank.problem.design import DenseDesign, Design, SparseDesign, design_of
from apexrank.problem.problem import Certificate, Problem

__all__ = [
    "ArrayBlocks",
    "Block",
    "BlockDesign",
    "Blocks",
    "Certificate",
    "DenseDesign",
    "Design",
    "Problem",
    "SparseDesign",
    "design_of",
    "survey",
]
