"""Arrays: every estimator of :mod:`apexrank.rankers`."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from apexrank import rankers
from apexrank.penalties import Ridge
from apexrank.problem.blocks import ArrayBlocks
from tests.metamorphic.engine import SEEDS, Found, Relation, Subject, renamed
from tests.metamorphic.threads import with_threads

ALPHA = 0.1


@dataclass(frozen=True)
class Arrays:
    """Rows with labels 0 and 1, grades and groups, and the container type of the rows."""

    X: np.ndarray
    new: np.ndarray
    y: np.ndarray
    grades: np.ndarray
    groups: np.ndarray
    weight: np.ndarray | None
    container: str = "C order"
    columns: tuple[int, ...] = (0, 1, 2)
    pickled: bool = False
    threads: int | None = None

    def but(self, **changes: Any) -> Arrays:
        return replace(self, **changes)

    def take(self, rows: np.ndarray) -> Arrays:
        parts = {name: getattr(self, name)[rows] for name in ("X", "y", "grades", "groups")}
        return self.but(**parts, weight=None if self.weight is None else self.weight[rows])


@st.composite
def arrays(draw: st.DrawFn) -> Arrays:
    n, weighted = draw(st.integers(20, 40)), draw(st.sampled_from([True, False]))
    rng = np.random.default_rng(draw(SEEDS))
    # multiples of 1/16 are exact in single precision, and all different ones have no ties
    X = np.column_stack([rng.choice(np.arange(-99, 99), n + 6, replace=False) / 16 for _ in range(3)])
    signal = X[:n, 0] / 3 + rng.normal(size=n)
    y, grades = (signal > np.median(signal)).astype(int), np.digitize(signal, [-1.0, 0.3, 1.4])
    groups = rng.integers(0, 4, n)
    y[:8], groups[:8], grades[:8] = [0, 1] * 4, np.repeat(np.arange(4), 2), [0, 2] * 4
    weight = np.where(np.arange(n) < 8, 1, rng.integers(0, 4, n)).astype(float)
    return Arrays(X[:n], X[n - 6 :], y, grades, groups, weight if weighted else None)


CONTAINERS: dict[str, Callable[[np.ndarray], Any]] = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "every other row of a larger array": lambda X: np.repeat(X, 2, axis=0)[::2],
    "single precision": lambda X: X.astype(np.float32),
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_array,
    "pandas": lambda X: pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(len(X))[::-1]),
    "polars": lambda X: pl.DataFrame(X, schema=["a", "b", "c"]),
    "arrow": lambda X: pa.table(dict(zip("abc", X.T, strict=True))),
    "lists": lambda X: X.tolist(),
}


def fit_estimator(estimator: Any, target: str, grouped: bool) -> Callable[[Arrays], Found]:
    """Scores of new rows."""

    def run(case: Arrays) -> Found:
        model = clone(estimator)
        order = list(case.columns)
        given: dict[str, Any] = {"sample_weight": case.weight} if case.weight is not None else {}
        given |= {"groups": case.groups} if grouped else {}
        answers = case.y if target == "y" else case.grades
        with with_threads(case.threads), warnings.catch_warnings():
            # the certificate states the error if rounding prevents reaching the tolerance
            warnings.filterwarnings("ignore", "not converged")
            warnings.simplefilter("ignore", rankers.SeparableWarning)
            if case.container == "blocks":
                keys = {"sample_weight": case.weight, "groups": case.groups if grouped else None}
                rows = np.argsort(case.groups, kind="stable") if grouped else np.arange(len(answers))
                parts = {name: None if part is None else part[rows] for name, part in keys.items()}
                model.fit(ArrayBlocks(case.X[rows][:, order], answers[rows], rows=9, **parts), None)
            else:
                model.fit(CONTAINERS[case.container](case.X[:, order]), answers, **given)
            model = pickle.loads(pickle.dumps(model)) if case.pickled else model
            new = CONTAINERS.get(case.container, np.ascontiguousarray)(case.new[:, order])
            scores = (
                model.decision_function(new) if hasattr(model, "decision_function") else model.predict(new)
            )
        gap, alpha = (
            getattr(model, "dual_gap_", 0.0),
            getattr(model, "alpha_", getattr(model, "alpha", ALPHA)),
        )
        norm = float(np.linalg.norm(case.new, axis=1).max())
        # |w − w*|² ≤ 2·gap/alpha; what is not convex has no gap, but a gradient, and the curvature of the ridge
        error = np.sqrt(2 * max(gap, 0.0) / alpha) if alpha and gap == gap else 0.0
        error = model.grad_norm_ / alpha if alpha and gap != gap else error
        slack = norm * error
        return Found({f"score {i}": float(score) for i, score in enumerate(np.ravel(scores))}, slack)

    return run


_S = {"alpha": ALPHA, "tol": 1e-11}
_PUSH = rankers.PNormPush(3.0, **_S)
CLASSES = {
    "PNormPush": _PUSH,
    "PNormPush bottom": rankers.PNormPush(2.0, side="bottom", **_S),
    "PNormPush both": rankers.PNormPush(2.0, side="both", **_S),
    "PNormPush logistic": rankers.PNormPush(2.0, loss="logistic", **_S),
    "PNormPush squared hinge": rankers.PNormPush(2.0, loss="squared_hinge", **_S),
    "PNormPush log1p": rankers.PNormPush(price="log1p", **_S),
    "PNormPush elastic net": rankers.PNormPush(2.0, l1_ratio=0.3, **_S),
    "IRPush": rankers.IRPush(**_S),
    "LogisticRanker": rankers.LogisticRanker(**_S),
    "AdditiveRanker": rankers.AdditiveRanker(2.0, n_knots=4, alpha=ALPHA, tol=1e-9),
    "AdditiveRanker auto": rankers.AdditiveRanker(n_knots=4, tol=1e-9),
    "TwoStagePush": rankers.TwoStagePush(_PUSH, _PUSH, keep=0.5),
    "LinearRanker": rankers.LinearRanker("push", Ridge(ALPHA), tol=1e-11),
    "RankBoost": rankers.RankBoost(t_max=15),
    "TreeRanker": rankers.TreeRanker(rounds=4, leaves=4),
    "CurvesAndTrees": rankers.CurvesAndTrees(rounds=4),
    "PushBoost": rankers.PushBoost(
        DecisionTreeClassifier(max_depth=1, random_state=0), n_estimators=4, random_state=0
    ),
    "PNormPushCV": rankers.PNormPushCV([1.0, 4.0], [ALPHA], cv=2),
}
GRADES = {
    "MonotoneRetargeting": rankers.MonotoneRetargeting(**_S),
    "MonotoneRetargeting blocks": rankers.MonotoneRetargeting(order="blocks", **_S),
    "MonotoneRetargeting kl": rankers.MonotoneRetargeting("kl", alpha=ALPHA, tol=1e-10),
    "AdditiveRetargeting": rankers.AdditiveRetargeting(n_knots=4, alpha=ALPHA, tol=1e-9),
    "ListwiseRanker listnet": rankers.ListwiseRanker("listnet", **_S),
    "ListwiseRanker pointwise": rankers.ListwiseRanker("pointwise", **_S),
    "ListwiseRanker rank_cosine": rankers.ListwiseRanker("rank_cosine", alpha=ALPHA, tol=1e-9),
    "CrucialPairsPush": rankers.CrucialPairsPush(**_S),
    "LetorRanker": rankers.LetorRanker(n_folds=2),
}
PLAIN = {
    "UnknownLinkRegressor": rankers.UnknownLinkRegressor(**_S),
    "UnknownLinkRegressor cost": rankers.UnknownLinkRegressor(link="cost", **_S),
}
_SPLITS, _DESCENT = {"splits", "dense"}, {"coordinates"}
TRAITS = {
    "TreeRanker": _SPLITS | {"no blocks"},
    "CurvesAndTrees": _SPLITS | {"no blocks"},
    "PushBoost": _SPLITS | {"no blocks"},
    "LetorRanker": _SPLITS | {"no blocks"},
    "RankBoost": _DESCENT,
    "PNormPushCV": {"folds"},
    "AdditiveRanker": {"dense", "no blocks"},
    "AdditiveRanker auto": {"dense", "no blocks"},
    "AdditiveRetargeting": {"dense", "no blocks"},
    "TwoStagePush": {"no blocks"},
}


def _subject(name: str, estimator: Any, target: str, grouped: bool, label: str) -> Subject:
    traits = TRAITS.get(name, set()) | ({"classes"} if target == "y" else {"graded"})
    traits |= set() if grouped else {"one list"}
    return Subject(label, "arrays", fit_estimator(estimator, target, grouped), frozenset(traits), 12)


SUBJECTS = [
    *(_subject(name, model, "y", False, name) for name, model in CLASSES.items()),
    _subject("PNormPush", _PUSH, "y", True, "PNormPush in groups"),
    *(_subject(name, model, "grades", True, name) for name, model in GRADES.items()),
    *(_subject(name, model, "grades", False, name) for name, model in PLAIN.items()),
]


def _repeat(case: Arrays, rng: np.random.Generator) -> tuple[Arrays, Arrays]:
    weight = np.where(np.arange(len(case.y)) < 8, 1.0, rng.integers(0, 4, len(case.y)))
    rows = np.repeat(np.arange(len(weight)), weight.astype(int))
    return case.but(weight=weight), case.but(weight=None).take(rows)


def _weightless(case: Arrays, rng: np.random.Generator) -> tuple[Arrays, Arrays]:
    weight = np.ones(len(case.y)) if case.weight is None else case.weight
    one, odd = (
        case.but(weight=weight),
        case.but(weight=np.zeros(len(case.y)), X=case.X + 50).take(np.arange(3)),
    )
    parts = {
        name: np.concatenate([getattr(odd, name), getattr(one, name)])
        for name in ("X", "y", "grades", "groups", "weight")
    }
    return one, one.but(**parts)


def _relabel(case: Arrays, rng: np.random.Generator) -> Arrays:
    new = renamed([str(k) for k in range(4)], rng)
    groups = np.array([new[str(k)] for k in case.groups])
    return case.but(groups=groups).take(rng.permutation(len(groups)))


def _rename_labels(case: Arrays, rng: np.random.Generator) -> Arrays:
    labels = [("no", "yes"), ("ham", "spam"), (1, 2), (False, True), (-1, 1), (1.0, 2.0)][rng.integers(6)]
    return case.but(y=np.array(labels)[case.y])


_ORDER = {
    "splits": "splits of equal gain are told apart by rounding",
    "coordinates": "coordinates of equal descent are told apart by rounding",
    "folds": "folds are drawn by the numbers of the rows",
}
RELATIONS = [
    Relation(
        "rows shuffled",
        "arrays",
        "the order of the rows does not matter",
        lambda case, rng: case.take(rng.permutation(len(case.y))),
        _ORDER,
    ),
    Relation(
        "columns permuted",
        "arrays",
        "the order of the columns does not matter",
        lambda case, rng: case.but(columns=tuple(rng.permutation(3))),
        {k: _ORDER[k] for k in ("splits", "coordinates")},
    ),
    Relation(
        "weights as repetitions",
        "arrays",
        "a weight of 3 is three equal rows",
        _repeat,
        {k: _ORDER[k] for k in ("coordinates", "folds")},
    ),
    Relation(
        "rows of weight 0",
        "arrays",
        "a row of weight 0 changes nothing, however odd",
        _weightless,
        {"folds": _ORDER["folds"]},
    ),
    Relation(
        "groups relabelled",
        "arrays",
        "groups are names, and their rows may be interleaved",
        _relabel,
        _ORDER | {"one list": "has no groups"},
    ),
    Relation(
        "labels renamed",
        "arrays",
        "the positive class is the one that was named",
        _rename_labels,
        {"graded": "grades are numbers"},
    ),
    *(
        Relation(
            f"from {container}",
            "arrays",
            "the container says nothing about the rows",
            lambda case, rng, container=container: case.but(container=container),
            {"dense": "refused: takes dense rows"} if container in ("CSR", "CSC") else {},
        )
        for container in CONTAINERS
        if container != "C order"
    ),
    Relation(
        "in blocks",
        "arrays",
        "blocks of rows are one table",
        lambda case, rng: case.but(container="blocks"),
        {"no blocks": "needs the rows in memory", "folds": _ORDER["folds"]},
    ),
    Relation("pickled", "arrays", "a copy of a model is the model", lambda case, rng: case.but(pickled=True)),
    Relation(
        "two threads",
        "arrays",
        "threads change nothing",
        lambda case, rng: (case.but(threads=1), case.but(threads=2)),
    ),
]
STRATEGIES = {"arrays": arrays()}
