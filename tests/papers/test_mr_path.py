"""Monotone retargeting as published, alternation by alternation."""

import numpy as np
import pytest

from apexrank.datasets import letor_folds, make_letor_example, write_letor
from apexrank_papers.retargeting import path
from apexrank_papers.retargeting.published import PublishedRetargeting


def test_path_of_alternations(tmp_path):
    for k in range(5):
        made = make_letor_example(n_queries=12, random_state=k)
        write_letor(tmp_path / f"S{k + 1}.txt", made.data, made.target, [f"{k}-{q}" for q in made.groups])
    result = path.run_folds(list(letor_folds(tmp_path)), alternations=6, alpha=1.0, n_jobs=1)
    assert [verdict.word for verdict in result.verdicts] == ["agrees"] * 3
    fold = next(iter(letor_folds(tmp_path)))
    rows = result.table.filter(divergence="KL")
    once = PublishedRetargeting("kl", alpha=1.0, max_alternations=6)
    w = once.fit(fold.train.data, fold.train.target, groups=fold.train.groups).coef_path_
    found = path._path("kl", fold, 6, 1.0)
    np.testing.assert_allclose(found.scores[3], fold.test.data @ w[3])
    np.testing.assert_allclose(found.size, np.linalg.norm(w, axis=1) / np.linalg.norm(w[0]))
    assert (rows["size"].diff().drop_nulls() < 0).all()
    assert rows["cosine"][-1] == pytest.approx(1)
    assert rows["ndcg"].min() > 0.8
