"""scikit-learn's own checks of every estimator of the package, with one expected failure."""

import functools
import importlib
import pkgutil
from contextlib import suppress

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import apexrank
from apexrank.aggregation import LovaszAggregator, LovaszBregmanKMeans
from apexrank.graph import (
    AntiTrustRank,
    ConcaveConvexRank,
    ConsensusRank,
    DemotedRank,
    FairnessGoodness,
    GraphRank,
    GuardedPageRank,
    InDegree,
    LpqRank,
    NonBacktrackingRank,
    PageRank,
    RobustPageRank,
    SpamMassRank,
    TopMeanRank,
    TrustRank,
)
from apexrank.graph.base import IteratedRank, plain_graph
from apexrank.penalties import Ridge
from apexrank.preprocessing import QueryNormalizer, RampEncoder
from apexrank.rankers import (
    AdditiveRanker,
    AdditiveRetargeting,
    CrucialPairsPush,
    CurvesAndTrees,
    IRPush,
    LetorRanker,
    LinearRanker,
    ListwiseRanker,
    LogisticRanker,
    MonotoneRetargeting,
    PNormPush,
    PNormPushCV,
    PushBoost,
    RankBoost,
    TreeRanker,
    TwoStagePush,
    UnknownLinkRegressor,
)
from apexrank.rankers.additive import Additive
from apexrank.rankers.base import GivenScores, LinearEstimator
from apexrank.rankers.kernel import KernelEstimator
from apexrank_papers.link.isotron import Isotron
from apexrank_papers.lovasz.mallows import LovaszMallows
from apexrank_papers.retargeting.published import PublishedRetargeting

# control how to fit, not what
BASES = {
    Additive,
    GivenScores,  # nothing to fit
    GraphRank,
    IteratedRank,
    KernelEstimator,
    LinearEstimator,
}


# ---------------------------------------------------------------- arguments of fit that the checks do not pass


class TrustingTheFirst(TrustRank):
    def fit(self, graph, y=None):
        return super().fit(graph, trusted=[0])


class SpamMassOfOthersThanTheFirst(SpamMassRank):
    def fit(self, graph, y=None):
        return super().fit(graph, trusted=[0])


class DistrustingTheFirst(AntiTrustRank):
    def fit(self, graph, y=None):
        return super().fit(graph, distrusted=[0])


class DemotingTheFirst(DemotedRank):
    def fit(self, graph, y=None):
        return super().fit(graph, trusted=[0], distrusted=[0])


class OneLayer(ConsensusRank):
    """ConsensusRank's tags exclude tables, which would leave nothing to check; a layer is accepted here."""

    def __sklearn_tags__(self):
        return GraphRank.__sklearn_tags__(self)

    def fit(self, graph, y=None):
        return super().fit([plain_graph(graph)])


# ---------------------------------------------------------------- the estimators

OF_GRAPHS = [
    InDegree(),
    FairnessGoodness(),
    PageRank(),
    LpqRank(),
    ConcaveConvexRank(),
    TopMeanRank(),
    GuardedPageRank(),
    NonBacktrackingRank(),
    RobustPageRank(),
    TrustingTheFirst(),
    SpamMassOfOthersThanTheFirst(),
    DistrustingTheFirst(),
    DemotingTheFirst(),
    OneLayer(),
]

# settings are those with which a check is quick, or possible at all
ESTIMATORS = [
    PNormPush(),
    AdditiveRanker(),
    IRPush(),
    RankBoost(),
    LogisticRanker(),
    TreeRanker(rounds=50),
    CurvesAndTrees(rounds=20),
    PNormPushCV(ps=[1, 4], alphas=[1e-3], cv=2),
    CrucialPairsPush(),
    TwoStagePush(),
    PushBoost(n_estimators=10),
    LinearRanker("push", Ridge(1e-2)),
    ListwiseRanker(),
    MonotoneRetargeting(),
    AdditiveRetargeting(n_knots=5, n_pairs=1, alpha=0.1),
    LetorRanker(n_folds=2),
    PublishedRetargeting(start="softmax", max_alternations=3),
    UnknownLinkRegressor(),
    Isotron(),
    LovaszBregmanKMeans(),
    LovaszAggregator(),
    # a density on a box, of which no tag can tell the checks; their rows are all in this one
    LovaszMallows(box=(-200, 200)),
    QueryNormalizer(),
    RampEncoder(),
    *OF_GRAPHS,
]

# one per family for the quick run
REPRESENTATIVE = {
    PNormPush,
    CrucialPairsPush,
    CurvesAndTrees,
    MonotoneRetargeting,
    UnknownLinkRegressor,
    LovaszBregmanKMeans,
    QueryNormalizer,
    LpqRank,
}


# ---------------------------------------------------------------- the checks


def beyond_orders(estimator):
    """The one expected failure: an order of two items only says on which side of a line a point lies.

    The check expects three blobs. With ``euclidean`` above 0 positions count too, and they are found.
    """
    if isinstance(estimator, LovaszBregmanKMeans) and estimator.euclidean == 0:
        return {
            "check_clustering": "two items have two orders: three blobs in the plane are no three clusters"
        }
    return {}


@pytest.fixture
def array_api(monkeypatch):
    """One check enables scikit-learn's array API, for NumPy arrays, and is skipped without this variable."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")


def every_check():
    """Parametrise with all checks; those of a few classes run in the quick tier.

    scikit-learn's own ids repeat the estimator's name for every check, which takes a while.
    """
    made = parametrize_with_checks(ESTIMATORS, expected_failed_checks=beyond_orders)
    cases = []
    for case in made.args[1]:
        values, marks = getattr(case, "values", case), getattr(case, "marks", ())
        marks = marks if type(values[0]) in REPRESENTATIVE else [*marks, pytest.mark.slow]
        cases.append(pytest.param(*values, marks=marks))
    return pytest.mark.parametrize(made.args[0], cases, ids=functools.cache(made.kwargs["ids"]))


# many of the checks' tiny data sets are separable, have fewer orders than clusters, or are cut short on purpose
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@every_check()
def test_scikit_learn_checks(estimator, check, array_api, counted):
    check(estimator)
    counted("scikit-learn estimator checks passed", 1)


def modules():
    """All modules of the package, except those of optional packages that are not installed."""
    for module in pkgutil.walk_packages(apexrank.__path__, "apexrank."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):
                yield importlib.import_module(module.name)


def is_ours(kind):
    return kind.__module__.startswith(("apexrank.", "apexrank_papers."))


def estimators_of(module):
    for name, value in vars(module).items():
        if isinstance(value, type) and issubclass(value, BaseEstimator) and name[0] != "_":
            yield value


def test_every_estimator_is_checked(counted):
    found = {estimator for module in modules() for estimator in estimators_of(module)}
    own = {estimator for estimator in found if is_ours(estimator)}
    checked = {next(filter(is_ours, type(estimator).__mro__)) for estimator in ESTIMATORS}
    assert own - checked == BASES
    counted("public estimators", len(own - BASES))


def test_two_orders_are_all_that_the_plane_has():
    """Reason why the clustering check cannot pass: labels state on which side of the diagonal a row is."""
    X = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.warns(UserWarning, match="too few different orders"):
        labels = LovaszBregmanKMeans(3, random_state=0).fit(X).labels_
    assert len(np.unique(labels)) == 2
    above = X[:, 0] > X[:, 1]
    assert len(np.unique(labels[above])) == len(np.unique(labels[~above])) == 1
