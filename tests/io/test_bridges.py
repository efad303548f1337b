"""ir_datasets and PyTerrier: frames in their documented form, and the packages themselves if installed."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pandas as pd
import pytest

from apexrank import MonotoneRetargeting, datasets, io, metrics
from apexrank.errors import InputError

Qrel = namedtuple("Qrel", "query_id doc_id relevance iteration")
ScoredDoc = namedtuple("ScoredDoc", "query_id doc_id score")
EXAMPLE = datasets.make_letor_example(n_queries=30, random_state=0)


class Dataset:
    """The part of an ir_datasets dataset that we read."""

    def qrels_iter(self):
        yield Qrel("1", "b", 2, "0")
        yield Qrel("2", "a", -1, "0")

    def scoreddocs_iter(self):
        yield ScoredDoc("1", "a", 1.0)
        yield ScoredDoc("1", "b", 0.5)


def results(example=EXAMPLE):
    """Results of a pipeline with features, and qrels with the relevant documents only, both in PyTerrier's form."""
    rows = pd.DataFrame(
        {
            "qid": example.groups,
            "docno": example.docids,
            "score": example.data[:, 0],
            "features": list(example.data),
        }
    )
    qrels = pd.DataFrame(
        {"qid": example.groups, "docno": example.docids, "label": example.target.astype(int)}
    )
    return rows, qrels[qrels.label > 0]


def test_datasets_frames_and_iterables_give_the_same_rows():
    qrels = io.qrels_frame(Dataset())
    assert qrels.rows() == [("1", "b", 2), ("2", "a", -1)]
    assert io.qrels_frame(Dataset().qrels_iter()).equals(qrels)
    frame = pd.DataFrame({"docno": ["b", "a"], "qid": [1, 2], "label": [2, -1]})
    assert io.qrels_frame(frame).equals(qrels)
    run = io.run_frame(Dataset())
    assert run.rows() == [("1", "a", 1.0), ("1", "b", 0.5)]
    assert io.judged(run, qrels)["relevance"].to_list() == [0, 2]


def test_measures_of_a_run_are_those_of_its_rows():
    rows, qrels = results()
    joined = io.judged(io.run_frame(rows), io.qrels_frame(qrels))
    found = metrics.ndcg(joined["relevance"], joined["score"], groups=joined["query"])
    direct = metrics.ndcg(EXAMPLE.target, EXAMPLE.data[:, 0], groups=EXAMPLE.groups)
    assert found == pytest.approx(direct, abs=1e-12)


def test_features_become_the_rows_of_a_letor_file(tmp_path):
    rows, qrels = results()
    found = io.feature_rows(rows.sample(frac=1, random_state=1).sort_index(), qrels)
    for key in ("data", "target", "groups", "docids", "feature_names"):
        np.testing.assert_array_equal(found[key], EXAMPLE[key])
    labelled = rows.assign(label=-EXAMPLE.target)
    assert io.feature_rows(labelled).target.max() == 0
    datasets.write_letor(tmp_path / "x.txt", found.data, found.target, found.groups, found.docids)
    np.testing.assert_array_equal(datasets.read_letor(tmp_path / "x.txt").data, EXAMPLE.data)


def test_unjudged_documents_have_relevance_0_and_rows_keep_their_order():
    frame = pd.DataFrame({"qid": [3, 1, 3], "docno": [7, 7, 5], "features": [[1.0], [2.0], [3.0]]})
    found = io.feature_rows(frame, pd.DataFrame({"qid": ["3", "1"], "docno": ["5", "9"], "label": [1, 2]}))
    assert found.target.tolist() == [0, 0, 1]
    assert found.data.ravel().tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (lambda: io.qrels_frame(pd.DataFrame({"qid": [], "docno": []})), "no column 'label'"),
        (lambda: io.qrels_frame(pd.DataFrame({"qid": [], "docno": [], "label": []})), "there is no row"),
        (lambda: io.run_frame([]), "there is no row with a score"),
        (lambda: io.run_frame(object()), "without scoreddocs_iter has no score"),
        (lambda: io.feature_rows(results()[0]), "no column 'label'"),
        (
            lambda: io.feature_rows(
                pd.DataFrame({"qid": [1, 1], "docno": [1, 2], "features": [[1], [1, 2]]})
            ),
            "different numbers of features",
        ),
        (
            lambda: io.CountedGroups(MonotoneRetargeting()).fit(np.ones((3, 1)), [0, 1, 2]),
            "sizes of the queries",
        ),
        (
            lambda: io.CountedGroups(MonotoneRetargeting()).fit(np.ones((3, 1)), [0, 1, 2], group=[2, 2]),
            "3 rows in all",
        ),
    ],
)
def test_faults(wrong, what):
    with pytest.raises(InputError, match=what):
        wrong()


def test_ir_datasets_itself(tmp_path):
    ir_datasets = pytest.importorskip("ir_datasets", reason="ir_datasets is not installed")
    path = tmp_path / "qrels"
    path.write_text("q1 0 d7 2\nq1 0 d3 0\n")
    dataset = ir_datasets.create_dataset(qrels_trec=str(path))
    assert io.qrels_frame(dataset).rows() == io.read_qrels(path).rows()
    with pytest.raises(InputError, match="without scoreddocs_iter"):
        io.run_frame(dataset)


def test_a_stage_of_a_pyterrier_pipeline():
    pt = pytest.importorskip("pyterrier", reason="PyTerrier is not installed")
    rows, qrels = results()
    learner = io.CountedGroups(MonotoneRetargeting())
    stage = pt.ltr.apply_learned_model(learner, form="ltr")
    stage.fit(rows, qrels, rows, qrels)
    direct = MonotoneRetargeting().fit(EXAMPLE.data, EXAMPLE.target, groups=EXAMPLE.groups)
    ranked = stage.transform(rows)
    np.testing.assert_allclose(ranked["score"], direct.predict(EXAMPLE.data), rtol=1e-4)
    joined = io.judged(io.run_frame(ranked), io.qrels_frame(qrels))
    assert metrics.ndcg(joined["relevance"], joined["score"], groups=joined["query"]) > 0.7
