"""The listwise tables on synthetic folds, and the results of monotone retargeting on MQ2008."""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import apexrank_papers as papers
from apexrank import InputError, MonotoneRetargeting, metrics
from apexrank.cli.app import app
from apexrank.datasets import letor_folds, make_letor_example, write_letor
from apexrank_papers.retargeting import methods
from apexrank_papers.retargeting.methods import Method, choose, grid

MQ2008 = (
    Path(os.environ.get("APEXRANK_DATA") or Path(__file__).parents[3] / "shared" / "data")
    / "letor"
    / "MQ2008"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Five files with a few queries, and short searches."""
    for k in range(5):
        made = make_letor_example(n_queries=12, random_state=k)
        groups = [f"{k}-{group}" for group in made.groups]
        write_letor(tmp_path / f"S{k + 1}.txt", made.data, made.target, groups, made.docids)
    monkeypatch.setattr(methods, "PENALTIES", (1e-5, 1.0))
    monkeypatch.setattr(methods, "ALPHAS", (0.1, 1.0))
    monkeypatch.setattr(methods, "MOST_ALTERNATIONS", 2)
    return tmp_path


def test_letor_folder(folder):
    result = papers.run("letor", data=str(folder), paper="mq2008", trees=False)
    view = result.view
    assert {"unnormalized MR, KL", "baseline, SQ", "MEMR, SQ", "RankCosine"} <= set(view["method"])
    value = result.table.filter((pl.col("method") == "MEMR, SQ") & (pl.col("measure") == "NDCG"))
    assert value["printed"].item() == 0.7619
    assert value["low"].item() < value["value"].item() < value["high"].item()
    assert 0.8 < value["value"].item() < 1
    assert len(result.verdicts) == 12 + 6  # printed numbers, and the method that the text calls better
    assert {verdict.word for verdict in result.verdicts} <= {"agrees", "within noise", "differs"}
    titles = [ax.get_title() for ax in result.figure.axes]
    assert titles == [
        f"{name} (Figure 3.{k})" for name, k in (("I-div", 6), ("KL", 7), ("SQ", 8)) for _ in "ab"
    ]


@pytest.mark.parametrize(("paper", "figure", "n_printed"), [("mq2007", "3.5", 9), ("ohsumed", None, 12)])
def test_papers_with_other_sets(folder, paper, figure, n_printed):
    result = papers.run("letor", data=str(folder), paper=paper, trees=False)
    assert len(result.verdicts) == n_printed + 6
    title = "KL" if figure is None else f"KL (Figure {figure})"
    assert result.figure.axes[2].get_title() == title


def test_values_are_means_over_the_test_queries(folder):
    """One ranker without tuning, computed by hand."""
    folds = list(letor_folds(folder))
    method = Method("MEMR", "SQ", grid(MonotoneRetargeting, alpha=(1.0,)))
    values = []
    for fold in folds:
        y, queries = fold.train.target, fold.train.groups
        told = sum(np.ptp(y[queries == q]) > 0 for q in np.unique(queries))  # the dissertation sums over them
        ranker = MonotoneRetargeting(alpha=1.0 / told).fit(fold.train.data, y, groups=queries)
        scores = ranker.predict(fold.test.data)
        np.testing.assert_allclose(choose(method, fold).scores, scores)
        table = metrics.per_group(fold.test.target, scores, "ndcg", groups=fold.test.groups)
        values += table["ndcg"].drop_nulls().to_list()
    y = np.concatenate([fold.test.target for fold in folds])
    scores = np.concatenate([choose(method, fold).scores for fold in folds])
    groups = np.concatenate([fold.test.groups for fold in folds])
    assert metrics.ndcg(y, scores, groups=groups) == pytest.approx(np.mean(values))


def test_the_best_on_validation_is_taken(folder):
    fold = next(iter(letor_folds(folder)))

    def candidates(train, validation):
        yield "good", lambda X: fold.validation.target if len(X) == len(fold.validation.target) else X[:, 0]
        yield "bad", lambda X: -X[:, 0]

    assert choose(Method("made up", "", candidates), fold).settings == "good"


def run(*args, code):
    result = CliRunner().invoke(app, ["reproduce", "letor", *map(str, args)])
    assert result.exit_code == code, result.output
    return result


def test_command_line(folder, monkeypatch):
    monkeypatch.setattr(methods, "peers", lambda: ([], []))
    result = run("--data", folder, "--paper", "ohsumed", "--json", code=0)  # other data than recorded
    assert '"MEMR, SQ"' in result.stdout


def test_command_line_faults(folder):
    assert "name it with --data DIR" in run(code=2).stderr
    assert "unknown --paper 'web'" in run("--data", folder, "--paper", "web", code=2).stderr
    (folder / "empty").mkdir()
    assert "S1.txt" in run("--data", folder / "empty", code=2).stderr


def test_without_the_data_mq2008_says_where_to_put_them(monkeypatch):
    monkeypatch.delenv("APEXRANK_DATA", raising=False)
    with pytest.raises(InputError, match="letor/MQ2008 below APEXRANK_DATA"):
        papers.run("mq2008")


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_boosted_trees(folder, name):
    pytest.importorskip(name, reason=f"{name} is not installed: pip install apexrank[boosting]")
    fold = next(iter(letor_folds(folder)))
    found, missing = methods.peers()
    assert not [sentence for sentence in missing if name in sentence.lower()]
    for method in found:
        if method.family.lower().startswith(name):
            chosen = choose(method, fold)
            assert metrics.ndcg(fold.test.target, chosen.scores, groups=fold.test.groups) > 0.7


@pytest.mark.skipif(not MQ2008.is_dir(), reason="MQ2008 is not in APEXRANK_DATA/letor")
def test_mq2008():
    """Five folds, alpha chosen on validation: the figures of the README and a little below."""
    folds = list(letor_folds(MQ2008))
    method = Method("MEMR", "SQ", grid(MonotoneRetargeting, alpha=methods.ALPHAS))
    scores = np.concatenate([choose(method, fold).scores for fold in folds])
    y = np.concatenate([fold.test.target for fold in folds])
    groups = np.concatenate([fold.test.groups for fold in folds])
    found = metrics.evaluate(y, scores, ["ndcg", "map"], groups=groups)
    assert found["ndcg"] >= 0.749
    assert found["map"] >= 0.665
