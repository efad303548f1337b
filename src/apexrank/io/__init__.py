"""Tables in, model files out: what the command line is made of, usable from Python as well.

A table (:mod:`.tables`) becomes labels (:mod:`.columns`) and a feature matrix (:mod:`.encode`); a
:class:`~apexrank.io.table_ranker.TableRanker` fits an estimator on them and is kept in a model file
(:mod:`.modelfile`), which is data and never runs code. :mod:`.judging` measures it on rows whose answer is known.
Tables larger than memory are read in parts (:mod:`.stream`, :mod:`.stream_fit`). TREC runs and qrels (:mod:`.trec`) are
for lists that were ranked elsewhere.
"""

from apexrank.io.modelfile import ModelFileError, load_model, save_model
from apexrank.io.table_ranker import Recipe, TableRanker, rank_table
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
