"""Tables in, model files out: what the command line is made of, usable from Python as well.

A table (:mod:`.tables`) becomes a feature matrix (:mod:`.encode`) and labels (:mod:`.labels`); a
:class:`~apexrank.io.ranker.TableRanker` fits an estimator on them and is kept in a model file
(:mod:`.modelfile`), which is data and never runs code.
"""

from apexrank.io.modelfile import ModelFileError, load_model, save_model
from apexrank.io.ranker import Recipe, TableRanker
from apexrank.io.ranking import rank_table
from apexrank.io.tables import Table, read_table, write_table

__all__ = [
    "ModelFileError",
    "Recipe",
    "Table",
    "TableRanker",
    "load_model",
    "rank_table",
    "read_table",
    "save_model",
    "write_table",
]
