"""MQ2008-agg: parts, folds, errors, and the direction of its rank values."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils import Bunch

from apexrank.datasets.letor import read_letor
from apexrank.errors import InputError
from apexrank.metrics import ndcg
from apexrank_papers.lovasz.aggregation import mq2008_agg_folds

DATA = Path(os.environ.get("APEXRANK_DATA") or Path(__file__).parents[3] / "shared" / "data")
needs_files = pytest.mark.skipif(
    not (DATA / "aggregation" / "MQ2008-agg").is_dir(),
    reason="MQ2008-agg is not here: set APEXRANK_DATA to read it",
)


def line(relevance: int, query: str, document: str, **ranks: int) -> str:
    values = [ranks.get(f"r{j}", "NULL") for j in range(1, 26)]
    features = " ".join(f"{j}:{value}" for j, value in enumerate(values, 1))
    return f"{relevance} qid:{query} {features} #docid = {document} inc = 1 prob = 0.5\n"


@pytest.fixture
def folder(tmp_path):
    for k in range(1, 6):
        text = line(k % 3, f"q{k}", f"D{k}", r1=k, r25=7) + line(0, f"q{k}", "E", r2=3)
        (tmp_path / f"A{k}.txt.gz").write_bytes(gzip.compress(text.encode()))
    return tmp_path


def test_ranks_relevance_and_names(folder):
    part = next(mq2008_agg_folds(folder)).test
    assert part.data.shape == (2, 25)
    assert (part.docids.tolist(), part.groups.tolist()) == (["D5", "E"], ["q5", "q5"])
    assert part.target.tolist() == [2, 0]
    assert part.data[0, [0, 24]].tolist() == [5, 7]
    assert np.isnan(part.data[1, 0])
    assert part.data[1, 1] == 3
    assert part.feature_names[0] == "ranker_1"
    assert part.source.endswith("A5.txt.gz")


def test_folds_go_round(folder):
    folds = list(mq2008_agg_folds(folder))
    assert [fold.name for fold in folds] == [f"Fold{k}" for k in range(1, 6)]
    for k, fold in enumerate(folds):
        at = [f"q{(k + i) % 5 + 1}" for i in range(5)]
        assert fold.train.groups.tolist()[::2] == at[:3]
        assert set(fold.validation.groups) == {at[3]}
        assert set(fold.test.groups) == {at[4]}
        assert fold.train.feature_names[-1] == "ranker_25"


@pytest.mark.parametrize("value", ["0", "-1", "2.5"])
def test_what_is_no_rank(folder, value):
    text = line(1, "q2", "D2", r4=9).replace("4:9", f"4:{value}")
    (folder / "A2.txt.gz").write_bytes(gzip.compress(text.encode()))
    with pytest.raises(InputError, match=f"document D2 of query q2 has the rank {value} for ranker 4"):
        list(mq2008_agg_folds(folder))


def test_missing_folder_and_files(tmp_path, folder, monkeypatch):
    monkeypatch.setenv("APEXRANK_DATA", str(tmp_path))
    with pytest.raises(InputError, match="MQ2008-agg is missing"):
        mq2008_agg_folds()
    (folder / "A4.txt.gz").unlink()
    with pytest.raises(InputError, match=r"lacks A4\.txt"):
        mq2008_agg_folds(folder)


@pytest.fixture(scope="module")
def lists():
    # fold k tests on part k + 4 (cyclically), so the five test sets are the five parts
    parts = [fold.test for fold in mq2008_agg_folds(DATA / "aggregation" / "MQ2008-agg")]
    keys = ("data", "target", "groups", "docids")
    numbers = np.repeat([5, 1, 2, 3, 4], [len(part.target) for part in parts])
    return Bunch(**{key: np.concatenate([part[key] for part in parts]) for key in keys}, part=numbers)


@pytest.mark.slow
@needs_files
def test_counts(lists):
    assert lists.data.shape == (15_211, 25)
    assert len(np.unique(lists.groups)) == 784
    assert len(np.unique(lists.groups[lists.target > 0])) == 784 - 220
    assert np.isnan(lists.data).mean() == pytest.approx(0.65, abs=0.005)
    assert (np.nanmin(lists.data), np.nanmax(lists.data)) == (1, 530)
    for column in lists.data.T:  # no two documents of a query share a position
        known = ~np.isnan(column)
        cells = set(zip(lists.groups[known].tolist(), column[known].tolist(), strict=True))
        assert len(cells) == known.sum()


@pytest.mark.slow
@needs_files
def test_small_numbers_are_the_best_ones(lists):
    """The figures of the docstring, counted pair by pair."""
    smaller, pairs = np.zeros(25), np.zeros(25)
    for query in np.unique(lists.groups):
        rows = lists.groups == query
        ranks, y = lists.data[rows], lists.target[rows]
        above = (y[:, None] > y[None, :])[:, :, None] & np.isfinite(ranks[:, None] + ranks[None, :])
        smaller += (above & (ranks[:, None] < ranks[None, :])).sum(axis=(0, 1))
        pairs += above.sum(axis=(0, 1))
    assert smaller.sum() / pairs.sum() == pytest.approx(0.626, abs=5e-4)
    assert (np.flatnonzero(smaller < pairs / 2) + 1).tolist() == [1, 7, 17]
    for sign, best in ((-1, 0.747), (1, 0.658)):
        scores = np.where(np.isnan(lists.data), -1e9, sign * lists.data)
        values = [ndcg(lists.target, column, groups=lists.groups) for column in scores.T]
        assert max(values) == pytest.approx(best, abs=5e-4)
    listed = [lists.target[~np.isnan(c)].mean() > lists.target[np.isnan(c)].mean() for c in lists.data.T]
    assert (np.flatnonzero(~np.array(listed)) + 1).tolist() == [13, 20, 24, 25]


@pytest.mark.slow
@needs_files
@pytest.mark.skipif(not (DATA / "letor" / "MQ2008").is_dir(), reason="MQ2008 is not in APEXRANK_DATA/letor")
def test_the_documents_are_those_of_mq2008(lists):
    for k in range(1, 6):
        part = read_letor(DATA / "letor" / "MQ2008" / f"S{k}.txt.gz")
        own = lists.part == k
        mine = set(zip(lists.groups[own], lists.docids[own], lists.target[own], strict=True))
        assert mine == set(zip(part.groups, part.docids, part.target, strict=True))
        assert own.sum() == len(mine)
