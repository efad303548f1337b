"""The study of clicks: the recovered share of the gap, and a run on synthetic folds."""

import numpy as np
import pytest
from typer.testing import CliRunner

from apexrank.cli.app import app
from apexrank.datasets import Fold, make_letor_example
from apexrank_papers.clicks import study


def values_of(corrected, noise=0.0, n=400):
    """Values of queries for each loss: naive 0.5, true 0.7, corrected as given, with noise that varies by query."""
    rng = np.random.default_rng(0)
    level = {study.NAIVE: 0.5, study.TRUE: 0.7}
    names = (study.TRUE, study.NAIVE, study.KNOWN, study.HARVESTED, study.REGRESSED)
    return {
        (loss, name): level.get(name, corrected) + noise * rng.normal(size=(3, n))
        for loss in study.LOSSES
        for name in names
    }


@pytest.mark.parametrize(
    ("corrected", "noise", "word"),
    [(0.69, 0.0, "yes"), (0.6, 0.0, "no"), (0.68, 0.5, "cannot tell"), (0.75, 0.01, "yes")],
)
def test_the_share_of_the_gap(corrected, noise, word):
    result = study.summary(values_of(corrected, noise), [100.0])
    assert len(result.verdicts) == 12  # two losses, three kinds of propensities, two claims
    assert {verdict.word for verdict in result.verdicts[::2]} == {"yes"}  # better than clicks as they are
    assert {verdict.word for verdict in result.verdicts[1::2]} == {word}
    shares = result.table["recovered"].drop_nulls().to_numpy()
    assert len(shares) == 3 * len(study.LOSSES)
    np.testing.assert_allclose(shares, (corrected - 0.5) / 0.2, atol=1e-9 if not noise else 1)
    low, high = result.table["recovered_low"].drop_nulls(), result.table["recovered_high"].drop_nulls()
    assert (low.to_numpy() <= shares + 1e-9).all()
    assert (shares <= high.to_numpy() + 1e-9).all()


def test_the_study_runs_on_made_up_folds(monkeypatch):
    parts = [make_letor_example(60, random_state=seed, noise=0.5, spread=0.2) for seed in range(3)]
    folds = [Fold(1, *parts), Fold(2, *parts[1:], parts[0])]
    monkeypatch.setattr(study, "mq2008_folds", lambda: folds)
    monkeypatch.setattr(study, "SESSIONS", 20_000)
    monkeypatch.setattr(study, "ALPHAS", (1e-2,))
    result = CliRunner().invoke(app, ["reproduce", "clicks", "--n-splits", "2", "--json"])
    assert result.exit_code in (0, 1), result.output
    assert '"recovered"' in result.stdout
    again = study.clicks(n_splits=2)
    means = {(row["loss"], row["labels"]): row["ndcg@10"] for row in again.table.iter_rows(named=True)}
    for loss in study.UNBIASED:
        assert means[loss, study.KNOWN] == pytest.approx(means[loss, study.TRUE], abs=0.02)
