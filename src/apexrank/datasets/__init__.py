"""Synthetic data sets, and readers for LETOR and PrefLib files.

Synthetic: :mod:`.synthetic`, :mod:`.crawl`, :mod:`.clicks`; link spam: :mod:`.attacks`. Queries: :mod:`.letor`.
Ballots: :mod:`.preflib`.
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
    from apexrank.datasets.preflib import PreferenceProfile as PreferenceProfile
    from apexrank.datasets.preflib import read_preflib as read_preflib
    from apexrank.datasets.synthetic import make_letor_example as make_letor_example
    from apexrank.datasets.synthetic import make_push_example as make_push_example
else:
    __getattr__, __dir__, __all__ = attach(__name__)
