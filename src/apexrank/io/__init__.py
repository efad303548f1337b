"""Tables and model files: the building blocks of the command line, for use from Python.

A table (:mod:`.read`, :mod:`.delimited`, :mod:`.write`) becomes labels (:mod:`.columns`), typed columns
(:mod:`.types`) and a feature matrix (:mod:`.encode`); a :class:`~apexrank.io.table_ranker.TableRanker` fits an
estimator on them and is saved to a model file (:mod:`.model_file`), which contains only data and never runs code.
:mod:`.judge` evaluates it on labelled rows. Tables larger than memory are read in parts (:mod:`.stream`). TREC runs and
qrels (:mod:`.trec`) connect to lists ranked by other systems.
"""

from typing import TYPE_CHECKING

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank.io.model_file import ModelFileError as ModelFileError
    from apexrank.io.read import Table as Table
    from apexrank.io.read import read_table as read_table
    from apexrank.io.table_ranker import Calibration as Calibration
    from apexrank.io.table_ranker import Recipe as Recipe
    from apexrank.io.table_ranker import TableRanker as TableRanker
    from apexrank.io.table_ranker import calibrate as calibrate
    from apexrank.io.table_ranker import rank_table as rank_table
    from apexrank.io.trec import judged as judged
    from apexrank.io.trec import read_qrels as read_qrels
    from apexrank.io.trec import read_run as read_run
    from apexrank.io.trec import write_qrels as write_qrels
    from apexrank.io.trec import write_run as write_run
    from apexrank.io.write import write_table as write_table
else:
    __getattr__, __dir__, __all__ = attach(__name__)
