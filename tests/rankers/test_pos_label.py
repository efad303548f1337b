"""``pos_label``: the class that is ranked at the top."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import average_precision_score, make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score

from apexrank import IRPush, LinearRanker, PNormPush, PNormPushCV, PushBoost, RankBoost, TwoStagePush, metrics
from apexrank.errors import InputError
from apexrank.problem import ArrayBlocks
from apexrank.rankers.base import PositiveLabelWarning

RANKERS = [
    PNormPush(),
    IRPush(),
    RankBoost(),
    PNormPushCV([1], [0.1], cv=2),
    PushBoost(n_estimators=5, random_state=0),
    TwoStagePush(),
    LinearRanker("push"),
]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, np.where(X[:, 0] + rng.normal(size=120) > 0.5, "fraud", "legit")


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: type(ranker).__name__)
def test_the_positive_class_is_on_top_and_the_numbers_are_those_of_zero_and_one(rows, ranker):
    X, y = rows
    expected = clone(ranker).fit(X, (y == "fraud").astype(int)).decision_function(X)
    turned = clone(ranker).set_params(pos_label="fraud").fit(X, y)
    np.testing.assert_array_equal(turned.decision_function(X), expected)
    assert turned.classes_.tolist() == ["legit", "fraud"]
    np.testing.assert_array_equal(turned.predict(X), np.where(expected > 0, "fraud", "legit"))
    assert type(turned.predict(X)) is np.ndarray
    assert roc_auc_score(y == "fraud", expected) > 0.7
    again = pickle.loads(pickle.dumps(turned))
    np.testing.assert_array_equal(again.decision_function(X), expected)
    assert turned.score(X, y) == np.mean(turned.predict(X) == y)


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: type(ranker).__name__)
def test_the_label_that_sorts_last_can_be_named(rows, ranker):
    X, y = rows
    named = clone(ranker).set_params(pos_label="legit").fit(X, y)
    assert named.classes_.tolist() == ["fraud", "legit"]
    with pytest.warns(PositiveLabelWarning):
        plain = clone(ranker).fit(X, y)
    np.testing.assert_array_equal(named.decision_function(X), plain.decision_function(X))


def test_numbers_and_blocks(rows):
    X, y = rows
    two = np.where(y == "fraud", 1, 2)
    expected = PNormPush().fit(X, y == "fraud").coef_
    np.testing.assert_array_equal(PNormPush(pos_label=1).fit(X, two).coef_, expected)
    blocks = PNormPush(pos_label=1).fit(ArrayBlocks(X, two, rows=50), None)
    np.testing.assert_allclose(blocks.coef_, expected, rtol=1e-6)
    assert blocks.classes_.tolist() == [2, 1]
    torch = pytest.importorskip("torch")
    there = PNormPush(pos_label=1).fit(torch.from_numpy(X), torch.from_numpy(two))
    np.testing.assert_allclose(there.coef_, expected, rtol=1e-6)
    assert set(there.predict(torch.from_numpy(X)).tolist()) == {1, 2}


def test_a_label_that_is_not_there_is_refused(rows):
    X, y = rows
    with pytest.raises(
        InputError, match=r"`pos_label='theft'` is not a label of y, which has \['fraud', 'legit'\]"
    ):
        PNormPush(pos_label="theft").fit(X, y)
    with pytest.raises(InputError, match="two classes"):
        LinearRanker("listnet", pos_label=1).fit(X, np.arange(120) % 3)


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
        assert f"pos_label={low!r}" in messages[0]
        assert found[0].filename == __file__


def test_scorers_that_know_the_label_are_right(rows):
    X, y = rows
    scorer = make_scorer(average_precision_score, response_method="decision_function", pos_label="fraud")
    words = cross_val_score(PNormPush(pos_label="fraud"), X, y, scoring=scorer, cv=3)
    numbers = cross_val_score(PNormPush(), X, (y == "fraud").astype(int), scoring="average_precision", cv=3)
    np.testing.assert_allclose(words, numbers)
    search = GridSearchCV(PNormPush(pos_label="fraud"), {"p": [1, 4]}, scoring=scorer, cv=3).fit(X, y)
    assert search.best_score_ > 0.5
    ranker = PNormPush(pos_label="fraud").fit(X, y)
    found = metrics.evaluate(y, ranker.decision_function(X), ["auc"], pos_label="fraud")
    assert found["auc"] == pytest.approx(roc_auc_score(y == "fraud", ranker.decision_function(X)))


@pytest.mark.parametrize("scoring", ["roc_auc", metrics.get_scorer("partial_auc")])
def test_scorers_that_do_not_are_refused(rows, scoring):
    X, y = rows
    with pytest.raises(InputError, match=r"'fraud' sorts before 'legit'.* y == 'fraud'"):
        cross_val_score(PNormPush(pos_label="fraud"), X, y, scoring=scoring, cv=3, error_score="raise")


def test_calibration_needs_labels_in_order(rows):
    X, y = rows
    with pytest.raises(InputError, match="sorts before"):
        CalibratedClassifierCV(PNormPush(pos_label="fraud"), cv=3).fit(X, y)
    calibrated = CalibratedClassifierCV(PNormPush(), cv=3).fit(X, y == "fraud")
    assert roc_auc_score(y == "fraud", calibrated.predict_proba(X)[:, 1]) > 0.7


def test_a_search_scores_the_positive_class(rows):
    X, y = rows
    options = {"ps": [1, 4], "alphas": [0.1, 1.0], "cv": 3, "scoring": "roc_auc"}
    words = PNormPushCV(**options, pos_label="fraud").fit(X, y)
    numbers = PNormPushCV(**options).fit(X, (y == "fraud").astype(int))
    np.testing.assert_array_equal(
        words.cv_results_["mean_test_score"], numbers.cv_results_["mean_test_score"]
    )
    assert words.best_score_ > 0.7
    assert words.best_estimator_.predict(X[:1])[0] in ("fraud", "legit")
