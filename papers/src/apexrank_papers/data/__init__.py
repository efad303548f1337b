"""Data sets of the papers and of the field, from PyPI packages or the folder named by ``APEXRANK_DATA``.

Rows of two classes: :mod:`.uci`. Networks and the toy graphs of the dissertation: :mod:`.networks`. Hosts:
:mod:`.webspam`. Crawls in the WebGraph format: :mod:`.webgraph`. Ballots: :mod:`.preflib`.
"""

from typing import TYPE_CHECKING

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank_papers.data.networks import load_bitcoin_otc as load_bitcoin_otc
    from apexrank_papers.data.networks import load_cnr_2000 as load_cnr_2000
    from apexrank_papers.data.networks import load_epinions as load_epinions
    from apexrank_papers.data.networks import load_polblogs as load_polblogs
    from apexrank_papers.data.networks import load_wiki_vote as load_wiki_vote
    from apexrank_papers.data.networks import toy_graph_1 as toy_graph_1
    from apexrank_papers.data.networks import toy_graph_2 as toy_graph_2
    from apexrank_papers.data.preflib import load_preflib as load_preflib
    from apexrank_papers.data.preflib import preflib_names as preflib_names
    from apexrank_papers.data.uci import load_housing as load_housing
    from apexrank_papers.data.uci import load_ionosphere as load_ionosphere
    from apexrank_papers.data.uci import load_magic as load_magic
    from apexrank_papers.data.uci import load_pima as load_pima
    from apexrank_papers.data.uci import load_tic_tac_toe as load_tic_tac_toe
    from apexrank_papers.data.uci import load_wdbc as load_wdbc
    from apexrank_papers.data.webgraph import read_webgraph as read_webgraph
    from apexrank_papers.data.webspam import load_webspam as load_webspam
else:
    __getattr__, __dir__, __all__ = attach(__name__)
