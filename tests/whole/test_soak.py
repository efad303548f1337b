"""Long use in one process, by many threads and by worker processes: no growth, the same answers, never a hang."""

import copy
import gc
import importlib
import inspect
import io
import multiprocessing
import os
import pickle
import pkgutil
import resource
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import cycle, islice
from pathlib import Path

import joblib
import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from typer.testing import CliRunner

import apexrank
from apexrank import (
    AdditiveRanker,
    AdditiveRetargeting,
    AntiTrustRank,
    ConsensusRank,
    CrucialPairsPush,
    DemotedRank,
    InDegree,
    IRPush,
    LinearRanker,
    ListwiseRanker,
    LovaszBregmanKMeans,
    LpqRank,
    MonotoneRetargeting,
    PageRank,
    PNormPush,
    PNormPushCV,
    PushBoost,
    RankBoost,
    TrustRank,
    TwoStagePush,
    UnknownLinkRegressor,
    aggregate,
    metrics,
)
from apexrank.aggregation import LovaszAggregator
from apexrank.cli.app import app
from apexrank.errors import InputError
from apexrank.graph import (
    ConcaveConvexRank,
    FairnessGoodness,
    GuardedPageRank,
    NonBacktrackingRank,
    RobustPageRank,
    SpamMassRank,
    TopMeanRank,
)
from apexrank.io import Recipe, Table, TableRanker, read_table
from apexrank.preprocessing import QueryNormalizer, RampEncoder
from apexrank.rankers import CurvesAndTrees, LetorRanker, LogisticRanker, TreeRanker
from tests.whole import can_import

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
Y = np.arange(20) % 2
X = np.column_stack([Y + RNG.normal(size=20), RNG.normal(size=20)])
QUERIES = np.array(["first", "second"])[np.arange(20) // 10]
EDGES = ["a", "b", "c", "a", "d", "b"], ["b", "c", "a", "c", "a", "d"]
RATINGS = (*EDGES, [1, -2, 2, -1, 3, 1])
BALLOTS = RNG.random((8, 4))
FRAME = pl.DataFrame({"x": X[:, 0], "kind": ["red", "blue"] * 10, "fraud": Y})
TABLE = Table(FRAME)
MODEL = TableRanker.fit(TABLE, Recipe("fraud", categorical=["kind"]), PNormPush(2, alpha=0.1))

# every public estimator and its training data
ESTIMATORS = {
    PNormPush: (PNormPush(4, alpha=0.1), (X, Y)),
    PNormPushCV: (PNormPushCV(ps=[1, 4], alphas=[0.1], cv=2), (X, Y)),
    AdditiveRanker: (AdditiveRanker(alpha=0.1, n_pairs=1), (X, Y)),
    AdditiveRetargeting: (AdditiveRetargeting(), (X, Y)),
    LetorRanker: (LetorRanker(n_folds=2), (X, Y)),
    PushBoost: (PushBoost(n_estimators=2, random_state=0), (X, Y)),
    RankBoost: (RankBoost(t_max=5), (X, Y)),
    LogisticRanker: (LogisticRanker(), (X, Y)),
    TreeRanker: (TreeRanker(rounds=3), (X, Y)),
    CurvesAndTrees: (CurvesAndTrees(rounds=3), (X, Y)),
    IRPush: (IRPush(alpha=0.1), (X, Y)),
    TwoStagePush: (TwoStagePush(PNormPush(1, alpha=0.1), PNormPush(4, alpha=0.1), keep=0.5), (X, Y)),
    CrucialPairsPush: (CrucialPairsPush(2, alpha=0.1), (X, Y)),
    LinearRanker: (LinearRanker(), (X, Y)),
    ListwiseRanker: (ListwiseRanker("listnet"), (X, Y)),
    MonotoneRetargeting: (MonotoneRetargeting(), (X, Y)),
    UnknownLinkRegressor: (UnknownLinkRegressor(), (X, X[:, 0])),
    QueryNormalizer: (QueryNormalizer(), (X,)),
    RampEncoder: (RampEncoder(), (X,)),
    PageRank: (PageRank(), (EDGES,)),
    LpqRank: (LpqRank(2), (EDGES,)),
    InDegree: (InDegree(), (EDGES,)),
    TopMeanRank: (TopMeanRank(2), (EDGES,)),
    GuardedPageRank: (GuardedPageRank(), (EDGES,)),
    NonBacktrackingRank: (NonBacktrackingRank(), (EDGES,)),
    RobustPageRank: (RobustPageRank(), (EDGES,)),
    SpamMassRank: (SpamMassRank(), (EDGES,), {"trusted": ["a"]}),
    ConcaveConvexRank: (ConcaveConvexRank(), (EDGES,)),
    FairnessGoodness: (FairnessGoodness(), (RATINGS,)),
    TrustRank: (TrustRank(), (EDGES,), {"trusted": ["a"]}),
    AntiTrustRank: (AntiTrustRank(), (EDGES,), {"distrusted": ["d"]}),
    DemotedRank: (DemotedRank(), (EDGES,), {"trusted": ["a"], "distrusted": ["d"]}),
    ConsensusRank: (ConsensusRank("mean"), ([EDGES, EDGES[::-1]],)),
    LovaszBregmanKMeans: (LovaszBregmanKMeans(2, n_init=1, random_state=0), (BALLOTS,)),
    LovaszAggregator: (LovaszAggregator(), (X, Y), {"groups": QUERIES}),
}
every_estimator = pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)


def fitted(kind):
    estimator, data, *options = ESTIMATORS[kind]
    return clone(estimator).fit(*data, **(options[0] if options else {}))


def answer(estimator, rows=None):
    """Results of a fitted estimator on its training data, or on other rows of the same groups, as bytes."""
    _, data, *options = ESTIMATORS[type(estimator)]
    groups = options[0] if options and "groups" in options[0] else {}
    for name in ("decision_function", "predict", "transform"):
        if hasattr(estimator, name):
            rows = data[0] if rows is None else rows
            return np.asarray(getattr(estimator, name)(rows, **groups)).tobytes()
    return estimator.scores_.tobytes()


def public_estimators():
    for module in pkgutil.walk_packages(apexrank.__path__, "apexrank."):
        if module.name.split(".")[1] not in ("cli", "distributed") and can_import(module.name):
            home = importlib.import_module(module.name)
            for thing in (getattr(home, name) for name in getattr(home, "__all__", ())):
                if inspect.isclass(thing) and issubclass(thing, BaseEstimator):
                    yield thing


def test_every_public_estimator_is_here():
    bases = {"GraphRank"}
    assert {kind.__name__ for kind in public_estimators()} - bases == {kind.__name__ for kind in ESTIMATORS}


# -------------------------------------------------------------------------------------------------- long use


def memory():
    """Current memory of this process in bytes, or its peak if the system does not report it."""
    gc.collect()
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def growth(steps, number):
    """Growth in bytes and Python objects during the second or the last third of the given steps, whichever is less.

    A leak grows in both. The allocator takes some 7 MB more once, at a moment that depends on threads.
    """
    run, states = islice(cycle(steps), number), []
    for _ in range(3):
        for step in islice(run, number // 3):
            step()
        states.append((memory(), sys.getallocatedblocks()))
    return np.diff(states, axis=0).min(axis=0).tolist()


def steps_of(folder):
    """About three hundred actions from the whole library, quicker ones more often."""
    rankers = [
        fitted(kind) for kind in (PNormPush, RankBoost, ListwiseRanker, MonotoneRetargeting, CrucialPairsPush)
    ]
    graph_rank, links = PageRank(), (np.array([0, 1, 2, 0]), np.array([1, 2, 0, 2]))
    (folder / "new.csv").write_text(FRAME.write_csv())
    apexrank.save(MODEL, folder / "model.apex")

    def command():
        result = CliRunner().invoke(
            app, ["rank", str(folder / "model.apex"), str(folder / "new.csv"), "--top", "2"]
        )
        assert result.exit_code == 0, result.output

    def saved_and_loaded():
        apexrank.save(MODEL, folder / "model.apex")
        apexrank.load(folder / "model.apex")

    def refused():
        with pytest.raises(ValueError, match="p"):
            PNormPush(-1).fit(X, Y)

    common = [lambda ranker=ranker: answer(ranker) for ranker in rankers]
    common += [
        lambda: metrics.auc(Y, X[:, 0]),
        lambda: metrics.evaluate(Y, X[:, 0], ["ndcg", "map"], groups=QUERIES),
        lambda: graph_rank.fit(links),
        lambda: aggregate(BALLOTS, method="borda").order,
        lambda: MODEL.score(TABLE),
    ]
    slow = {LetorRanker, PNormPushCV, TwoStagePush, PushBoost, ConsensusRank, LovaszAggregator}
    steps = 30 * common
    for kind in ESTIMATORS:
        steps.insert(3 * len(steps) // 4, lambda kind=kind: fitted(kind)) if kind not in slow else None
    steps += [
        lambda: LpqRank(2).fit(EDGES).top(2),
        lambda: aggregate([["a", "b"], ["b", "a"], ["a", "b"]], kind="orders", method="kemeny").order,
        lambda: pickle.loads(pickle.dumps(rankers[0])),
        lambda: metrics.per_group(Y, X[:, 0], ["auc"], groups=QUERIES),
        saved_and_loaded,
        refused,
        lambda: read_table(folder / "new.csv"),
    ]
    rare = cycle([*(lambda kind=kind: fitted(kind) for kind in slow), command])
    return [*steps, lambda: next(rare)()]


@quiet
@pytest.mark.slow
def test_ten_thousand_fits_and_ranks_do_not_grow_the_process(tmp_path, counted):
    steps, number = steps_of(tmp_path), 10_000
    each = list(dict.fromkeys(steps))
    for step in each * 20:  # load, compile and cache everything before counting
        step()
    grown, objects = growth(steps, number)
    assert grown < 500_000
    assert objects < 500
    counted("fits and ranks in one process", number)


ROOT = Path(__file__).parents[2]
LEAK = """
import numpy as np
from tests.whole.test_soak import growth
kept = []
# arrays so large that the system gives fresh memory for each
print(*growth([lambda: kept.append((np.ones(40_000), [object() for _ in range(9)]))], 300), len(kept))
"""


@pytest.mark.slow
def test_a_leak_would_be_seen():
    """Test of the measurement: a leak in every step is far above both limits.

    Runs in a separate process, because memory freed by earlier tests would count against it.
    """
    run = subprocess.run([sys.executable, "-c", LEAK], cwd=ROOT, capture_output=True, text=True, check=True)
    grown, objects, kept = map(int, run.stdout.split())
    assert grown > 4_000_000
    assert objects > 1_000
    assert kept == 300


# --------------------------------------------------------------------------------------------------- threads


def in_eight_threads(compute, times=64):
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(compute, range(times)))


@quiet
@every_estimator
def test_eight_threads_use_one_fitted_model(kind):
    model = fitted(kind)
    alone = answer(model)
    assert set(in_eight_threads(lambda _: answer(model))) == {alone}


@every_estimator
@pytest.mark.slow
def test_eight_threads_fit_models_of_their_own(kind):
    with warnings.catch_warnings():  # which threads share
        warnings.simplefilter("ignore", ConvergenceWarning)
        alone = answer(fitted(kind))
        assert set(in_eight_threads(lambda _: answer(fitted(kind)), 16)) == {alone}


def test_eight_threads_rank_tables_and_files(tmp_path):
    alone = MODEL.score(TABLE).tobytes()
    assert set(in_eight_threads(lambda _: MODEL.score(TABLE).tobytes())) == {alone}
    path = tmp_path / "model.apex"
    apexrank.save(MODEL, path)
    assert set(in_eight_threads(lambda _: apexrank.load(path).score(TABLE).tobytes(), 16)) == {alone}


@pytest.mark.slow
def test_eight_threads_share_a_large_graph():
    """Large enough that each of the eight starts its own threads."""
    links = np.random.default_rng(0).integers(0, 20_000, (2, 450_000))
    alone = PageRank().fit(tuple(links)).scores_.tobytes()
    assert set(in_eight_threads(lambda _: PageRank().fit(tuple(links)).scores_.tobytes(), 8)) == {alone}


# --------------------------------------------------------------------------------------------------- copies


@quiet
@every_estimator
def test_copies_answer_as_the_original(kind, counted):
    """Pickled with every protocol, copied, and written by joblib; unfitted estimators keep their parameters."""
    model = fitted(kind)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    protocols = range(2, pickle.HIGHEST_PROTOCOL + 1)
    copies = [pickle.loads(pickle.dumps(model, protocol)) for protocol in protocols]
    copies += [copy.deepcopy(model), copy.copy(model), joblib.load(file)]
    assert {answer(one) for one in copies} == {answer(model)}
    unfitted = ESTIMATORS[kind][0]
    for protocol in protocols:
        assert repr(pickle.loads(pickle.dumps(unfitted, protocol))) == repr(unfitted)
    assert not [name for name in vars(clone(model)) if name.endswith("_") and not name.startswith("_")]
    counted("copies of estimators", len(copies) + len(protocols))


# ------------------------------------------------------------------------------------------ worker processes


def numbers_of_text(folder):
    """Everything that indexes text ids, and tables of measures: typical work of a worker."""
    return [
        LpqRank(2).fit(EDGES).names_.tolist(),
        LpqRank(2).fit((np.array(EDGES[0]), np.array(EDGES[1]))).scores_.tolist(),
        PageRank().fit(([10**12, 3, 5], [3, 5, 10**12])).names_.tolist(),
        PageRank().fit((["a", "b"], [1, 2])).names_.tolist(),
        PageRank().fit(pl.DataFrame({"source": ["b", "a"], "target": ["a", "c"]})).names_.tolist(),
        metrics.per_group(Y, X[:, 0], ["auc", "mrr"], groups=QUERIES).rows(),
        metrics.compare({"a": X[:, 0], "b": X[:, 1]}, None, Y, measures="auc", n_resamples=20).rows(),
        aggregate([["a", "b"], ["b", "a"], ["b", "a"]], kind="orders").order,
        PNormPush(2, alpha=0.1).fit(X, Y, groups=QUERIES).coef_.tolist(),
    ]


OF_TABLES = [kind for kind, (_, data, *_) in ESTIMATORS.items() if data[0] is X or data[0] is BALLOTS]


def frame_of(kind):
    rows = ESTIMATORS[kind][1][0]
    return pl.DataFrame(rows, schema=[f"column {j}" for j in range(rows.shape[1])])


def fitted_on_frame(kind):
    estimator, data, *options = ESTIMATORS[kind]
    return clone(estimator).fit(frame_of(kind), *data[1:], **(options[0] if options else {}))


@cache
def models_of_frames():
    """Fitted before the fork, so that the test sees only the work of the worker."""
    return {kind: fitted_on_frame(kind) for kind in OF_TABLES}


def tables(folder):
    """Functions that need polars threads: the result, or the one-line error."""
    answers = []
    (Path(folder) / "edges.csv").write_text("source,target\na,b\nb,c\nc,a\n")
    (Path(folder) / "edges.txt").write_text("1000000 2\n2 3\n3 1000000\n")
    for compute in (
        lambda: len(read_table(Path(folder) / "edges.csv")),
        lambda: PageRank().fit(Path(folder) / "edges.csv").names_.tolist(),
        lambda: PageRank().fit(Path(folder) / "edges.txt").names_.tolist(),
        lambda: MODEL.score(TABLE).tolist(),
        lambda: aggregate(pl.DataFrame({"a": [1, 2], "b": [2, 3]})).order,
        *(lambda kind=kind: [fitted_on_frame(kind)] for kind in OF_TABLES),
        *(lambda kind=kind: [answer(models_of_frames()[kind], frame_of(kind))] for kind in OF_TABLES),
    ):
        try:
            answers.append(compute())
        except InputError as error:
            answers.append(str(error))
    return answers


def _report(connection, compute, folder):
    try:
        connection.send(compute(folder))
    except BaseException as error:
        connection.send(repr(error))


def in_child(method, compute, folder, patience=100):
    """Result of a child process; a child that hangs is killed and fails the test."""
    FRAME.sort("x")  # polars has its threads
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_report, args=(theirs, compute, str(folder)))
    with warnings.catch_warnings():  # newer versions of Python warn of forks where there are threads
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    theirs.close()
    try:
        assert ours.poll(patience), "the child hangs"
        return ours.recv()
    finally:
        child.kill()
        child.join()


METHODS = [method for method in ("fork", "spawn") if method in multiprocessing.get_all_start_methods()]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.slow
def test_worker_processes_give_the_same_answers(method, tmp_path):
    assert in_child(method, numbers_of_text, tmp_path) == numbers_of_text(tmp_path)


@quiet
@pytest.mark.skipif("fork" not in METHODS, reason="this system cannot fork")
def test_what_a_forked_worker_cannot_do_is_refused_in_one_line(tmp_path):
    numbers_of_text(tmp_path)
    models_of_frames()
    for refusal in in_child("fork", tables, tmp_path):
        assert "by polars, whose threads did not survive the fork of this process" in refusal
        assert "'spawn' or 'forkserver'" in refusal
    assert [type(one) for one in tables(tmp_path)] == [int, *[list] * (4 + 2 * len(OF_TABLES))]


def sleeping(folder):
    time.sleep(100)


@pytest.mark.slow
def test_a_hang_would_be_seen(tmp_path):
    """Test of the helper: a child that never answers is killed."""
    with pytest.raises(AssertionError, match="the child hangs"):
        in_child(METHODS[0], sleeping, tmp_path, patience=0.5)
    left = multiprocessing.active_children()
    assert not [child for child in left if "Loky" not in type(child).__name__]  # joblib's wait for more work


@pytest.mark.slow
def test_workers_of_joblib_search_as_one_process_does():
    grid = {"alpha": [0.1, 1.0]}
    alone, together = (
        GridSearchCV(PNormPush(2), grid, cv=2, n_jobs=jobs, scoring=metrics.get_scorer("auc")).fit(X, Y)
        for jobs in (1, 2)
    )
    assert together.cv_results_["mean_test_score"].tolist() == alone.cv_results_["mean_test_score"].tolist()
    assert together.best_estimator_.coef_.tolist() == alone.best_estimator_.coef_.tolist()
