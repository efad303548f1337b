"""Measures of real runs against trec_eval and ir-measures: features of MQ2008 as rankings, including ties."""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from apexrank.datasets.letor import read_letor
from apexrank.io import judged, read_qrels, read_run, write_qrels, write_run
from apexrank.metrics import err, evaluate, ndcg, per_group

FOLDER = (
    Path(os.environ.get("APEXRANK_DATA") or Path(__file__).parents[3] / "shared" / "data")
    / "letor"
    / "MQ2008"
)
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="MQ2008 is not in APEXRANK_DATA/letor")
FEATURES = (25, 39, 46)  # BM25 and a language model of the text, and one with many ties

PEERS = {
    "map": "map",
    "recip_rank": "mrr",
    "ndcg": None,
    "ndcg_cut_10": None,
    "P_5": "p@5",
    "recall_10": "recall@10",
}


@pytest.fixture(scope="module", params=FEATURES)
def files(request, tmp_path_factory):
    """A run and its qrels, written and read again."""
    folder = tmp_path_factory.mktemp("trec")
    parts = [read_letor(FOLDER / f"S{k}.txt.gz") for k in range(1, 6)]
    names = {
        "query": np.concatenate([part.groups for part in parts]),
        "document": np.concatenate([part.docids for part in parts]),
    }
    scores = np.concatenate([part.data[:, request.param - 1] for part in parts]).astype(np.float32)
    write_run({**names, "score": scores.astype(float)}, folder / "run.txt")
    write_qrels({**names, "relevance": np.concatenate([part.target for part in parts])}, folder / "qrels.txt")
    return read_run(folder / "run.txt"), read_qrels(folder / "qrels.txt")


@pytest.fixture(scope="module")
def rows(files):
    frame = judged(*files)
    return tuple(frame[name].to_numpy() for name in ("relevance", "score", "query"))


def dictionaries(run: pl.DataFrame, qrels: pl.DataFrame) -> tuple[dict, dict]:
    made: tuple[dict, dict] = {}, {}
    for target, frame, value in ((made[0], run, "score"), (made[1], qrels, "relevance")):
        for query, document, number in frame.select("query", "document", value).iter_rows():
            target.setdefault(query, {})[document] = int(number) if value == "relevance" else number
    return made


def test_trec_eval(files, rows):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier is not installed")
    y, scores, groups = rows
    run, qrels = dictionaries(*files)
    wanted = {"map", "recip_rank", "ndcg", "ndcg_cut.10", "P.5", "recall.10"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, wanted).evaluate(run)
    names = [name for name in PEERS.values() if name]
    table = per_group(y, scores, names, groups=groups, ties="given", relevant=1)
    assert len(table) == 784
    assert (table["relevant"] == 0).sum() == 220
    for record in table.iter_rows(named=True):
        for peer, name in PEERS.items():
            if name is not None:
                assert theirs[record["group"]][peer] == pytest.approx(record[name] or 0.0, abs=1e-10)
    # trec_eval's NDCG uses the relevance itself as gain, and counts a query without relevant documents as 0
    for peer, k in (("ndcg", None), ("ndcg_cut_10", 10)):
        ours = ndcg(y, scores, k=k, gain="linear", groups=groups, ties="given", empty="zero")
        assert np.mean([query[peer] for query in theirs.values()]) == pytest.approx(ours, abs=1e-10)


def test_ir_measures(files, rows):
    ir_measures = pytest.importorskip("ir_measures", reason="ir-measures is not installed")
    pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier is not installed")
    y, scores, groups = rows
    run, qrels = dictionaries(*files)
    peers = {
        ir_measures.AP: "map",
        ir_measures.RR: "mrr",
        ir_measures.P @ 10: "p@10",
        ir_measures.R @ 5: "recall@5",
    }
    theirs = ir_measures.calc_aggregate(list(peers), qrels, run)
    ours = evaluate(y, scores, list(peers.values()), groups=groups, ties="given", relevant=1, empty="zero")
    for measure, name in peers.items():
        assert theirs[measure] == pytest.approx(ours[name], abs=1e-10)


def test_gdeval(files, rows):
    """ERR and NDCG with exponential gain; the script prints five decimals."""
    ir_measures = pytest.importorskip("ir_measures", reason="ir-measures is not installed")
    if not ir_measures.gdeval.is_available():
        pytest.skip("gdeval needs perl, which is not installed")
    y, scores, groups = rows
    run, qrels = dictionaries(*files)
    measures = [ir_measures.ERR @ 10, ir_measures.nDCG(dcg="exp-log2") @ 10]
    theirs = ir_measures.calc_aggregate(measures, qrels, run)
    options = {"k": 10, "groups": groups, "ties": "given", "empty": "zero"}
    assert theirs[measures[0]] == pytest.approx(err(y, scores, max_grade=4, **options), abs=5.1e-6)
    assert theirs[measures[1]] == pytest.approx(ndcg(y, scores, **options), abs=5.1e-6)


def test_err_of_every_query(rows):
    y, scores, groups = rows
    found = per_group(y, scores, ["err", "err@5"], groups=groups, ties="given")
    for group, _, relevant, whole, five in found.iter_rows():
        chance = (2.0 ** y[groups == group] - 1) / 4  # the highest grade is 2
        terms = chance * np.cumprod(np.concatenate([[1.0], 1 - chance[:-1]])) / np.arange(1, len(chance) + 1)
        if relevant:
            assert (whole, five) == pytest.approx((terms.sum(), terms[:5].sum()), abs=1e-10)
        else:
            assert whole is None
            assert not terms.any()
