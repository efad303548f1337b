"""Estimators × designs: every public linear estimator on every design.

``test_compose.py`` covers the objectives with every penalty; this module covers the estimators with weights and groups
that straddle blocks and partitions, in double and single precision. Coefficients equal those of a fit in memory.
"""

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from apexrank import InputError
from apexrank.datasets.letor import write_letor
from apexrank.io.stream import read_blocks
from apexrank.problem import ArrayBlocks
from apexrank.rankers import (
    CrucialPairsPush,
    IRPush,
    ListwiseRanker,
    LogisticRanker,
    MonotoneRetargeting,
    PNormPush,
    UnknownLinkRegressor,
)

N, ROWS = 240, 37  # 37: groups of 10 rows are cut
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
QUALITY = X @ [1.0, 0.7, -0.2] + RNG.normal(size=N)
LABELS = (QUALITY > 0.5).astype(int)
CLEAR = (X @ [1.0, 0.7, -0.2] + 0.1 * RNG.normal(size=N) > 0.5).astype(int)  # prevents collapse at p = inf
GRADES = np.digitize(QUALITY, [-0.5, 0.8])
QUERIES = np.repeat(np.arange(N // 10), 10)
WEIGHT = RNG.integers(1, 3, N).astype(float)
EXACT = {"alpha": 0.05, "tol": 1e-9}


def _push(**options):
    return PNormPush(**EXACT | options)


# estimator, labels, groups
FAMILIES = {
    "push": (_push(p=3), LABELS, None),
    "push, alpha from the rows": (PNormPush(p=3, tol=1e-9), LABELS, None),
    "push, elastic net": (_push(p=3, l1_ratio=0.5), LABELS, None),
    "push, lasso": (_push(p=3, l1_ratio=1.0), LABELS, None),
    "push, logistic": (_push(p=2, loss="logistic"), LABELS, None),
    "push, squared hinge": (_push(p=2, loss="squared_hinge"), LABELS, None),
    "push, identity": (_push(price="identity"), LABELS, None),
    "push, exponential price": (_push(price="exponential"), LABELS, None),
    "push, log1p": (_push(price="log1p"), LABELS, None),
    "push, bottom": (_push(p=3, side="bottom"), LABELS, None),
    "push, both": (_push(p=3, side="both"), LABELS, None),
    "push in groups": (_push(p=2, tol=1e-8), LABELS, QUERIES),  # L-BFGS: rounding hides slopes below 3e-9
    "push in groups, logistic": (_push(p=2, loss="logistic", tol=1e-8), LABELS, QUERIES),
    "push in groups, lasso": (_push(p=2, l1_ratio=1.0, tol=1e-8), LABELS, QUERIES),
    "IR push": (IRPush(**EXACT), LABELS, None),
    "logistic regression": (LogisticRanker(alpha=0.05, tol=1e-9), LABELS, None),
    "crucial pairs": (CrucialPairsPush(p=2, **EXACT), GRADES, QUERIES),
    "unknown link": (UnknownLinkRegressor(**EXACT), QUALITY, None),
    "unknown link, its own": (UnknownLinkRegressor(link="cost", **EXACT), QUALITY, None),
}
FAMILIES |= {
    f"retargeting, {name}": (MonotoneRetargeting(name, **EXACT), GRADES, QUERIES)
    for name in ("squared", "kl", "i-divergence", "shifted-i-divergence")
}
FAMILIES |= {
    f"listwise, {name}": (ListwiseRanker(name, **EXACT), GRADES, QUERIES)
    for name in ("listnet", "pointwise", "ndcg_consistent", "unknown_link")
}
# no Hessian, so L-BFGS, as for pushes in groups
FAMILIES["listwise, rank_cosine"] = ListwiseRanker("rank_cosine", alpha=0.05, tol=1e-8), GRADES, QUERIES
# kinks: the minimum is certified, the coefficients are known to the root of the gap
ROUGH = {
    "infinite push": (PNormPush(p=np.inf, alpha=0.05), CLEAR, None),
    "infinite push, hinge": (PNormPush(p=np.inf, loss="hinge", alpha=0.05), CLEAR, None),
    "push, hinge": (_push(p=2, loss="hinge", tol=1e-6), LABELS, None),
}


def given(groups, weight, cut=lambda column: column):
    return {"sample_weight": cut(weight)} | ({} if groups is None else {"groups": cut(groups)})


def in_memory(ranker, rows, y, groups, folder):
    return ranker.fit(rows, y, **given(groups, WEIGHT))


def on_sparse(ranker, rows, y, groups, folder):
    return ranker.fit(sparse.csr_array(rows), y, **given(groups, WEIGHT))


def in_blocks(ranker, rows, y, groups, folder):
    blocks = ArrayBlocks(rows, y, WEIGHT, rows=ROWS)
    blocks.columns[2] = groups  # ArrayBlocks would not split them
    return ranker.fit(blocks, None)


def from_files(suffix):
    def fit(ranker, rows, y, groups, folder):
        frame = pl.DataFrame(rows, schema=list("abc")).with_columns(y=pl.Series(y), w=pl.Series(WEIGHT))
        if groups is not None:
            frame = frame.with_columns(g=pl.Series(groups))
        for k, part in enumerate((frame[:125], frame[125:])) if suffix == "parquet" else [(0, frame)]:
            getattr(part, f"write_{suffix}")(folder / f"{k}.{suffix}")
        path = folder if suffix == "parquet" else folder / "0.csv"
        asked = {"sample_weight": "w", "groups": None if groups is None else "g"}
        return ranker.fit(read_blocks(path, "y", rows=ROWS, **asked), None)

    return fit


def on_dask(ranker, rows, y, groups, folder):
    da = pytest.importorskip("dask.array")
    lazy = lambda column: da.from_array(column, chunks=ROWS)  # noqa: E731
    return ranker.fit(da.from_array(rows, chunks=(ROWS, 3)), lazy(y), **given(groups, WEIGHT, lazy))


def kept_by_dask(ranker, rows, y, groups, folder):
    """Persisted partitions of whole groups: objectives that are sums over groups are evaluated there."""
    da = pytest.importorskip("dask.array")
    from apexrank.distributed import collection_blocks

    columns = [None if part is None else da.from_array(part, chunks=40) for part in (y, groups, WEIGHT)]
    return ranker.fit(collection_blocks(da.from_array(rows, chunks=(40, 3)), *columns, persist=True), None)


def on_data_frames(ranker, rows, y, groups, folder):
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    lists = np.zeros(N) if groups is None else groups
    frame = dd.from_pandas(
        pd.DataFrame(rows, columns=list("abc")).assign(y=y, w=WEIGHT, g=lists), npartitions=5
    )
    return ranker.fit(
        frame[list("abc")], frame["y"], **given(None if groups is None else frame["g"], frame["w"])
    )


def on_device(ranker, rows, y, groups, folder):
    torch = pytest.importorskip("torch")
    pytest.importorskip("array_api_compat")
    return ranker.fit(torch.from_numpy(rows), torch.from_numpy(y), **given(groups, WEIGHT, torch.from_numpy))


DESIGNS = {
    "sparse": on_sparse,
    "blocks": in_blocks,
    "Parquet": from_files("parquet"),
    "CSV": from_files("csv"),
    "Dask": on_dask,
    "Dask, kept": kept_by_dask,
    "Dask frames": on_data_frames,
    "device": on_device,
}
MEMORY = {}


def memory_fit(family):
    """Fit once for all designs."""
    if family not in MEMORY:
        ranker, y, groups = (FAMILIES | ROUGH)[family]
        MEMORY[family] = in_memory(clone(ranker), X, y, groups, None)
    return MEMORY[family]


def same_model(found, expected, rtol):
    scale = np.abs(expected.coef_).max()
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0, atol=rtol * scale)
    if hasattr(expected, "intercept_"):
        np.testing.assert_allclose(found.intercept_, expected.intercept_, rtol=0, atol=10 * rtol * scale)
    assert found.converged_
    assert found.grad_norm_ < 1e-6
    assert np.isnan(found.dual_gap_) == np.isnan(expected.dual_gap_)
    assert not found.dual_gap_ > 1e-6


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_estimator_on_every_design(family, design, tmp_path):
    ranker, y, groups = FAMILIES[family]
    found = DESIGNS[design](clone(ranker), X, y, groups, tmp_path)
    same_model(found, memory_fit(family), rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("family", ROUGH)
def test_losses_with_kinks(family, design, tmp_path):
    ranker, y, groups = ROUGH[family]
    found, expected = DESIGNS[design](clone(ranker), X, y, groups, tmp_path), memory_fit(family)
    both = found.dual_gap_ + expected.dual_gap_
    assert both < 1e-4
    assert abs(found.objective_ - expected.objective_) <= both
    # strong convexity: alpha/2·|w − w*|² is at most the gap, of either fit
    assert np.linalg.norm(found.coef_ - expected.coef_) <= 2 * np.sqrt(2 * both / 0.05)


@pytest.mark.parametrize("design", ["memory", "blocks", "Dask", "Dask, kept", "device"])
@pytest.mark.parametrize("family", FAMILIES)
def test_single_precision(family, design, tmp_path):
    ranker, y, groups = FAMILIES[family]
    fit = in_memory if design == "memory" else DESIGNS[design]
    found = fit(clone(ranker).set_params(tol=1e-7), X.astype(np.float32), y, groups, tmp_path)
    same_model(found, memory_fit(family), rtol=1e-5)


@pytest.mark.parametrize("family", ["retargeting, squared", "listwise, listnet", "crucial pairs"])
def test_letor_files(family, tmp_path):
    """Two files; the second has one feature less and repeats the query ids of the first."""
    ranker, _, _ = FAMILIES[family]
    rows = np.round(X, 3) * (np.arange(N) < 150)[:, None] ** [0, 0, 1]
    for name, part in (("a.txt", slice(0, 150)), ("b.txt.gz", slice(150, N))):
        write_letor(tmp_path / name, rows[part], GRADES[part], QUERIES[part] % 20, zeros=False)
    (tmp_path / "notes.md").write_text("not a table")
    found = clone(ranker).fit(read_blocks(tmp_path, rows=ROWS), None)
    expected = clone(ranker).fit(rows, GRADES, groups=QUERIES % 20)
    same_model(found, expected, rtol=1e-8)
    assert found.feature_names_in_.tolist() == ["feature_1", "feature_2", "feature_3"]


def test_pairs_by_row_numbers_count_through_blocks():
    upper, lower = np.random.default_rng(1).permutation(N)[:200].reshape(2, 100)
    better = QUALITY[upper] > QUALITY[lower]
    pairs = np.where(better, upper, lower), np.where(better, lower, upper)
    expected = CrucialPairsPush(p=2, **EXACT).fit(X, pairs=pairs)
    found = CrucialPairsPush(p=2, **EXACT).fit(ArrayBlocks(X, GRADES, rows=ROWS), pairs=pairs)
    same_model(found, expected, rtol=1e-8)
    da = pytest.importorskip("dask.array")
    rows, y = da.from_array(X, chunks=(ROWS, 3)), da.from_array(GRADES, chunks=ROWS)
    same_model(CrucialPairsPush(p=2, **EXACT).fit(rows, y, pairs=pairs), expected, rtol=1e-8)
    with pytest.raises(InputError, match="weights as a third array"):
        CrucialPairsPush().fit(ArrayBlocks(X, GRADES, WEIGHT), pairs=pairs)
    with pytest.raises(InputError, match="compares rows in memory"):
        CrucialPairsPush(truth=lambda a, b: a[:, 0] > b[:, 0]).fit(ArrayBlocks(X, GRADES))


def test_predictions_of_the_unknown_link(tmp_path):
    expected = memory_fit("unknown link")
    for design in ("blocks", "Dask", "device"):
        ranker = DESIGNS[design](clone(expected), X, QUALITY, None, tmp_path)
        np.testing.assert_allclose(ranker.predict(X), expected.predict(X), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(ranker.fitted_, expected.fitted_, rtol=1e-7, atol=1e-9)
    da, torch = pytest.importorskip("dask.array"), pytest.importorskip("torch")
    lazy = expected.predict(da.from_array(X, chunks=(ROWS, 3)))
    np.testing.assert_array_equal(lazy.compute(), expected.predict(X))
    there = expected.predict(torch.from_numpy(X))
    assert isinstance(there, torch.Tensor)
    np.testing.assert_allclose(there.numpy(), expected.predict(X), rtol=1e-7, atol=1e-9)
    low, high = expected.predict_interval(torch.from_numpy(X))
    assert (low <= high).all()


def test_the_unknown_link_has_no_groups_in_blocks_either():
    with pytest.raises(InputError, match="one link is for all rows"):
        UnknownLinkRegressor().fit(ArrayBlocks(X, QUALITY, None, QUERIES), None)
    with pytest.raises(InputError, match="a kernel needs its rows in memory"):
        UnknownLinkRegressor(kernel="rbf").fit(ArrayBlocks(X, QUALITY), None)
    with pytest.raises(InputError, match="outside `output_range`"):
        UnknownLinkRegressor(output_range=(0, 1)).fit(ArrayBlocks(X, QUALITY), None)


@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4])
def test_logistic_regression_is_that_of_scikit_learn(alpha):
    ours = LogisticRanker(alpha=alpha, tol=1e-10).fit(X, LABELS, sample_weight=WEIGHT)
    theirs = LogisticRegression(C=1 / (alpha * WEIGHT.sum()), solver="newton-cholesky", tol=1e-12)
    theirs.fit(X, LABELS, sample_weight=WEIGHT)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-8)
    with pytest.raises(InputError, match="one intercept for all rows"):
        LogisticRanker().fit(X, LABELS, groups=QUERIES)


def test_workers_evaluate_whole_groups_and_nothing_else(monkeypatch):
    """A split group, a single group and a non-additive form are evaluated in the caller's memory."""
    da = pytest.importorskip("dask.array")
    from apexrank.distributed import collection_blocks
    from apexrank.problem.block_design import BlockDesign

    gathered = []
    monkeypatch.setattr(
        BlockDesign,
        "scores",
        lambda self, w: gathered.append(w) or np.concatenate(self.parts.map(_scores, w)),
    )

    def passes(ranker, y, groups, chunks, persist=True):
        gathered.clear()
        columns = [da.from_array(part, chunks=chunks) for part in (y, groups, WEIGHT)]
        ranker.fit(collection_blocks(da.from_array(X, chunks=(chunks, 3)), *columns, persist=persist), None)
        return len(gathered)

    ranker = ListwiseRanker(**EXACT)
    assert passes(ranker, GRADES, QUERIES, 40) == 0
    assert passes(ranker, GRADES, QUERIES, ROWS) > 2
    assert passes(ranker, GRADES, np.zeros(N), 40) > 2
    assert passes(ranker, GRADES, QUERIES, 40, persist=False) > 2
    assert passes(_push(p=2, l1_ratio=1.0, tol=1e-8), LABELS, QUERIES, 40) > 2
    assert passes(*FAMILIES["listwise, rank_cosine"], 40) > 2


def _scores(part, w):
    return part.X @ w


def test_group_weights_are_of_all_rows():
    """They are not a column of the blocks, so the objective is evaluated in the caller's memory."""
    da = pytest.importorskip("dask.array")
    from apexrank.distributed import collection_blocks

    own = 1.0 + QUERIES % 3
    expected = MonotoneRetargeting(**EXACT).fit(X, GRADES, groups=QUERIES, group_weight=own)
    columns = [da.from_array(part, chunks=40) for part in (GRADES, QUERIES)]
    blocks = collection_blocks(da.from_array(X, chunks=(40, 3)), *columns, persist=True)
    same_model(MonotoneRetargeting(**EXACT).fit(blocks, None, group_weight=own), expected, rtol=1e-8)
