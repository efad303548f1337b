"""The positive class is the label that sorts last, with a warning if its name suggests the opposite."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from apexrank import (
    IRPush,
    LinearRanker,
    LogisticRanker,
    PNormPush,
    PNormPushCV,
    PushBoost,
    RankBoost,
    TreeRanker,
    TwoStagePush,
)
from apexrank.problem import ArrayBlocks
from apexrank.rankers.base import PositiveLabelWarning

RANKERS = [
    PNormPush(),
    IRPush(),
    RankBoost(),
    LogisticRanker(),
    TreeRanker(rounds=3),
    PNormPushCV([1], [0.1], cv=2),
    PushBoost(n_estimators=5, random_state=0),
    TwoStagePush(),
    LinearRanker("push"),
]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, X[:, 0] + rng.normal(size=120) > 0.5


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: type(ranker).__name__)
def test_the_label_that_sorts_last_is_on_top(rows, ranker):
    X, y = rows
    names = np.where(y, "spam", "ham")
    expected = clone(ranker).fit(X, y).decision_function(X)
    named = clone(ranker).fit(X, names)
    np.testing.assert_array_equal(named.decision_function(X), expected)
    assert named.classes_.tolist() == ["ham", "spam"]
    np.testing.assert_array_equal(named.predict(X), np.where(expected > 0, "spam", "ham"))
    assert roc_auc_score(names, expected) > 0.7
    assert named.score(X, names) == np.mean(named.predict(X) == names)


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: type(ranker).__name__)
def test_a_name_that_suggests_the_opposite_warns_once_and_the_remedy_works(rows, ranker):
    X, y = rows
    names = np.where(y, "fraud", "legit")
    with pytest.warns(PositiveLabelWarning, match="y == 'fraud'") as found:
        turned = clone(ranker).fit(X, names)
    assert [warning.filename for warning in found] == [__file__]
    assert turned.classes_.tolist() == ["fraud", "legit"]
    scores = clone(ranker).fit(X, names == "fraud").decision_function(X)
    assert roc_auc_score(y, scores) > 0.7 > 0.5 > roc_auc_score(y, turned.decision_function(X))


def test_it_points_to_the_users_line_through_scikit_learn(rows):
    X, y = rows
    with pytest.warns(PositiveLabelWarning) as found:
        cross_val_score(make_pipeline(StandardScaler(), PNormPush()), X, np.where(y, "fraud", "legit"), cv=2)
    assert {warning.filename for warning in found} == {__file__}


def test_blocks_and_devices_warn_too(rows):
    X, y = rows
    names = np.where(y, "fraud", "legit")
    with pytest.warns(PositiveLabelWarning):
        found = PNormPush().fit(ArrayBlocks(X, names, rows=50), None)
    assert found.classes_.tolist() == ["fraud", "legit"]
    torch = pytest.importorskip("torch")
    with pytest.warns(PositiveLabelWarning):
        there = PNormPush().fit(torch.from_numpy(X), names)
    np.testing.assert_allclose(there.coef_, found.coef_, rtol=1e-6)


@pytest.mark.parametrize(
    ("low", "high", "warns"),
    [
        ("fraud", "legit", True),
        ("Bad", " Good", False),  # a blank sorts first: 'Bad' is positive
        ("bad", "good", True),
        ("attack", "Normal", False),  # capitals sort first
        ("attack", "normal", True),
        ("click", "no click", True),
        ("default", "non-default", True),
        ("no", "yes", False),
        ("N", "Y", False),
        ("benign", "malignant", False),
        ("ham", "spam", False),
        ("cat", "northern", False),
    ],
)
def test_a_warning_where_the_name_says_otherwise(low, high, warns):
    X, y = [[0.0], [1.0], [2.0], [1.5]], [low, low, high, high]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        PNormPush().fit(X, y)
    messages = [str(each.message) for each in found if each.category is PositiveLabelWarning]
    assert len(messages) == warns
    if warns:
        assert messages[0].startswith(f"{high!r} is taken as the positive class")
        assert f"y == {low!r}" in messages[0]
        assert found[0].filename == __file__


def test_tools_of_scikit_learn_measure_from_the_right_end(rows):
    X, y = rows
    names = np.where(y, "spam", "ham")
    for ranker in (PNormPush(), CalibratedClassifierCV(PNormPush(), cv=3)):
        expected = cross_val_score(ranker, X, y, scoring="roc_auc", cv=3)
        np.testing.assert_allclose(cross_val_score(ranker, X, names, scoring="roc_auc", cv=3), expected)
