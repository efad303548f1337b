"""Data sets of the papers and of the field, made-up ones, and readers of LETOR, PrefLib and web graphs.

Made up: :mod:`.synthetic`, :mod:`.crawl`. Rows of two classes: :mod:`.uci`. Queries: :mod:`.letor`, :mod:`.letor_sets`.
Graphs: :mod:`.graphs`, :mod:`.webspam`. Ballots: :mod:`.preflib`.
"""

from apexrank.datasets.crawl import make_crawl, plant_farms
from apexrank.datasets.graphs import (
    load_bitcoin_otc,
    load_cnr_2000,
    load_epinions,
    load_polblogs,
    load_wiki_vote,
    toy_graph_1,
    toy_graph_2,
)
from apexrank.datasets.letor import read_letor, write_letor
from apexrank.datasets.letor_sets import Fold, letor_folds
from apexrank.datasets.preflib import PreferenceProfile, load_preflib, preflib_names, read_preflib
from apexrank.datasets.synthetic import make_letor_example, make_push_example
from apexrank.datasets.uci import (
    load_housing,
    load_ionosphere,
    load_magic,
    load_pima,
    load_tic_tac_toe,
    load_wdbc,
)
from apexrank.datasets.webspam import load_webspam

__all__ = [
    "Fold",
    "PreferenceProfile",
    "letor_folds",
    "load_bitcoin_otc",
    "load_cnr_2000",
    "load_epinions",
    "load_housing",
    "load_ionosphere",
    "load_magic",
    "load_pima",
    "load_polblogs",
    "load_preflib",
    "load_tic_tac_toe",
    "load_wdbc",
    "load_webspam",
    "load_wiki_vote",
    "make_crawl",
    "make_letor_example",
    "make_push_example",
    "plant_farms",
    "preflib_names",
    "read_letor",
    "read_preflib",
    "toy_graph_1",
    "toy_graph_2",
    "write_letor",
]
