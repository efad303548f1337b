"""Query data in the layout of boosted trees, and LightGBM rankers as candidates for selection on validation queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch

from apexrank.validation import segment

Scorer = Callable[[np.ndarray], np.ndarray]
Candidates = Callable[[Bunch, Bunch], Iterator[tuple[str, Scorer]]]

TREES = {"num_leaves": (7, 15, 31), "learning_rate": (0.03, 0.1)}


class Queries(NamedTuple):
    """Rows sorted by query, and the number of rows of each query."""

    X: np.ndarray
    y: np.ndarray
    sizes: np.ndarray


def by_query(part: Bunch) -> Queries:
    """Sort rows by query, as boosted trees require."""
    segments = segment(part.groups, len(part.target))
    order = segments.order
    return Queries(part.data[order], part.target[order].astype(int), np.diff(segments.indptr))


def lightgbm_candidates(objective: str) -> Candidates:
    """Fit up to 500 trees, with the number of trees that is best on the validation queries."""

    def candidates(train: Bunch, validation: Bunch) -> Iterator[tuple[str, Scorer]]:
        import lightgbm as lgb

        rows, other = by_query(train), by_query(validation)
        for leaves, rate in product(*TREES.values()):
            options = {"objective": objective, "metric": "ndcg", "eval_at": 10, "num_leaves": leaves}
            options |= {"learning_rate": rate, "seed": 0, "num_threads": 1, "verbose": -1}
            data = lgb.Dataset(rows.X, rows.y, group=rows.sizes)
            held_out = lgb.Dataset(other.X, other.y, group=other.sizes, reference=data)
            stop = lgb.early_stopping(50, verbose=False)
            booster = lgb.train(options, data, 500, valid_sets=[held_out], callbacks=[stop])
            settings = f"num_leaves={leaves}, learning_rate={rate}, trees={booster.best_iteration}"
            yield settings, booster.predict

    return candidates
