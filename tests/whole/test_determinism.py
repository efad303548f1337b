"""The same input and seed give the same answer, whatever the threads, the workers and the hashing of text."""

import dataclasses
import functools
import importlib
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys

import numpy as np
import pytest
from joblib import parallel_backend
from scipy import sparse
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import apexrank
from apexrank import (
    ConsensusRank,
    InDegree,
    LovaszBregmanKMeans,
    LpqRank,
    PageRank,
    PNormPush,
    PNormPushCV,
    PushBoost,
    UnknownLinkRegressor,
    aggregate,
    datasets,
    metrics,
)
from apexrank.aggregation import KendallMallows
from apexrank.comparison import Logistic, compare_rankers
from apexrank.export import round_scorecard
from apexrank.graph import (
    FairnessGoodness,
    GuardedPageRank,
    NonBacktrackingRank,
    RobustPageRank,
    TopMeanRank,
    attack_ranks,
)
from apexrank.kernels import csr
from apexrank.rankers import LetorRanker
from apexrank.report import summarise_votes
from tests.whole import can_import

X, Y = datasets.make_push_example(160, random_state=3, return_X_y=True)
NOISE = np.random.default_rng(5).normal(size=160)
QUERIES = np.arange(160) // 8
BALLOTS = np.random.default_rng(1).random((12, 5))
LINKS = np.random.default_rng(0).integers(0, 30, (2, 150))


def crawl():
    return datasets.make_crawl(200, random_state=0).adjacency


# ----------------------------------------------------------------------------------------------- random_state

# every public object with a random_state, as a function whose result depends on it
SEEDED = {
    "LovaszBregmanKMeans": lambda seed: (
        LovaszBregmanKMeans(4, n_init=1, init="random", max_iter=1, random_state=seed).fit(BALLOTS).labels_
    ),
    "KendallMallows.sample": lambda seed: KendallMallows([2, 0, 1, 3], 0.5).sample(20, random_state=seed),
    "Aggregation.bootstrap": lambda seed: aggregate(BALLOTS).bootstrap(50, random_state=seed).ranks,
    "LetorRanker": lambda seed: LetorRanker(2, random_state=seed).fit(X, Y, groups=QUERIES).predict(X),
    "make_clicks": lambda seed: datasets.make_clicks(Y, NOISE, n_sessions=5, random_state=seed).clicked,
    "counterfactual_dcg": lambda seed: metrics.counterfactual_dcg(
        Y, QUERIES % 4 + 1, NOISE, [1, 1, 1, 1], sessions=QUERIES, n_resamples=50, random_state=seed
    ),
    "make_crawl": lambda seed: datasets.make_crawl(200, random_state=seed).adjacency,
    "plant_farms": lambda seed: (
        datasets.plant_farms(crawl(), farms=2, boosters=3, hijacked=2, random_state=seed).adjacency
    ),
    "attack": lambda seed: (
        datasets.attack(crawl(), "farm", n_targets=2, pages=3, random_state=seed).adjacency
    ),
    "attack_ranks": lambda seed: (
        attack_ranks(crawl(), attacks=["cycle-2"], n_targets=2, random_state=seed).results[0].before
    ),
    "make_letor_example": lambda seed: datasets.make_letor_example(3, random_state=seed).data,
    "make_push_example": lambda seed: datasets.make_push_example(100, random_state=seed).data,
    "Card.loss": lambda seed: round_scorecard(PNormPush(2).fit(X, Y), X, Y).loss(
        n_resamples=50, random_state=seed
    ),
    "ConsensusRank": lambda seed: (
        ConsensusRank("blend", n_restarts=1, max_iter=3, tol=1e-3, random_state=seed)
        .fit([(LINKS[0], LINKS[1]), (LINKS[1], LINKS[0])])
        .scores_
    ),
    "compare": lambda seed: metrics.compare(
        {"a": X[:, 0], "b": NOISE}, None, Y, measures="auc", n_resamples=50, random_state=seed
    ),
    "bootstrap": lambda seed: metrics.bootstrap("auc", Y, NOISE, n_resamples=50, random_state=seed),
    "paired_test": lambda seed: metrics.paired_test(
        NOISE[:40], NOISE[40:80], n_resamples=50, random_state=seed
    ),
    "PushBoost": lambda seed: (
        PushBoost(DecisionTreeClassifier(max_depth=1, splitter="random"), n_estimators=3, random_state=seed)
        .fit(X, Y)
        .decision_function(X)
    ),
    "UnknownLinkRegressor.direction_interval": lambda seed: (
        UnknownLinkRegressor(tol=1e-3)
        .fit(X, X[:, 0] + NOISE)
        .direction_interval(X, X[:, 0] + NOISE, n_resamples=3, random_state=seed)
    ),
    "summarise_votes": lambda seed: summarise_votes(
        aggregate(BALLOTS), methods=["borda"], bootstrap=20, clusters=None, random_state=seed
    ),
}


def plain(value):
    """Any object as comparable text, with all digits of all its numbers."""
    if sparse.issparse(value):
        return plain(value.toarray())
    if isinstance(value, np.ndarray | np.generic):
        return repr(value.tolist())
    if dataclasses.is_dataclass(value):
        return plain(
            {
                field.name: getattr(value, field.name)
                for field in dataclasses.fields(value)
                if field.name != "seconds"
            }
        )
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {plain(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(plain, value)) + "]"
    if hasattr(value, "rows") and hasattr(value, "columns"):
        return plain(value.rows())
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def public_objects():
    """Every function, class and public method in an ``__all__`` of the library, without experiments and verbs."""
    for module in pkgutil.walk_packages(apexrank.__path__, "apexrank."):
        if module.name.split(".")[1] == "cli" or not can_import(module.name):
            continue
        home = importlib.import_module(module.name)
        for name in getattr(home, "__all__", ()):
            thing = getattr(home, name)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                yield thing
            if inspect.isclass(thing):
                yield from (method for _, method in inspect.getmembers(thing, inspect.isfunction))


@functools.cache  # not at import: it imports every module
def takers_of(parameter):
    found = {}
    for thing in public_objects():
        try:
            signature = inspect.signature(thing)
        except (TypeError, ValueError):  # built-in types have none
            continue
        if parameter in signature.parameters and "._" not in f".{thing.__qualname__}":
            found[thing.__qualname__] = thing
    return found


SAME_MINIMUM = ["ConsensusRank"]  # its random starts are there to end in the same place
KINDS = {
    "int": int,
    "RandomState": lambda seed: np.random.RandomState(seed),
    "Generator": np.random.default_rng,
}


def kinds_of(name):
    """Documented types of a random_state; if undocumented, those of its neighbours."""
    documented = re.search(r"random_state : (.*)", inspect.getdoc(takers_of("random_state")[name]) or "")
    text = documented[1] if documented else "int, Generator or None"
    return [kind for kind in KINDS if kind in text]


def test_everything_with_a_random_state_is_tested():
    assert sorted(takers_of("random_state")) == sorted(SEEDED)


@pytest.mark.parametrize("name", SEEDED)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_seed_decides_everything(name, counted):
    """Equal seeds of any documented kind give equal results, other seeds other results

    Numpy's global state is unchanged.
    """
    before = plain(list(np.random.get_state()))  # noqa: NPY002
    for kind in kinds_of(name):
        first, second = (plain(SEEDED[name](KINDS[kind](7))) for _ in range(2))
        assert first == second, kind
    others = (plain(SEEDED[name](seed)) for seed in range(10, 16))
    assert name in SAME_MINIMUM or any(other != first for other in others)
    assert plain(list(np.random.get_state())) == before  # noqa: NPY002
    SEEDED[name](None)
    counted("functions with a seed", 1)


def test_a_seed_decides_a_comparison():
    """`compare_rankers` forwards its options, so its signature does not show a seed."""
    rankers = [Logistic(alphas=(1e-2,))]
    first, second, other = (
        plain(compare_rankers(X, Y, candidates=rankers, folds=2, repeats=1, random_state=seed))
        for seed in (7, 7, 8)
    )
    assert first == second != other


# ------------------------------------------------------------------------------------------ threads and workers


def with_threads(number, compute):
    """Numbers of threads of BLAS and of our own loops over links."""
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(number):
        patch.setattr("numba.config.NUMBA_NUM_THREADS", number)
        patch.setattr(csr, "LINKS_A_THREAD", 10)
        return compute()


GRAPH_RANKS = [PageRank(), InDegree(), TopMeanRank(3), LpqRank(2), LpqRank(8, 1.0), LpqRank(np.inf)]
GRAPH_RANKS += [
    RobustPageRank(),
    NonBacktrackingRank(),
    GuardedPageRank(),
]
GRAPH_RANKS += [FairnessGoodness()]


@pytest.mark.parametrize("rank", GRAPH_RANKS, ids=str)
def test_threads_do_not_change_a_graph_rank(rank):
    """Bit-identical: threads divide the rows, and each row is summed by one thread."""
    weights = np.random.default_rng(2).random(150)
    one, two, three = (
        with_threads(number, lambda: rank.fit((*LINKS, weights)).scores_.copy()) for number in (1, 2, 3)
    )
    assert one.tobytes() == two.tobytes() == three.tobytes()


def test_more_threads_are_really_used():
    used = with_threads(
        2, lambda: csr.InLinks(np.arange(0, 31, 10), np.arange(30, dtype=np.int32) % 3).threads.n
    )
    assert used == 2


RANKERS = [PNormPush(4, alpha=1.0), UnknownLinkRegressor()]


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_threads_of_blas_do_not_change_a_ranking(ranker):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20_000, 50))  # large enough that BLAS shares it out
    answers = (rows[:, :5].sum(axis=1) + 3 * rng.normal(size=len(rows)) > 1).astype(int)

    def ranking():
        return np.argsort(-(rows @ np.ravel(ranker.fit(rows, answers).coef_)), kind="stable")

    assert np.array_equal(with_threads(1, ranking), with_threads(2, ranking))


def test_workers_do_not_change_a_search():
    """Folds in threads of one process give the same scores, p and coefficients as sequential folds."""
    found = []
    for jobs in (1, 2):
        with parallel_backend("threading"):
            search = PNormPushCV(ps=[1, 4], alphas=[1e-3, 1e-2], cv=2, n_jobs=jobs).fit(X, Y)
        found.append(
            (search.p_, search.alpha_, search.cv_results_["mean_test_score"].tolist(), search.coef_.tolist())
        )
    assert found[0] == found[1]


# ---------------------------------------------------------------------------------------------- hashing of text

NAMED = """
import json
import numpy as np
from apexrank import ConsensusRank, LpqRank, MonotoneRetargeting, aggregate, metrics

names = [f"page {i}" for i in np.random.default_rng(0).permutation(40)]
sources, targets = np.random.default_rng(1).integers(0, 40, (2, 200))
edges = [names[i] for i in sources], [names[j] for j in targets]
objects = [(name, 1) for name in edges[0]], [(name, 1) for name in edges[1]]
rng = np.random.default_rng(2)
X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
queries = np.array(names)[rng.integers(0, 10, 60)]
orders = [["b", "a", "c"], ["a", "c"], ["c", "b", "a", "d"]]
rank = LpqRank(2).fit(edges)
print(json.dumps([
    [str(name) for name in rank.names_],
    rank.scores_.tolist(),
    [str(name) for name in LpqRank(2).fit(objects).names_],
    [str(name) for name in ConsensusRank("mean").fit([edges, edges[::-1]]).names_],
    [aggregate(orders, kind="orders", method=method).order for method in ("borda", "kemeny", "copeland")],
    aggregate([{"x": 1, "y": 1, "z": 1}, {"z": 2, "w": 0}]).order,
    MonotoneRetargeting().fit(X, y, groups=queries).coef_.tolist(),
    metrics.per_group(y, X[:, 0], ["ndcg"], groups=queries).rows(),
]))
"""


@pytest.mark.slow
def test_hashing_of_text_changes_nothing():
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", NAMED],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    answers, errors = zip(*(process.communicate(timeout=100) for process in running), strict=True)
    assert errors == ("", "")
    assert json.loads(answers[0])[0][0] == "page 0"
    assert answers[0] == answers[1]
