"""Tables in, model files out: what the command line is made of, usable from Python as well.

A table (:mod:`.tables`) becomes a feature matrix (:mod:`.encode`) and labels (:mod:`.labels`); a
:class:`~apexrank.io.ranker.TableRanker` fits an estimator on them and is kept in a model file
(:mod:`.modelfile`), which is data and never runs code. TREC runs and qrels (:mod:`.trec`) are for lists that were
ranked elsewhere.
"""

from apexrank.io.modelfile import ModelFileError, load_model, save_model
from apexrank.io.ranker import Recipe, TableRanker
from apexrank.io.ranking import rank_table
from apexrank.io.tables import Table, read_table, write_table
from apexrank.io.trec import judged, read_qrels, read_run, write_qrels, write_run

__all__ = [
    "ModelFileError",
    "Recipe",
    "Table",
    "TableRanker",
    "judged",
    "load_model",
    "rank_table",
    "read_qrels",
    "read_run",
    "read_table",
    "save_model",
    "write_qrels",
    "write_run",
    "write_table",
]
