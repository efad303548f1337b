"""The papers' ROC figures: training and test curves for each p, whole and leftmost part.

JMLR 2009, Figures 5 to 7; COLT 2006, Figures 2 to 5; two more sets from the talk. A figure shows one random split,
as in the papers; the table and the verdicts are means over many splits. The papers' claims are about the top of the
list, so the measures are

* ``top``: the share of the positives above every negative, 1 − R_max / I;
* ``left``: the area under the leftmost part of the ROC curve, up to 5 % of the negatives, 1 at most;
* ``AUC``: the price of gains at the top.

COLT 2006, sec. 6, says that R_max *increases* with p. By its own definition (the number of positives below the
highest negative) it decreases; the share of positives above, here ``top``, increases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch

import apexrank_papers as papers
from apexrank.metrics import auc, partial_auc, r_max
from apexrank.plot import RocTopDisplay
from apexrank_papers.data.uci import load_housing, load_magic, load_pima, load_tic_tac_toe, load_wdbc
from apexrank_papers.push.fitting import COLUMNS, fitted, threshold_features, unit_range
from apexrank_papers.push.tables import last_five_features
from apexrank_papers.result import Figure, Result, Verdict, panels, text_view, tidy
from apexrank_papers.splits import mean_verdict, over_splits, spread

LEFTMOST = 0.05
SIDES = ("train", "test")


def top(y: np.ndarray, scores: np.ndarray) -> float:
    """Compute the share of the positives above every negative, 1 − R_max / I.

    Examples
    --------
    >>> top(np.array([1, 0, 1, 0]), np.array([4.0, 3.0, 2.0, 1.0]))
    0.5
    """
    return 1 - r_max(y, scores) / int(np.sum(y))


MEASURES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "top": top,
    "left": partial(partial_auc, max_fpr=LEFTMOST),
    "AUC": auc,
}


class Claim(NamedTuple):
    """Claim of a paper about the change from p = 1 to p = 64: side of the list, measure and sign."""

    side: str
    measure: str
    sign: int

    def judge(self, values: np.ndarray) -> Verdict:
        """Compare with ``values``: splits x sides x measures x columns."""
        part = values[:, SIDES.index(self.side), list(MEASURES).index(self.measure)]
        why = f"p = 64 should be {'better' if self.sign > 0 else 'worse'} than p = 1; the change is {{}}"
        moved = part[:, COLUMNS.index("p=64")] - part[:, 0]
        return mean_verdict(f"{self.side} {self.measure}", moved, why, self.sign)


# "A larger push causes the algorithm to perform better near the top", for training and testing, at the cost of AUC.
PUSH_HELPS = (
    Claim("train", "top", +1),
    Claim("train", "left", +1),
    Claim("train", "AUC", -1),
    Claim("test", "top", +1),
    Claim("test", "left", +1),
)
# "It does not generalize for large values of p": training gains and testing loses (COLT 2006, Fig. 5).
PUSH_OVERFITS = (Claim("train", "top", +1), Claim("train", "left", +1), Claim("test", "left", -1))


@dataclass(frozen=True)
class RocPanels:
    """A figure: experiment, data, number of training rows, the paper's claims, and whether features are thresholds."""

    name: str
    load: Callable[[], Bunch]
    n_train: int
    thresholds: bool = False
    claims: tuple[Claim, ...] = PUSH_HELPS
    t_max: int = 100

    def __call__(
        self, *, n_splits: int = 30, solver: str = "auto", n_jobs: int | None = None, random_state: int = 0
    ) -> Result:
        """Measure on ``n_splits`` random splits; the figure shows the first of them."""
        data = self.load()
        X, y = unit_range(data.data), data.target
        title = papers.get(self.name).title
        figure = draw_panels(title, self.scores(X, y, solver, random_state))
        values = over_splits(partial(self.measure, X, y, solver), n_splits, n_jobs, random_state)
        notes = [
            f"{data.source}; {self.n_train} of {len(y)} rows for training; mean over {n_splits} splits, "
            f"solver {solver}; the picture shows the split of random_state={random_state}."
        ]
        axes = {"side": SIDES, "measure": MEASURES, "column": COLUMNS}
        table = tidy(axes, spread(values))
        view = text_view(table, "{mean:.4f}", on="column", index=["side", "measure"])
        return Result(table, view, [claim.judge(values) for claim in self.claims], figure, notes)

    def scores(
        self, X: np.ndarray, y: np.ndarray, solver: str, seed: int
    ) -> dict[str, tuple[np.ndarray, dict[str, np.ndarray]]]:
        """Return labels and every ranker's scores on the training and test rows of one split."""
        train, test, y_train, y_test = train_test_split(
            X, y, train_size=self.n_train, stratify=y, random_state=seed
        )
        if self.thresholds:
            train, test = threshold_features(train, test)
        rankers = dict(zip(COLUMNS, fitted(train, y_train, solver, self.t_max), strict=True))
        return {
            side: (labels, {name: ranker.decision_function(rows) for name, ranker in rankers.items()})
            for side, rows, labels in (("train", train, y_train), ("test", test, y_test))
        }

    def measure(self, X: np.ndarray, y: np.ndarray, solver: str, seed: int) -> list[list[list[float]]]:
        """Measure one split: sides x measures x columns."""
        return [
            [[measure(labels, s) for s in scores.values()] for measure in MEASURES.values()]
            for labels, scores in self.scores(X, y, solver, seed).values()
        ]


def draw_panels(title: str, sides: dict[str, tuple[np.ndarray, dict[str, np.ndarray]]]) -> Figure:
    """Draw each side (train, test) in a row: the whole curves and their leftmost part.

    Parameters
    ----------
    title : str
        Title of the figure.
    sides : dict
        For each row of panels its name, the labels, and the scores of each ranker.

    Examples
    --------
    >>> y = np.array([0, 1, 0, 1])
    >>> figure = draw_panels("An example", {"test": (y, {"p=1": np.arange(4), "p=2": -np.arange(4)})})
    >>> [ax.get_title() for ax in figure.axes]
    ['test, whole list', 'test, top: the first 2 false positives']
    """
    figure, axes = panels(10, 4.4 * len(sides), len(sides), 2, squeeze=False)
    for (side, (y, scores)), pair in zip(sides.items(), axes, strict=True):
        RocTopDisplay.from_scores(scores, y, axes=pair)
        for ax in pair:
            ax.set_title(f"{side}, {ax.get_title().lower()}")
    figure.suptitle(title)
    return figure


def first_six_features() -> Bunch:
    """Load WDBC with its first six features, "to ensure the algorithm would not achieve a separable solution"."""
    bunch = load_wdbc()
    bunch.data = bunch.data[:, :6]
    return bunch


figure5_magic = RocPanels("figure5-magic", load_magic, 1000)
figure6_ionosphere = RocPanels("figure6-ionosphere", partial(last_five_features, "bad"), 234)
figure7_housing = RocPanels("figure7-housing", load_housing, 337)
colt_figure2_pima_threshold = RocPanels(
    "colt-figure2-pima-threshold", load_pima, 300, thresholds=True, t_max=200
)
colt_figure3_wdbc = RocPanels("colt-figure3-wdbc", first_six_features, 200, t_max=200)
colt_figure4_housing = RocPanels("colt-figure4-housing", load_housing, 300, t_max=200)
colt_figure5_pima_50 = RocPanels("colt-figure5-pima-50", load_pima, 50, claims=PUSH_OVERFITS, t_max=200)
pima_real = RocPanels("pima-real", load_pima, 300, t_max=200)
tic_tac_toe = RocPanels("tic-tac-toe", load_tic_tac_toe, 500, t_max=200)
