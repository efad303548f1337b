"""The rankers of the study: candidates with settings, as in `apexrank.comparison`, and the sizes of their models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np

from apexrank.comparison.candidates import Additive, Candidate, LinearPush, Logistic, Setting, Trees, quietly
from apexrank.rankers.base import class_scores

SIZES = (4, 16, 64)  # leaves of a tree, or two to the power of its depth
ROUNDS = (10, 25, 50, 100, 200, 400, 800)
LIGHTGBM, EBM_NAME, ADDITIVE, PAIRS = "LightGBM", "EBM", "additive", "additive with pairs"


@dataclass(frozen=True)
class Boosted(Candidate):
    """Boosted trees of another library, whose size and number are chosen; fewer trees are the first of more."""

    sizes: Sequence[int] = ()
    rounds: Sequence[int] = ()

    @property
    def settings(self) -> list[Setting]:
        return [{"size": size, "rounds": rounds} for size, rounds in product(self.sizes, self.rounds)]

    def scores(
        self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, X_test: np.ndarray
    ) -> np.ndarray:
        fits = (self.fit(X, y, weight, {"size": size, "rounds": max(self.rounds)}) for size in self.sizes)
        return np.concatenate([self.staged(fitted, X_test) for fitted in fits])

    def staged(self, fitted: Any, X: np.ndarray) -> np.ndarray:
        """Scores after each number of rounds, shape (len(rounds), n)."""
        raise NotImplementedError


class HistGradientBoosting(Boosted):
    """Boosted trees of scikit-learn."""

    def estimator(self, setting: Setting) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(
            max_leaf_nodes=setting["size"], max_iter=setting["rounds"], early_stopping=False, random_state=0
        )

    def staged(self, fitted: Any, X: np.ndarray) -> np.ndarray:
        stages = enumerate(fitted.staged_decision_function(X), start=1)
        return np.array([np.ravel(scores) for number, scores in stages if number in self.rounds])


class XGBoost(Boosted):
    """Boosted trees of XGBoost."""

    def estimator(self, setting: Setting) -> Any:
        from xgboost import XGBClassifier

        return XGBClassifier(
            max_depth=setting["size"].bit_length() - 1,
            n_estimators=setting["rounds"],
            learning_rate=0.1,
            n_jobs=1,
        )

    def staged(self, fitted: Any, X: np.ndarray) -> np.ndarray:
        # probabilities in single precision would tie the first rows at 1
        cuts = ((0, number) for number in self.rounds)
        return np.array([fitted.predict(X, output_margin=True, iteration_range=cut) for cut in cuts])


class EBM(Candidate):
    """Explainable boosting machine of interpret, with its own defaults."""

    def estimator(self, setting: Setting) -> Any:
        from interpret.glassbox import ExplainableBoostingClassifier

        return ExplainableBoostingClassifier(n_jobs=1)


def rankers() -> tuple[dict[str, Candidate], list[str]]:
    """Rankers by their names, and a sentence for each one that is not installed."""
    ours = (Logistic(), LinearPush(), Additive(ADDITIVE, pairs=(0,)), Additive(PAIRS))
    found: dict[str, Candidate] = {each.name: each for each in ours}
    optional = {
        LIGHTGBM: ("lightgbm", Trees(LIGHTGBM, leaves=SIZES, rounds=ROUNDS)),
        "XGBoost": ("xgboost", XGBoost("XGBoost", SIZES, ROUNDS)),
        "HistGradientBoosting": ("sklearn", HistGradientBoosting("HistGradientBoosting", SIZES, ROUNDS)),
        EBM_NAME: ("interpret", EBM(EBM_NAME)),
    }
    found |= {name: candidate for name, (package, candidate) in optional.items() if find_spec(package)}
    missing = [
        f"{name} is left out: {package} is not installed"
        for name, (package, _) in optional.items()
        if name not in found
    ]
    return found, missing


def final_scores(candidate: Candidate, fitted: Any, X: np.ndarray) -> np.ndarray:
    """Scores of the rows by the model that is kept."""
    with quietly():
        if isinstance(candidate, XGBoost):
            return np.asarray(fitted.predict(X, output_margin=True))
        return class_scores(fitted, X)


def numbers_of(fitted: Any) -> int:
    """Numbers in a model: coefficients, knots or cuts with their effects, or of trees two a question and one a leaf.

    Examples
    --------
    >>> from apexrank.rankers import LogisticRanker
    >>> numbers_of(LogisticRanker().fit([[0.0, 1.0], [1.0, 1.5], [2.0, 1.0]], [0, 1, 1]))
    3
    """
    if hasattr(fitted, "shapes_"):
        singles = sum(2 * len(shape.knots) + 1 for shape in fitted.shapes_)
        return singles + sum(pair.values.size + sum(map(len, pair.knots)) for pair in fitted.pairs_)
    if hasattr(fitted, "forest_"):
        return len(fitted.forest_.left) + int((fitted.forest_.left >= 0).sum())
    if hasattr(fitted, "get_booster"):
        dumped = "".join(fitted.get_booster().get_dump()).splitlines()
        return sum(1 if "leaf=" in node else 2 for node in dumped)
    if hasattr(fitted, "term_scores_"):
        # of a feature with several resolutions the finest is for itself, the next for pairs
        cuts = sum(len(cut) for feature in fitted.bins_ for cut in feature)
        return cuts + sum(scores.size for scores in fitted.term_scores_)
    if hasattr(fitted, "_predictors"):
        leaf = np.concatenate([tree.nodes["is_leaf"] for (tree,) in fitted._predictors]) == 1
        return int(np.where(leaf, 1, 2).sum())
    return fitted.coef_.size + 1
