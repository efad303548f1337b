"""Data sets of the papers and of the field, synthetic ones, and readers for LETOR, PrefLib and web graphs.

Synthetic: :mod:`.synthetic`, :mod:`.crawl`, :mod:`.clicks`; link spam: :mod:`.attacks`. Queries: :mod:`.letor`. Hosts:
:mod:`.webspam`. Ballots: :mod:`.preflib`. The UCI sets of the papers: :mod:`.uci`. Networks: :mod:`.networks`.
"""

from typing import TYPE_CHECKING

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank.datasets.attacks import attack as attack
    from apexrank.datasets.clicks import make_clicks as make_clicks
    from apexrank.datasets.crawl import make_crawl as make_crawl
    from apexrank.datasets.crawl import plant_farms as plant_farms
    from apexrank.datasets.letor import Fold as Fold
    from apexrank.datasets.letor import letor_folds as letor_folds
    from apexrank.datasets.letor import read_letor as read_letor
    from apexrank.datasets.letor import write_letor as write_letor
    from apexrank.datasets.networks import load_bitcoin_otc as load_bitcoin_otc
    from apexrank.datasets.networks import load_cnr_2000 as load_cnr_2000
    from apexrank.datasets.networks import load_epinions as load_epinions
    from apexrank.datasets.networks import load_polblogs as load_polblogs
    from apexrank.datasets.networks import load_wiki_vote as load_wiki_vote
    from apexrank.datasets.networks import toy_graph_1 as toy_graph_1
    from apexrank.datasets.networks import toy_graph_2 as toy_graph_2
    from apexrank.datasets.preflib import PreferenceProfile as PreferenceProfile
    from apexrank.datasets.preflib import load_preflib as load_preflib
    from apexrank.datasets.preflib import preflib_names as preflib_names
    from apexrank.datasets.preflib import read_preflib as read_preflib
    from apexrank.datasets.synthetic import make_letor_example as make_letor_example
    from apexrank.datasets.synthetic import make_push_example as make_push_example
    from apexrank.datasets.uci import load_housing as load_housing
    from apexrank.datasets.uci import load_ionosphere as load_ionosphere
    from apexrank.datasets.uci import load_magic as load_magic
    from apexrank.datasets.uci import load_pima as load_pima
    from apexrank.datasets.uci import load_tic_tac_toe as load_tic_tac_toe
    from apexrank.datasets.uci import load_wdbc as load_wdbc
    from apexrank.datasets.webspam import load_webspam as load_webspam
else:
    __getattr__, __dir__, __all__ = attach(__name__)
