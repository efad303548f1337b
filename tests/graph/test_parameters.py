"""Parameters of graph ranks: a value outside its constraint is refused by name, before any graph is read."""

import numpy as np
import pytest

from apexrank import (
    AntiTrustRank,
    ConsensusRank,
    DemotedRank,
    GuardedPageRank,
    InDegree,
    InputError,
    LpqRank,
    PageRank,
    TrustRank,
)
from apexrank.graph.contributions import RobustPageRank, SpamMassRank
from apexrank.graph.lpq import ConcaveConvexRank, TopMeanRank
from apexrank.graph.nonbacktracking import NonBacktrackingRank
from apexrank.graph.signed import FairnessGoodness
from apexrank.parameters import InvalidParameterError
from apexrank_papers.consensus.loops import LoopedConsensusRank
from apexrank_papers.graphs.rank_dependent import RankDependentLpq

RANKS = [
    *(PageRank, InDegree, GuardedPageRank, LpqRank, TopMeanRank, ConcaveConvexRank, NonBacktrackingRank),
    *(TrustRank, AntiTrustRank, DemotedRank, RobustPageRank, SpamMassRank, FairnessGoodness, ConsensusRank),
    *(LoopedConsensusRank, RankDependentLpq),
]
OUTSIDE = {
    PageRank: {
        "damping": (1.0, -0.1, np.nan),
        "tol": (-1e-3, np.nan, np.inf),
        "max_iter": (0, 10.5),
        "verbose": (-1,),
    },
    GuardedPageRank: {"min_links": (0.5,), "truncate": (-1, 1.5), "early": (0.0, 1.5), "keep": (-0.1, 1.5)},
    NonBacktrackingRank: {"truncate": (-1, 1.5)},
    RobustPageRank: {"cap": (0, -1, 1.5, np.nan)},
    SpamMassRank: {"good_share": (-0.1, 1.1)},
    LpqRank: {
        "p": (0.5, np.nan),
        "ratio": (0.9, np.inf),
        "teleport": ("elsewhere",),
        "gamma": (1.0, -0.1),
        "trust": ("non-linear",),
        "distrust": ("up",),
        "negative": ("votes",),
        "neutral": (2.0,),
    },
    TopMeanRank: {"k": (0, 2.5), "p": (0.5, 9.0), "ratio": (0.9,)},
    ConcaveConvexRank: {"degree": (-1, 0)},
    AntiTrustRank: {"direction": ("up",)},
    DemotedRank: {"beta": (-1,), "direction": ("up",)},
    FairnessGoodness: {"smoothing": (-1, np.nan)},
    ConsensusRank: {
        "method": ("vote",),
        "divergence": ("hellinger", "shifted-i-divergence"),
        "damping": (1,),
        "pull": (-1, np.nan),
        "entropy": (-0.5, 1.5),
        "temperature": (0, -1.0, np.nan),
        "beta": (0, 1),
        "trim": (0.5,),
        "half_life": (0, -1),
        "n_restarts": (-1,),
    },
    LoopedConsensusRank: {"divergence": ("logistic",), "variant": ("triple-loop",), "method": ("brew",)},
    RankDependentLpq: {"ratio": (1.0,), "teleport": ("outside",), "share": (0, 1)},
}


@pytest.mark.parametrize("rank", RANKS)
def test_every_parameter_is_refused_if_it_is_of_no_known_type(rank):
    for name in rank().get_params(deep=False):
        with pytest.raises(InvalidParameterError, match=f"'{name}' parameter of {rank.__name__}"):
            rank(**{name: object()}).fit(None)


@pytest.mark.parametrize(
    ("rank", "name", "value"),
    [(rank, name, value) for rank in OUTSIDE for name in OUTSIDE[rank] for value in OUTSIDE[rank][name]],
)
def test_a_value_outside_its_range_is_refused(rank, name, value):
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter of {rank.__name__}"):
        rank(**{name: value}).fit(None)


@pytest.mark.parametrize(
    ("rank", "names"),
    [
        (LpqRank(np.inf, 1), "`p=inf` with `ratio=1`"),
        (LpqRank(2, 1, teleport="outside"), "outside the norm needs `ratio`"),
        (ConsensusRank("blend", entropy=0.0), "`entropy`"),
        (ConsensusRank("brew", pull=1.0), "`pull`"),
        (ConsensusRank("corroborate", divergence="itakura-saito"), "`divergence='kl'`"),
    ],
)
def test_parameters_that_exclude_each_other_are_refused(rank, names):
    with pytest.raises(InputError, match=names):
        rank.fit(None)
