"""Rankers on Dask give the results of one process, even if workers fail."""

import os
import signal
from dataclasses import dataclass
from typing import ClassVar

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from sklearn.base import clone

from apexrank import metrics, rankers
from apexrank.distributed import (
    DaskBlocks,
    MonotoneRetargeting,
    PNormPush,
    collection_blocks,
    repartition_by_group,
)
from apexrank.distributed import metrics as lazy
from apexrank.errors import InputError
from apexrank.problem import dask as blocks_of_dask
from apexrank.problem.blocks import ArrayBlocks, Block
from apexrank.solvers import LBFGS

pytestmark = pytest.mark.slow  # a cluster of processes
EXACT = {"rtol": 1e-8, "atol": 1e-10}


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes with one thread each."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


def two_classes(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] + rng.normal(size=n) > 1).astype(int), rng.integers(0, 3, n).astype(float)


def graded_frame(n_groups=30, seed=0):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), rng.integers(3, 12, n_groups))
    X = rng.normal(size=(len(groups), 3))
    y = np.digitize(X @ [1.0, -1.0, 0.3] + rng.normal(size=len(groups)), [-1.0, 0.5, 2.0])
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, q=groups)


def made_on_a_worker(k):
    return Block(*two_classes(400, seed=k)[:2])


def test_dask_arrays_give_the_coefficients_of_one_process(client):
    X, y, weight = two_classes()
    options = {"p": 3, "alpha": 0.05, "tol": 1e-10}
    local = rankers.PNormPush(**options).fit(X, y, sample_weight=weight)
    ranker = PNormPush(**options).fit(
        da.from_array(X, chunks=(300, 2)),  # columns in two chunks, rows cut elsewhere than those of y
        da.from_array(y, chunks=500),
        sample_weight=da.from_array(weight, chunks=300),
    )
    np.testing.assert_allclose(ranker.coef_, local.coef_, **EXACT)
    np.testing.assert_allclose(ranker.intercept_, local.intercept_, **EXACT)
    assert ranker.dual_gap_ < 1e-12
    in_blocks = rankers.PNormPush(**options).fit(ArrayBlocks(X, y, weight, rows=300), None)
    np.testing.assert_allclose(ranker.coef_, in_blocks.coef_, rtol=1e-12)


def test_one_worker_and_two_give_the_same_bits(client):
    parts = [dask.delayed(made_on_a_worker)(k) for k in range(5)]
    both = rankers.PNormPush(alpha=0.1, solver="lbfgs").fit(DaskBlocks(parts), None)
    one = next(iter(client.scheduler_info()["workers"]))
    with dask.annotate(workers=[one]):
        alone = rankers.PNormPush(alpha=0.1, solver="lbfgs").fit(
            DaskBlocks([dask.delayed(made_on_a_worker)(k) for k in range(5)]), None
        )
    np.testing.assert_array_equal(both.coef_, alone.coef_)
    assert both.objective_ == alone.objective_


@pytest.mark.parametrize("persist", [True, False])
def test_without_a_client_threads_do_the_work(persist):
    X, y, _ = two_classes()
    local = rankers.PNormPush(alpha=0.1, tol=1e-10, price="log1p").fit(X, y)
    blocks = collection_blocks(
        da.from_array(X, chunks=(250, 4)), da.from_array(y, chunks=250), persist=persist
    )
    ranker = PNormPush(alpha=0.1, tol=1e-10, price="log1p").fit(blocks, None)
    np.testing.assert_allclose(ranker.coef_, local.coef_, **EXACT)
    np.testing.assert_allclose(ranker.intercept_, local.intercept_, **EXACT)


def test_blocks_may_be_used_again(client):
    """A fit releases its blocks to save memory; the next fit computes them again."""
    blocks = DaskBlocks([dask.delayed(made_on_a_worker)(k) for k in range(3)])
    ranker = rankers.PNormPush(alpha=0.1, solver="lbfgs")
    first, second = (ranker.fit(blocks, None).coef_ for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert [len(block.y) for block in blocks] == [400, 400, 400]


def test_prepared_blocks_may_be_prepared_again(client):
    """The fits of a search share blocks: one computation for each fit on columns far from zero."""
    blocks = DaskBlocks([dask.delayed(made_on_a_worker)(k) for k in range(3)])
    first = blocks.prepared(_replace_y, 7)
    for value in (1, 2):
        assert [int(block.y[0]) for block in first.prepared(_replace_y, value)] == [value] * 3
    assert [int(block.y[0]) for block in first] == [7, 7, 7]


def test_a_search_whose_fits_move_the_rows(client):
    X, _, _ = two_classes(300)
    y = (X[:, 0] + 0.3 * X[:, 1] + 0.1 * X[:, 2] * X[:, 3] > 1).astype(int)
    X[:, -1] += 1e5
    options = {"ps": [4, np.inf], "alphas": [0.1], "cv": 3, "l1_ratio": 0.5}
    search = rankers.PNormPushCV(**options).fit(
        da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
    )
    local = rankers.PNormPushCV(**options).fit(X, y)
    for fold in range(3):
        own, expected = (found.cv_results_[f"split{fold}_test_score"] for found in (search, local))
        np.testing.assert_allclose(own, expected, atol=1e-3)


def _replace_y(block, value):
    return block._replace(y=np.full(len(block.y), value))


def test_data_frames_from_parquet(client, tmp_path):
    X, y, _ = two_classes()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    for k in range(3):
        frame[400 * k : 400 * (k + 1)].to_parquet(tmp_path / f"{k}.parquet")
    rows = dd.read_parquet(tmp_path)
    ranker = PNormPush(alpha=0.1, tol=1e-10).fit(rows[list("abcd")], rows["y"])
    local = rankers.PNormPush(alpha=0.1, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ranker.coef_, local.coef_, **EXACT)
    assert ranker.feature_names_in_.tolist() == list("abcd")
    scores = ranker.decision_function(rows[list("abcd")])
    np.testing.assert_allclose(scores.compute(), local.decision_function(X), **EXACT)
    np.testing.assert_array_equal(ranker.predict(rows[list("abcd")]).compute(), local.predict(X))
    with pytest.raises(InputError, match="other columns"):
        ranker.predict(rows[list("dcba")])


def test_scores_are_lazy_and_the_local_ranker_is_ordinary():
    X, y, _ = two_classes()
    ranker = PNormPush(alpha=0.1).fit(da.from_array(X, chunks=(400, 4)), da.from_array(y, chunks=400))
    scores = ranker.decision_function(da.from_array(X, chunks=(100, 2)))
    assert isinstance(scores, da.Array)
    assert scores.chunks == ((100,) * 12,)
    assert type(ranker) is rankers.PNormPush
    np.testing.assert_array_equal(scores.compute(), ranker.decision_function(X))
    with pytest.raises(InputError, match="2 features"):
        ranker.predict(da.from_array(X[:, :2], chunks=(100, 2)))


@dataclass(frozen=True)
class Murderous(LBFGS):
    """Kills a worker at the fourth evaluation of a fit."""

    victims: ClassVar[list] = []

    def solve(self, problem, w0):
        calls, plain = [], problem.value_and_grad

        def value_and_grad(w):
            calls.append(w)
            if len(calls) == 4:
                os.kill(self.victims.pop(), signal.SIGKILL)
            return plain(w)

        problem.value_and_grad = value_and_grad
        return super().solve(problem, w0)


@pytest.mark.slow
def test_a_killed_worker_changes_nothing_but_the_time(client):
    parts = [dask.delayed(made_on_a_worker)(k) for k in range(4)]
    quiet = rankers.PNormPush(alpha=0.01, solver=LBFGS()).fit(DaskBlocks(parts), None)
    pids = client.run(os.getpid)
    Murderous.victims.append(next(iter(pids.values())))
    ranker = rankers.PNormPush(alpha=0.01, solver=Murderous()).fit(DaskBlocks(parts), None)
    assert not Murderous.victims
    np.testing.assert_array_equal(ranker.coef_, quiet.coef_)
    assert ranker.n_iter_ == quiet.n_iter_
    client.wait_for_workers(2)


def queries_made_on_a_worker(k, cut):
    """Queries of 20 rows; with ``cut`` the last query of a block continues in the next one."""
    X, y, _ = two_classes(400, seed=k)
    return Block(X, y, None, (400 * k + np.arange(400) + 10 * cut) // 20)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranker", "cut"),
    [(rankers.PNormPush(p=2, alpha=0.01), True), (rankers.MonotoneRetargeting(alpha=0.01), False)],
    ids=["push in cut groups", "retargeting of whole groups"],
)
def test_a_killed_worker_in_groups(ranker, cut):
    parts = [dask.delayed(queries_made_on_a_worker)(k, cut) for k in range(4)]
    # a cluster of its own: after a few kills Dask no longer starts new workers
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        quiet = clone(ranker).set_params(solver=LBFGS()).fit(DaskBlocks(parts), None)
        Murderous.victims.append(next(iter(client.run(os.getpid).values())))
        found = clone(ranker).set_params(solver=Murderous()).fit(DaskBlocks(parts), None)
    assert not Murderous.victims
    np.testing.assert_allclose(found.coef_, quiet.coef_, rtol=1e-12)
    assert found.n_iter_ == quiet.n_iter_


def test_no_worker_holds_the_rows_of_another(client):
    blocks = DaskBlocks([dask.delayed(made_on_a_worker)(k) for k in range(6)])
    seen = []

    @dataclass(frozen=True)
    class Watching(LBFGS):
        def solve(self, problem, w0):
            parts = problem.design.parts.parts
            solution = super().solve(problem, w0)
            seen.append((client.who_has(parts), client.has_what(), {part.key for part in parts}))
            return solution

    rankers.PNormPush(alpha=0.1, solver=Watching()).fit(blocks, None)
    ((homes, held, keys),) = seen
    assert len(homes) == 6
    assert all(len(workers) == 1 for workers in homes.values())
    assert {worker for workers in homes.values() for worker in workers} == set(
        client.scheduler_info()["workers"]
    )
    assert {key for own in held.values() for key in own if "make_part" in str(key)} == keys
    assert not any("made_on_a_worker" in str(key) for own in held.values() for key in own)
    assert blocks.parts == []


@pytest.mark.slow
def test_retargeting_on_groups_in_any_order(client):
    frame = graded_frame()
    local = rankers.MonotoneRetargeting(tol=1e-10).fit(
        frame[["a", "b", "c"]].to_numpy(), frame.y, groups=frame.q
    )
    mixed = dd.from_pandas(frame.sample(frac=1, random_state=0).reset_index(drop=True), npartitions=3)
    cut = MonotoneRetargeting(tol=1e-10).fit(mixed[["a", "b", "c"]], mixed["y"], groups=mixed["q"])
    np.testing.assert_allclose(cut.coef_, local.coef_, **EXACT)
    whole = repartition_by_group(mixed, "q")
    ranker = MonotoneRetargeting(tol=1e-10).fit(whole[["a", "b", "c"]], whole["y"], groups=whole["q"])
    np.testing.assert_allclose(ranker.coef_, local.coef_, **EXACT)
    assert ranker.n_groups_ == local.n_groups_
    again = MonotoneRetargeting(tol=1e-10).fit(whole[["a", "b", "c"]], whole["y"], groups=whole["q"])
    np.testing.assert_allclose(again.coef_, ranker.coef_, rtol=1e-12)
    scores = ranker.predict(whole[["a", "b", "c"]])
    assert lazy.ndcg(whole["y"], scores, groups=whole["q"].to_dask_array()) == pytest.approx(
        metrics.ndcg(frame.y, local.predict(frame[["a", "b", "c"]].to_numpy()), groups=frame.q), rel=1e-9
    )


def test_measures_are_those_of_arrays():
    X, y, _ = two_classes()
    scores = X[:, 0]
    lazy_y, lazy_scores = da.from_array(y, chunks=500), da.from_array(scores, chunks=500)
    assert lazy.auc(lazy_y, lazy_scores) == metrics.auc(y, scores)
    assert lazy.partial_auc(lazy_y, lazy_scores, 0.2) == metrics.partial_auc(y, scores, max_fpr=0.2)
    assert lazy.precision_at(lazy_y, lazy_scores, 20) == metrics.precision_at(y, scores, k=20)
    assert lazy.ndcg(lazy_y, lazy_scores, 7) == metrics.ndcg(y, scores, k=7)
    groups = np.arange(1200) // 100
    names = ["auc", "ndcg_at_5", "mrr"]
    found = lazy.evaluate(lazy_y, lazy_scores, names, groups=da.from_array(groups, chunks=500))
    assert found == pytest.approx(metrics.evaluate(y, scores, names, groups=groups), rel=1e-12)
    with pytest.raises(InputError, match="has rows in block"):
        lazy.auc(lazy_y, lazy_scores, groups=da.from_array(np.arange(1200) % 7, chunks=500))


def test_measures_refuse_a_group_that_comes_again_far_away():
    groups = np.arange(1200) // 10
    groups[1195:] = 3
    columns = (
        da.from_array(column, chunks=100) for column in (np.arange(1200) % 2, np.arange(1200.0), groups)
    )
    y, scores, groups = columns
    with pytest.raises(
        InputError, match="group 3 has rows in block 0 and in block 11: sort the rows"
    ) as error:
        lazy.ndcg(y, scores, groups=groups)
    assert "\n" not in str(error.value)


def test_bad_input_is_refused_in_one_line():
    X, y, _ = two_classes()
    rows, labels = da.from_array(X, chunks=(300, 4)), da.from_array(y, chunks=300)
    frame = dd.from_pandas(pd.DataFrame({"a": ["x", "y"], "y": [0, 1]}), npartitions=1)
    cases = [
        (lambda: PNormPush().fit(X, labels), "must be a Dask array"),
        (lambda: PNormPush().fit(rows, y), "y must be a Dask array"),
        (lambda: PNormPush().fit(rows, labels[:-1]), "1200 rows, y has 1199"),
        (lambda: PNormPush().fit(rows[:, 0], labels), "two dimensions"),
        (lambda: PNormPush().fit(frame[["a"]], frame["y"]), "does not hold numbers"),
        (lambda: PNormPush().fit(rows[rows[:, 0] > 0], labels), "of another column"),
        (
            lambda: PNormPush().fit(rows.astype(object).map_blocks(np.full_like, "x"), labels),
            "does not hold numbers",
        ),
        (
            lambda: PNormPush().fit(frame[["y"]], frame["y"], sample_weight=frame["a"]),
            "`sample_weight` must be finite",
        ),
        (lambda: repartition_by_group(frame, "q"), "column 'q'"),
        (lambda: collection_blocks(rows, dd.from_dask_array(labels.rechunk(600))), "4 partitions, y has 2"),
    ]
    for work, message in cases:
        with pytest.raises(InputError, match=message) as error:
            work()
        assert "\n" not in str(error.value)


def test_empty_partitions_count_nothing():
    X, y, _ = two_classes()
    rows, labels = da.from_array(X, chunks=(300, 4)), da.from_array(y, chunks=300)
    some = da.from_array(np.arange(1200) >= 300, chunks=300)
    ranker = PNormPush(alpha=0.1, tol=1e-10).fit(rows[some], labels[some])
    local = rankers.PNormPush(alpha=0.1, tol=1e-10).fit(X[300:], y[300:])
    np.testing.assert_allclose(ranker.coef_, local.coef_, **EXACT)


@pytest.mark.parametrize(
    "kinds",
    [
        {"b": "bool"},
        {"b": "boolean", "c": "Int64"},
        {"a": "Float64", "c": "Int8"},
        {"a": "double[pyarrow]", "b": "bool[pyarrow]", "c": "int64[pyarrow]"},
        {"a": "float32", "c": "int16"},
    ],
    ids=lambda kinds: " ".join(kinds.values()),
)
def test_data_frames_of_any_kind_of_numbers(kinds):
    X, y, _ = two_classes()
    plain = pd.DataFrame({"a": X[:, 0], "b": X[:, 1] > 0, "c": np.rint(3 * X[:, 2]).astype(int)})
    frame = plain.astype(kinds)
    rows = dd.from_pandas(frame.assign(y=y), npartitions=3)
    local = rankers.PNormPush(alpha=0.1, tol=1e-10).fit(frame.astype(float), y)
    ranker = PNormPush(alpha=0.1, tol=1e-10).fit(rows[["a", "b", "c"]], rows["y"])
    np.testing.assert_allclose(ranker.coef_, local.coef_, rtol=1e-6)
    np.testing.assert_array_equal(
        ranker.predict(rows[["a", "b", "c"]]).compute(), local.predict(frame.astype(float))
    )


def test_columns_that_are_no_numbers_are_named():
    X, y, _ = two_classes(60)
    frame = pd.DataFrame({"a": X[:, 0], "when": pd.Timestamp("2020-01-01"), "word": "x"}).assign(y=y)
    frame["hole"] = pd.array(np.arange(60), dtype="Int64")
    frame.loc[50, "hole"] = pd.NA
    rows = dd.from_pandas(frame, npartitions=2)
    for names, message in (
        (["a", "when"], "column 'when'"),
        (["a", "word"], "column 'word'"),
        (["a", "hole"], "row 20 of a block is missing or infinite in column 1"),
    ):
        with pytest.raises(InputError, match=message):
            PNormPush().fit(rows[names], rows["y"])


def test_the_same_rows_have_the_same_names():
    """Token by which Dask recognises a block that it already has."""
    X, y, _ = two_classes(60)
    rows = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")).assign(y=y), npartitions=2)
    arrays = da.from_array(X, chunks=(30, 4)), da.from_array(y, chunks=30)
    for given in (arrays, (rows[list("abcd")], rows["y"])):
        first, second = ([part.key for part in collection_blocks(*given).parts] for _ in range(2))
        assert first == second


@pytest.mark.parametrize("kind", ["Int64", "boolean", "int64[pyarrow]", "category", "string"])
def test_labels_of_any_kind(kind):
    X, y, _ = two_classes()
    words = pd.Series(np.where(y == 1, "yes", "no") if kind in ("category", "string") else y).astype(kind)
    rows = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")).assign(y=words), npartitions=3)
    ranker = PNormPush(alpha=0.1).fit(rows[list("abcd")], rows["y"])
    local = rankers.PNormPush(alpha=0.1).fit(X, words)
    assert ranker.classes_.tolist() == local.classes_.tolist()
    np.testing.assert_array_equal(ranker.predict(rows[list("abcd")]).compute(), local.predict(X))
    assert ranker.score(rows[list("abcd")], rows["y"]) == pytest.approx(local.score(X, words), rel=1e-12)


def test_missing_labels_and_weights_are_refused():
    X, y, _ = two_classes(60)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=pd.array(y, dtype="Int64"), w=1.0)
    frame["w"] = frame["w"].astype("Float64")
    frame.loc[41, "y"] = frame.loc[12, "w"] = pd.NA
    rows = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(InputError, match="row 11 of a block has no y"):
        PNormPush().fit(rows[list("abcd")], rows["y"])
    with pytest.raises(InputError, match="`sample_weight` must be finite"):
        PNormPush().fit(rows[list("abcd")], rows["d"] > 0, sample_weight=rows["w"])


def test_scores_of_rankers_are_those_of_arrays(client):
    X, y, weight = two_classes()
    rows, labels = da.from_array(X, chunks=(300, 2)), da.from_array(y, chunks=500)
    ranker = PNormPush(alpha=0.1).fit(rows, labels)
    assert ranker.score(rows, labels) == pytest.approx(ranker.score(X, y), rel=1e-12)
    lazy_weight = da.from_array(weight, chunks=300)
    assert ranker.score(rows, labels, lazy_weight) == pytest.approx(ranker.score(X, y, weight), rel=1e-12)
    assert ranker.score(X, y) == ranker.score(X, y)
    with pytest.raises(InputError, match="y must be a Dask array"):
        ranker.score(rows, y)


def test_the_first_bad_row_is_named_and_no_task_fails(client):
    X, y, _ = two_classes()
    X[[700, 1100], [1, 2]] = np.nan
    rows, labels = da.from_array(X, chunks=(300, 4)), da.from_array(y, chunks=300)
    for _ in range(3):
        with pytest.raises(InputError, match="row 100 of a block is missing or infinite in column 1"):
            PNormPush().fit(rows, labels)
    logs = " ".join(str(line) for own in client.get_worker_logs().values() for line in own)
    assert "InputError" not in logs


def test_one_estimator_fits_tables_in_memory_and_on_dask():
    X, y, weight = two_classes(200)
    lists = np.arange(200) // 10
    push = PNormPush(alpha=0.1).fit(X, y, sample_weight=weight)
    rows = da.from_array(X, chunks=(70, 4)), da.from_array(y, chunks=70)
    lazy_push = PNormPush(alpha=0.1).fit(*rows, sample_weight=da.from_array(weight, chunks=70))
    np.testing.assert_allclose(lazy_push.coef_, push.coef_, rtol=1e-6)
    retarget = MonotoneRetargeting().fit(X, y, groups=lists)
    lazy_lists = MonotoneRetargeting().fit(*rows, groups=da.from_array(lists, chunks=70))
    np.testing.assert_allclose(lazy_lists.coef_, retarget.coef_, rtol=1e-6)


def test_complex_rows_are_refused():
    X, y, _ = two_classes(20)
    with pytest.raises(InputError, match="Complex data not supported"):
        PNormPush(alpha=0.1).fit(da.from_array(X + 1j), da.from_array(y))


def test_rows_without_columns_are_refused():
    _, y, _ = two_classes(20)
    with pytest.raises(InputError, match="X has no columns"):
        PNormPush(alpha=0.1).fit(da.zeros((20, 0)), da.from_array(y))


def test_a_cluster_without_workers_is_an_error(monkeypatch):
    """If all workers have died, Dask waits forever."""
    monkeypatch.setattr(blocks_of_dask, "PATIENCE", 0.2)
    with LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster, Client(cluster):
        make = dask.delayed(lambda: Block(np.ones((3, 1)), np.arange(3)))
        for persist in (True, False):
            blocks = blocks_of_dask.DaskBlocks([make()], persist=persist)
            with pytest.raises(InputError, match="no Dask worker has worked on the rows"):
                blocks.map(len)
