"""LETOR files (SVMlight lines with query ids), their five folds, and made-up queries of the same shape.

A line is ``relevance qid:ID feature:value feature:value ... # comment``; features are numbered from 1, in any order,
and one that is not named is 0.
"""

from apexrank.datasets.letor.example import make_letor_example
from apexrank.datasets.letor.folds import Fold, letor_folds
from apexrank.datasets.letor.reading import read_letor
from apexrank.datasets.letor.writing import write_letor

__all__ = ["Fold", "letor_folds", "make_letor_example", "read_letor", "write_letor"]
