"""Comparison of pushes: choice on training rows only, paired intervals, verdicts, notes and tables."""

import json
import re
import warnings
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import product
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from apexrank.bounds import log_covering_linear, negatives_needed
from apexrank.datasets import make_push_example
from apexrank.errors import InputError
from apexrank.io.tables import Table, read_table
from apexrank.metrics import Interval
from apexrank.metrics.evaluation import find_measures
from apexrank.rankers.push import PNormPush
from apexrank.report import build, compare_pushes, compare_table
from apexrank.report.push import compare
from apexrank.report.push.compare import paired_intervals, precision_of_share
from apexrank.report.push.result import push_bounds
from apexrank.report.push.rows import hold_out
from apexrank.report.push.table import FEW_VALUES

quick = partial(compare_pushes, ps=(1, 8), alphas=(1e-6,), folds=2, n_resamples=20)
quick_table = partial(compare_table, target="fraud", ps=(1, 8), alphas=(1e-6,), folds=2, n_resamples=20)


@pytest.fixture(scope="module")
def example():
    return make_push_example(2000, return_X_y=True)


@pytest.fixture(scope="module")
def found(example):
    return compare_pushes(*example, ps=(1, 4, 16), scoring="precision_at_10", n_resamples=200)


def small(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, (X[:, 0] + rng.standard_normal(n) > 0.8).astype(int)


def frame(n=200, seed=0, **more):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    y = (x + rng.standard_normal(n) > 0.7).astype(int)
    return pl.DataFrame({"x": x, "z": rng.standard_normal(n), **more, "fraud": y})


def same_fit(a, b):
    assert np.array_equal(a.coef, b.coef)
    assert (a.alphas, a.cv_mean, a.cv_std, a.chosen) == (b.alphas, b.cv_mean, b.cv_std, b.chosen)


# what is chosen, and by what


def test_every_p_has_its_own_alpha_by_cross_validation_on_training_rows():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((150, 12))
    y = (X[:, 0] + X[:, 1] + 1.5 * rng.standard_normal(150) > 1.5).astype(int)
    weight = rng.integers(1, 4, 150)
    ps, alphas = (1, 8), (1e-3, 1e-1, 10.0)
    options = {"ps": ps, "alphas": alphas, "scoring": "auc", "folds": 3, "n_resamples": 20}
    found = compare_pushes(X, y, sample_weight=weight, **options)
    train, _ = hold_out(y == 1)
    X, y, weight = X[train], y[train], weight[train]
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))

    def score(p, alpha, a, b):
        ranker = PNormPush(p, alpha=alpha).fit(X[a], y[a], sample_weight=weight[a])
        return roc_auc_score(y[b], ranker.decision_function(X[b]))

    scores = np.array([[[score(p, alpha, a, b) for a, b in folds] for alpha in alphas] for p in ps])
    mean = scores.mean(axis=2)
    assert found.alphas == [alphas[i] for i in mean.argmax(axis=1)] == [1e-3, 1e-1]
    assert found.cv_mean == pytest.approx(mean.max(axis=1))
    assert found.cv_std == pytest.approx([scores[i, mean[i].argmax()].std() for i in range(len(ps))])
    assert found.chosen == mean.max(axis=1).argmax() == 1
    for ranker, p, alpha in zip(found.rankers, ps, found.alphas, strict=True):
        fresh = PNormPush(p, alpha=alpha).fit(X, y, sample_weight=weight)
        assert ranker.coef_ == pytest.approx(fresh.coef_, rel=1e-9)


def test_ties_go_to_the_smaller_p():
    X, y = small()
    found = quick(X, y, scoring=lambda ranker, X, y: 1.0, ps=(4, 2, 1))
    assert found.ps == (1.0, 2.0, 4.0)
    assert found.chosen == 0


def test_held_out_rows_do_not_reach_fit_or_choice(example):
    X, y = example
    first = quick(X, y)
    _, test = hold_out(y == 1)
    changed = X.copy()
    changed[test] = 100 * np.random.default_rng(1).standard_normal((len(test), X.shape[1]))
    second = quick(changed, y)
    same_fit(first, second)
    assert not np.array_equal(first.scores, second.scores)
    train = np.setdiff1d(np.arange(len(y)), test)
    third = quick(X[train], y[train], X_test=X[test], y_test=y[test])
    same_fit(first, third)
    assert np.array_equal(first.scores, third.scores)
    same_fit(third, quick(X[train], y[train], X_test=X[test], y_test=1 - y[test]))


def test_weights_are_of_training_rows(example):
    X, y = example
    train, test = hold_out(y == 1)
    weight = np.ones(len(y))
    weight[train[:500]] = 3.0
    found = quick(X, y, sample_weight=weight)
    repeated = np.concatenate([train, train[:500], train[:500]])
    assert found.coef[1] == pytest.approx(
        PNormPush(8, alpha=1e-6).fit(X[repeated], y[repeated]).coef_[0], rel=1e-4
    )
    weight[test] = 7.0
    same_fit(found, quick(X, y, sample_weight=weight))
    assert any("count in fitting only" in note for note in found.notes)


@given(st.lists(st.booleans(), min_size=2, max_size=60), st.floats(0.01, 0.99), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_hold_out_parts_each_class(y, share, seed):
    y = np.array(y)
    train, test = hold_out(y, share, seed)
    assert sorted([*train, *test]) == list(range(len(y)))
    for label in (True, False):
        assert abs((y[test] == label).sum() - share * (y == label).sum()) <= 0.5


def test_same_seed_same_result_other_seed_other_rows():
    X, y = small(200)
    a, b, c = quick(X, y), quick(X, y), quick(X, y, random_state=1)
    same_fit(a, b)
    assert a.table().equals(b.table())
    assert a.row_names == b.row_names
    assert a.row_names != c.row_names


# measures


def precision_at_10(y, scores):
    return y[np.argsort(-scores, kind="stable")[:10]].mean()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "measure"), [("auc", roc_auc_score), ("precision_at_10", precision_at_10)])
def test_intervals_are_those_of_a_naive_bootstrap(name, measure):
    X, y = small(80)
    found = compare_pushes(X, y, ps=(1, 4, 16), measures=[name], n_resamples=100, confidence=0.9)
    rng, n = np.random.default_rng(0), found.n_test
    draws = []
    for _ in range(100):
        rows = rng.integers(0, n, n)
        if name != "auc" or 0 < found.y[rows].sum() < n:
            draws.append([measure(found.y[rows], scores[rows]) for scores in found.scores])
    draws = np.array(draws)
    for i in range(3):
        value, own = measure(found.y, found.scores[i]), found.measures[name][i]
        assert own[:3] == pytest.approx((value, *np.quantile(draws[:, i], [0.05, 0.95])))
        gap = found.differences[name][i]
        if i == 0:
            assert gap is None
            continue
        change = draws[:, i] - draws[:, 0]
        expected = (
            value - measure(found.y, found.scores[0]),
            *np.quantile(change, [0.05, 0.95]),
            change.std(ddof=1),
        )
        assert gap[:4] == pytest.approx(expected)


def test_default_measures_fit_the_number_of_rows(found, example):
    assert list(found.measures) == [
        "auc",
        "partial_auc_0.1",
        "precision_at_10",
        "precision_at_30",
        "precision_at_50",
        "precision_at_100",
        "tpr_at_fpr_0.01",
        "average_precision",
    ]
    assert found.decided_by == "precision_at_10"
    X, y = small(60)
    few = quick(X, y, top=40)
    assert (few.n_test, few.top) == (18, 6)
    assert noted(few, "the top list has 6 places instead of 40: a third of the 18 held-out rows")
    assert [name for name in few.measures if "precision_at" in name] == ["precision_at_6"]
    assert few.decided_by == "precision_at_6"  # the default scoring is about the first places
    assert not noted(quick(X, y, top=6), "places instead of")


@pytest.mark.parametrize(
    ("scoring", "decided_by", "noted"),
    [
        ("roc_auc", "auc", False),
        ("r_max", "r_max", False),
        ("map", "average_precision", False),
        ("balanced_accuracy", "partial_auc_0.1", True),
        (lambda ranker, X, y: 0.5, "partial_auc_0.1", True),
    ],
    ids=["sklearn", "loss", "alias", "unmeasured", "callable"],
)
def test_the_measure_that_decides(scoring, decided_by, noted):
    found = quick(*small(), scoring=scoring)
    assert found.decided_by == decided_by
    assert decided_by in found.measures
    assert any("the verdict is about" in note for note in found.notes) == noted


def test_measures_asked_for_and_the_deciding_one():
    found = quick(*small(), measures="auc,ndcg_at_5")
    assert list(found.measures) == ["auc", "ndcg_at_5", "precision_at_5"]


def test_fewer_draws_of_many_rows(monkeypatch):
    monkeypatch.setattr(compare, "MOST_DRAWN", 18 * 2 * 30)
    monkeypatch.setattr(compare, "FEWEST_DRAWS", 5)
    found = quick(*small(), n_resamples=50)
    assert found.n_resamples == 30
    assert "the intervals are of 30 draws instead of 50, to save time with so many rows" in found.notes
    monkeypatch.setattr(compare, "FEWEST_DRAWS", 40)
    assert quick(*small(), n_resamples=50).n_resamples == 40
    assert quick(*small(), n_resamples=39).n_resamples == 39


def test_no_interval_where_no_draw_has_a_positive():
    y = np.array([True] + [False] * 9)
    scores = np.arange(20.0).reshape(2, 10)
    seed = next(s for s in range(100) if (np.random.default_rng(s).integers(0, 10, (2, 10)) > 0).all())
    values, gaps = paired_intervals(y, scores, find_measures("auc"), n_resamples=2, random_state=seed)
    assert values["auc"][0].value == 0.0
    assert np.isnan([*values["auc"][0][1:4], *gaps["auc"][1][1:4]]).all()


# lists


def test_ranks_by_brute_force(found):
    tied = replace(found, scores=np.round(found.scores, 1))
    for comparison in (found, tied):
        for i in range(3):
            s = comparison.scores[i]
            for row in range(0, comparison.n_test, 37):
                above = (s > s[row]).sum() + (s[:row] == s[row]).sum()
                assert comparison.ranks[i, row] == above + 1
        assert (np.sort(comparison.ranks, axis=1) == np.arange(1, comparison.n_test + 1)).all()


def test_top_and_fallen_rows(found, example):
    _, y = example
    base, own = found.ranks[0], found.ranks[2]
    for item, rank in zip(found.top_items(2, 25), range(1, 26), strict=True):
        row = found.row_names.index(item.name)
        assert item == (rank, item.name, found.y[row], base[row], base[row] - rank)
        assert item.positive == y[int(item.name.removeprefix("row ")) - 1]
    fallen = found.fallen(2, 25)
    rows = [row for row in np.argsort(base) if base[row] <= 25 < own[row]]
    assert [(item.name, item.rank, item.base_rank) for item in fallen] == [
        (found.row_names[row], own[row], base[row]) for row in rows
    ]
    assert rows  # big spenders leave the top
    assert found.fallen(0) == []
    assert len(found.top_items(1)) == found.top == 30


def test_a_row_falls_by_one_place(found):
    scores = np.tile(np.arange(found.n_test, 0.0, -1.0), (3, 1))
    scores[2, [1, 2]] = scores[2, [2, 1]]
    comparison = replace(found, scores=scores)
    assert [(item.rank, item.base_rank, item.change) for item in comparison.fallen(2, 2)] == [(3, 2, -1)]
    assert comparison.fallen(1, 2) == comparison.fallen(2, 3) == []


def test_explanations_are_the_largest_parts_of_the_score(found, example):
    X, y = example
    train, _ = hold_out(y == 1)
    texts = found.explanations(2, 5)
    for item, reasons in zip(found.top_items(2, 5), texts, strict=True):
        row = int(item.name.removeprefix("row ")) - 1
        parts = found.coef[2] * (X[row] - X[train].mean(axis=0))
        expected = [j for j in np.argsort(-parts) if parts[j] > 0][:3]
        assert [reason.split(" ")[1] for reason in reasons] == [f"{j + 1}" for j in expected]
        shares = 100 * parts[expected] / parts[parts > 0].sum()
        assert reasons == [
            f"feature {j + 1} {share:.0f} %" for j, share in zip(expected, shares, strict=True)
        ]
    assert sum(lift.share for lift in found.lifts(2, 1, n=6)[0]) == pytest.approx(1)


def test_a_row_at_the_mean_is_lifted_by_nothing(found):
    flat = replace(found, X=np.tile(found.mean, (found.n_test, 1)))
    assert flat.explanations(1, 2) == [[], []]


# verdict


def test_a_push_helps_on_the_push_example(found):
    assert found.verdict.kind == "helps"
    p, first = found.ps[found.chosen], [found.y[np.argsort(-s)[:30]].sum() for s in found.scores]
    gap = found.differences["precision_at_10"][found.chosen]
    text = found.verdict.text
    assert text.startswith(f"A push helps: with p = {p:g} the precision at 10 of the held-out rows is ")
    assert f"(difference {gap.value:+.3f}, 95 % interval {gap.low:+.3f} to {gap.high:+.3f})" in text
    assert f"{first[found.chosen]} of their first 30 are positive against {first[0]}" in text
    areas = [roc_auc_score(found.y, s) for s in (found.scores[0], found.scores[found.chosen])]
    assert f"AUC goes from {areas[0]:.3f} to {areas[1]:.3f}." in text


def test_no_push_where_the_whole_list_counts(example):
    found = quick(*example, scoring="auc")
    assert found.verdict.kind == "no push"
    assert re.match(
        r"No push: p = 1 does best in cross-validation on the training rows, where auc is 0\.9\d\d with p = 1 and "
        r"0\.\d{3} with p = 8, the best push \(difference -0\.\d{3}, standard error 0\.\d{3} over 2 folds\)\. "
        r"That p was not chosen; with it the AUC of the held-out rows is 0\.\d{3} against 0\.9\d\d with p = 1 "
        r"\(difference -0\.\d{3}, 95 % interval -0\.\d{3} to -0\.\d{3}\)\. \d+ of the first 30 held-out rows "
        r"are positive with p = 1, and AUC is 0\.9\d\d\.$",
        found.verdict.text,
    )
    assert noted(found, "if only they matter, choose p by scoring precision_at_30")
    alone = quick(*small(400), ps=(1,))
    assert alone.verdict.text.startswith("No push: p = 1 is the only one tried.")


def test_the_hint_about_the_top_is_not_for_who_chose_by_the_top(example, monkeypatch):
    """Where p = 1 did best at the top in cross-validation, the advice to choose by the top leads nowhere."""
    monkeypatch.setattr(compare, "choose", lambda *_: 0)
    hint = "more of the first 30 held-out rows are positive than with p = 1"
    for scoring, hinted in (("auc", True), ("top", False), ("precision_at_30", False)):
        assert noted(quick(*example, scoring=scoring), hint) == hinted


def with_folds(found, base, push, **changes):
    return replace(found, chosen=0, cv_scores=np.array([base, push]), **changes)


@pytest.mark.parametrize(
    ("push", "kind"),
    [
        ([0.5, 0.5, 0.4, 0.4], "no push"),  # mean -0.05, standard error 0.029
        ([0.6, 0.5, 0.3, 0.5], "no difference"),  # mean -0.025, standard error 0.063
        ([0.5, 0.5, 0.5, 0.4], "no difference"),  # one fold alone: the two are equal
        ([0.5, 0.5, 0.5, 0.5], "no difference"),
        ([0.4, 0.4, 0.4, 0.4], "no push"),
    ],
)
@pytest.mark.parametrize("larger", [True, False], ids=["gain", "loss"])
def test_p_1_is_better_only_beyond_the_noise_of_the_folds(push, kind, larger):
    sign = 1 if larger else -1
    plain = quick(*small(400))
    base, other = sign * np.full(4, 0.5), sign * np.array(push)
    verdict = with_folds(plain, base, other, larger_is_better=larger, places=48).verdict
    gap = other - base
    assert verdict.kind == kind
    assert (
        f"(difference {gap.mean():+.3f}, standard error {gap.std(ddof=1) / 2:.3f} over 4 folds with 48 places"
        in (verdict.text)
    )
    held = plain.differences[plain.decided_by][1]
    assert (
        f"That p was not chosen; with it the precision at {plain.top} of the held-out rows is "
        in verdict.text
    )
    assert (
        f"(difference {held.value:+.3f}, 95 % interval {held.low:+.3f} to {held.high:+.3f})" in verdict.text
    )
    simple = "cannot tell p = 1 from a push, and p = 1 is the simpler one"
    assert (simple in verdict.text) == (kind == "no difference")


def test_places_are_those_of_all_folds():
    found = quick(*small(400), folds=4, top=12)  # a fold has 70 rows, 10 % of them are 7
    assert found.places == 28
    assert quick(*small(400), scoring="precision_at_3").places == 6
    assert quick(*small(400), scoring="auc").places is None
    assert quick(*small(400), scoring="precision_at_3").verdict.kind == "too few to tell"
    assert "looks at only 6 places in all folds" in quick(*small(400), scoring="precision_at_3").verdict.text


@pytest.mark.parametrize("positives", [3, 7, 12])
@pytest.mark.parametrize("flip", [False, True], ids=["positive", "negative"])
def test_few_rows_of_a_class(positives, flip):
    rng = np.random.default_rng(0)
    X, X_test = rng.standard_normal((200, 3)), rng.standard_normal((100, 3))
    y, y_test = X[:, 0] > 0.5, np.arange(100) < positives
    if flip:
        y, y_test = ~y, ~y_test
    found = quick(X, y, X_test=X_test, y_test=y_test)
    word = "negative" if flip else "positive"
    assert (found.verdict.kind == "too few to tell") == (positives < 10)
    assert found.verdict.text.startswith(
        f"Too few to tell (only {positives} held-out rows are {word}): "
    ) == (positives < 10)
    none = "There are too few held-out rows of one class for intervals, so none is shown."
    ends = [interval.low for row in found.measures.values() for interval in row]
    ends += [gap.high for row in found.differences.values() for gap in row if gap is not None]
    assert np.isnan(ends).all() == (positives < 5) == (none in found.verdict.caveats)
    assert noted(found, f"only {positives} held-out rows are {word}: no intervals are shown") == (
        positives < 5
    )
    assert noted(found, f"only {positives} held-out rows are {word}: the intervals are rough") == (
        5 <= positives < 10
    )


def test_ties_at_the_end_of_the_list():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (300, 1)).astype(float)
    y = (X[:, 0] + rng.standard_normal(300) > 1).astype(int)
    found = quick(X, y)
    ones = found.X[:, 0] == 1
    expected = found.top * found.y[ones].mean()
    assert found.found(0) == pytest.approx(expected)
    assert noted(
        found,
        f"p = 1: {ones.sum()} rows share the score at place {found.top}; the list shows them in input order, the "
        "measure counts their mean",
    )
    assert (
        f"{expected:.1f} of the first {found.top} held-out rows are positive with p = 1" in found.verdict.text
    )
    assert not noted(quick(*small(300)), "share the score")


def test_a_fit_that_did_not_converge_is_said(found):
    rankers = [*found.rankers]
    rankers[found.chosen] = copy(rankers[found.chosen])
    rankers[found.chosen].converged_ = False
    early = replace(found, rankers=rankers)
    caveat = f"The fit of p = {found.ps[found.chosen]:g} did not converge."
    assert caveat in early.verdict.caveats
    assert caveat not in found.verdict.caveats
    html = build(early)
    assert html.count("fit not converged: an approximate list") == 1
    assert html.count("no: approximate") == 1
    assert "not converged" not in build(found)


def test_a_fit_that_stops_early_is_a_note(monkeypatch):
    monkeypatch.setattr(compare, "PNormPush", partial(PNormPush, max_iter=2))
    found = quick(*small(), ps=(1, 64))
    assert not found.converged(1)
    assert noted(
        found, "p = 64: the fit did not converge in 2 iterations, so its list is approximate: compare smaller"
    )
    assert not noted(found, "max_iter")


@pytest.mark.slow
def test_notes_on_fits_give_advice_that_can_be_followed():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 30))
    y = (X[:, 0] + rng.standard_normal(60) > 1).astype(int)
    found = compare_pushes(X, y, ps=(1, 64), alphas=(1e-12,), folds=2, n_resamples=20)
    assert not found.converged(1)
    assert noted(found, "p = 64: the fit did not converge in ")
    assert noted(found, "compare smaller p, or use fewer columns")
    assert noted(found, "fits of cross-validation were stopped after 200 iterations")
    assert not noted(found, "max_iter")


def test_a_push_without_a_minimum_is_never_chosen():
    X, y = small(300)
    found = quick(X, y, ps=(1, np.inf), scoring=lambda ranker, X, y: float(ranker.p == np.inf))
    assert found.collapsed == [False, True]
    assert found.cv_mean == [0.0, 1.0]
    assert found.chosen == 0
    assert found.verdict.text.startswith("No push: no push that was tried could be chosen.")
    assert noted(found, "p = inf has no minimum but 0")
    html = build(found)
    assert "p = ∞ (no minimum but 0)" in html
    apart = quick(X, (X[:, 0] > 0.8).astype(int), ps=(1, np.inf), alphas=(1e-2,))
    assert apart.collapsed == [False, False]


def test_a_loss_keeps_its_sign():
    found = quick(*small(400), scoring="p_norm_risk_4")
    assert not found.larger_is_better
    assert all(0 < mean < 1 for mean in found.cv_mean)
    assert found.chosen == int(np.argmin(found.cv_mean))


def test_a_push_does_not_help_on_one_gaussian_each():
    kinds = [quick(*small(400, seed), scoring="precision_at_10").verdict.kind for seed in range(5)]
    assert "helps" not in kinds


@pytest.mark.parametrize(
    ("decided_by", "low", "high", "kind"),
    [
        ("auc", 0.01, 0.2, "helps"),
        ("auc", -0.2, -0.01, "hurts"),
        ("auc", -0.1, 0.1, "no difference"),
        ("auc", 0.0, 0.1, "no difference"),
        ("r_max", 0.01, 0.2, "hurts"),
        ("r_max", -0.2, -0.01, "helps"),
    ],
)
def test_kinds_of_verdict(decided_by, low, high, kind):
    found = quick(*small(400), measures=["auc", "r_max"])
    gap = Interval(0.05, low, high, 0.1, 0.95, 120)
    found = replace(found, chosen=1, decided_by=decided_by, differences={decided_by: [None, gap]})
    assert found.verdict.kind == kind
    openings = {"no difference": "A push makes no clear difference: "}
    assert found.verdict.text.startswith(openings.get(kind, f"A push {kind}: "))


# bounds


def test_bounds_are_those_of_the_library(found):
    r_min = 1 - roc_auc_score(found.y, found.scores[0])
    covering = partial(log_covering_linear, norm_bound=1.0, feature_bound=np.sqrt(6), n_features=6)
    for row, p in zip(found.bound, found.ps, strict=True):
        assert row.p == p
        assert row.negatives == negatives_needed(0.1, 0.05, 0.1, p, covering, r_min=r_min)
        assert row.ratio == pytest.approx(found.bound_factor ** (p - 1))
        assert row.ratio == pytest.approx(row.negatives / found.bound[0].negatives, rel=1e-4)
    assert found.bound_factor == pytest.approx(max(r_min, 0.025) ** -2)


def test_advice_compares_with_the_training_rows():
    few = push_bounds([1, 2, np.inf], 5, 0.2, 50, 500)
    assert few[0][2] == (np.inf, np.inf, np.inf)
    assert "50 positives and 500 negatives, are too few even for p = 1" in few[2]
    assert "by 25 (20.0% of the held-out pairs" in few[2]
    assert "are enough up to p = 2." in push_bounds([1, 2, 64], 2, 0.5, 10**6, 10**6)[2]
    assert push_bounds([1, 1000], 2, 0.0, 10, 10)[0][1].ratio == np.inf


# results as data


def test_table_is_tidy(found):
    table = found.table()
    assert table.columns == [
        *("p", "measure", "value", "low", "high", "difference", "difference_low", "difference_high")
    ]
    assert table.height == 3 * len(found.measures)
    row = table.row(by_predicate=(pl.col("p") == 16) & (pl.col("measure") == "auc"), named=True)
    assert row["value"] == found.measures["auc"][2].value
    assert row["difference_high"] == found.differences["auc"][2].high
    assert table.filter(pl.col("p") == 1)["difference"].null_count() == len(found.measures)


def test_to_dict_is_json():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what the solver of p = inf warns of becomes a note
        found = quick(*small(), ps=(1, np.inf))
    data = json.loads(json.dumps(found.to_dict()))
    assert data["chosen_p"] in (1.0, "inf")
    assert [row["p"] for row in data["cross_validation"]] == [1.0, "inf"]
    assert data["verdict"]["kind"] == found.verdict.kind
    assert len(data["measures"]) == found.table().height
    assert data["coefficients"][1]["feature 2"] == found.coef[1, 1]
    assert data["top"] == [item._asdict() for item in found.top_items(found.chosen)]
    assert data["n_train"] + data["n_test"] == 60


def test_progress_and_seconds():
    stages = []
    found = quick(*small(), progress=stages.append)
    assert stages == ["read", "choose p and alpha", "fit", "measure", "bound"]
    assert list(found.seconds) == [*stages, "total"]
    assert found.seconds["total"] == pytest.approx(sum(found.seconds[stage] for stage in stages))


# names, notes, errors


def test_names_of_rows_and_features():
    X, y = small()
    pandas = pytest.importorskip("pandas")
    columns = ["a", "b", "c"]
    for data in (pandas.DataFrame(X, columns=columns), pl.DataFrame(X, schema=columns)):
        found = quick(data, y)
        assert found.feature_names == columns
        same_fit(found, quick(X, y))
    given = quick(X, y, feature_names=["u", "v", "w"], row_names=[f"case {i}" for i in range(60)])
    assert given.feature_names == ["u", "v", "w"]
    assert given.row_names == [f"case {row}" for row in hold_out(y == 1)[1]]
    parts = quick(X, y, X_test=X[:9], y_test=y[:9], test_row_names=range(9))
    assert parts.row_names == [str(row) for row in range(9)]
    assert quick(X, y, X_test=X[:9], y_test=y[:9]).row_names[0] == "row 1"
    words = quick(X, np.where(y, "yes", "no"))
    assert np.array_equal(words.y, quick(X, y).y)


def noted(found, text):
    return any(text in note for note in found.notes)


def test_notes_on_p_and_folds():
    X, y = small()
    added = quick(X, y, ps=(8, 2))
    assert added.ps == (1.0, 2.0, 8.0)
    assert noted(added, "p = 1 was added")
    assert not noted(quick(X, y), "p = 1 was added")
    rare = np.zeros(60, dtype=int)
    rare[np.argsort(-X[:, 0])[:5]] = 1
    few = compare_pushes(X, rare, ps=(1,), n_resamples=20)
    assert few.n_train_positives == 3 and few.n_test_positives == 2  # noqa: PT018
    assert noted(few, "3 folds instead of 5: one class has only 3 training rows")
    assert noted(few, "only 2 held-out rows are positive: no intervals are shown")
    assert noted(few, "18 of 60 rows are held out at random")
    given = quick(X, y, X_test=X, y_test=y)
    assert not noted(given, "held out at random")


def test_note_on_the_hardest_push(example):
    hardest = quick(*example, scoring="precision_at_10")
    assert hardest.ps[hardest.chosen] == 8
    assert noted(hardest, "p = 8 is the hardest push tried and did best")
    assert not noted(quick(*example, scoring="auc"), "the hardest push")


def test_notes_on_convergence(monkeypatch):
    X, y = small()
    # with alpha = 0 and separated classes there is no minimum, which every fit warns of
    separated = quick(X, (X[:, 0] > 0.5).astype(int), alphas=(0.0,))
    assert noted(separated, "p = 8: the training data are separated")
    assert noted(
        separated, "4 of the 4 fits of cross-validation came with a warning: the training data are separated"
    )
    assert not noted(quick(X, y), "warning")

    fit = PNormPush.fit

    def warning(self, *args, **kwargs):
        warnings.warn("something else", UserWarning)
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(PNormPush, "fit", warning)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with pytest.warns(UserWarning, match="something else"):
            quick(X, y)
    assert issubclass(ConvergenceWarning, UserWarning)  # so the two are told apart by their class


X, Y = small()
HOLES = X.copy()
HOLES[3, 1] = np.nan
ONE = np.eye(60, dtype=int)[0]
ONE_POSITIVE = np.where(Y == 1, 0, 1)
ONE_POSITIVE[hold_out(Y == 1)[0][Y[hold_out(Y == 1)[0]] == 1][0]] = 1


def broken(ranker, X, y):
    raise ValueError("no luck\nat all")


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        (X, np.zeros(60), {}, "y needs two classes, got 1"),
        (X, np.arange(60), {}, "y needs two classes, got 60"),
        (X, Y[:50], {}, "y needs one label for each of the 60 rows"),
        (X, np.where(Y, 1.0, np.nan), {}, "y has missing or mixed labels"),
        (HOLES, Y, {}, "X has a missing or infinite value in row 4, column 2"),
        (X[0], Y, {}, "X cannot be used: Expected 2D array"),
        (X, ONE, {}, "only 1 training row is positive, choosing p needs at least 2"),
        (X, 1 - ONE, {}, "only 1 training row is negative"),
        (X, Y, {"holdout": 0.01}, "none of the held-out rows is positive"),
        (X, Y, {"holdout": 0.0}, "holdout must be a share between 0 and 1, got 0.0"),
        (X, Y, {"holdout": 1.5}, "holdout must be a share between 0 and 1, got 1.5"),
        (X, Y, {"ps": (0.5,)}, "each p must be a number of at least 1, or inf"),
        (X, Y, {"ps": (np.nan,)}, "each p must be a number of at least 1, or inf"),
        (X, Y, {"ps": ("4",)}, "each p must be a number of at least 1, or inf"),
        (X, Y, {"ps": (1, 1e300)}, "ps: a finite p is at most 10,000, got 1e+300; use inf"),
        (X, Y, {"scoring": "neg_log_loss"}, "the scoring 'neg_log_loss' failed on a fold: "),
        (X, Y, {"scoring": broken}, "the scoring 'broken' failed on a fold: no luck"),
        (X, Y, {"scoring": 7}, 'scoring must be "top", a name or a function'),
        (
            X,
            Y,
            {"scoring": "precision_at_19"},
            "the scoring 'precision_at_19' looks at 19 rows, a fold or the",
        ),
        (X, Y, {"sample_weight": np.zeros(60)}, "sample_weight is 0 in all rows"),
        (X, Y, {"sample_weight": ONE_POSITIVE}, "in one fold a class has no row to learn from with a weight"),
        (X, Y, {"alphas": ()}, "alphas needs at least one value"),
        (X, Y, {"alphas": (-1.0,)}, "alpha must be a finite number"),
        (X, Y, {"folds": 1}, "folds must be a whole number of at least 2"),
        (X, Y, {"scoring": "nonsense"}, "unknown scorer 'nonsense'"),
        (X, Y, {"measures": "nonsense"}, "unknown measure 'nonsense'"),
        (X, Y, {"top": 0}, "top must be a whole number"),
        (X, Y, {"confidence": 95}, "confidence must be between 0 and 1"),
        (X, Y, {"random_state": -1}, "random_state must be a whole number"),
        (X, Y, {"sample_weight": -np.ones(60)}, "sample_weight must be numbers of at least 0"),
        (X, Y, {"sample_weight": ["a"] * 60}, "sample_weight must be numbers of at least 0"),
        (X, Y, {"feature_names": ["a"]}, "feature_names needs 3 names, got 1"),
        (X, Y, {"row_names": ["a"]}, "row_names needs 60 names, got 1"),
        (X, Y, {"X_test": X}, "X_test and y_test come together"),
        (X, Y, {"X_test": X[:, :2], "y_test": Y}, "X_test has 2 columns, X 3: give the same columns"),
        (X, Y, {"X_test": X, "y_test": Y + 1}, "y_test has the label 2, which y does not"),
        (X, Y, {"X_test": X, "y_test": 0 * Y}, "none of the held-out rows is positive"),
        (
            pl.DataFrame(X, schema=["a", "b", "c"]),
            Y,
            {"X_test": pl.DataFrame(X, schema=["a", "c", "b"]), "y_test": Y},
            "X_test has the column 'c' where X has 'b'",
        ),
    ],
    ids=lambda value: value[:40].replace(" ", "-") if isinstance(value, str) else "",
)
def test_bad_input_is_one_line(X, y, options, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}") as error:
        quick(X, y, **options)
    assert "\n" not in str(error.value)


# tables


def test_a_table_is_compared_as_its_standardised_numbers():
    data = frame()
    found = quick_table(Table(data))
    y = data["fraud"].to_numpy()
    train, test = hold_out(y == 1)
    X = data.select("x", "z").to_numpy()
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    expected = quick(X[train], y[train], X_test=X[test], y_test=y[test])
    assert found.feature_names == ["x", "z"]
    assert found.coef == pytest.approx(expected.coef, rel=1e-9)
    assert found.row_names == [f"row {row + 1}" for row in test]
    assert found.table().drop("p", "measure").to_numpy() == pytest.approx(
        expected.table().drop("p", "measure").to_numpy(), nan_ok=True
    )
    assert found.notes[0].startswith("60 of 200 rows are held out at random")
    assert next(iter(found.seconds)) == "encode"
    stages = [seconds for stage, seconds in found.seconds.items() if stage != "total"]
    assert found.seconds["total"] == pytest.approx(sum(stages))


def test_encoding_is_learnt_from_training_rows():
    data = frame(city=["Oslo", "Rome"] * 100)
    first = quick_table(Table(data))
    test = hold_out(data["fraud"].to_numpy() == 1)[1]
    x, city = data["x"].to_numpy().copy(), data["city"].to_list()
    x[test] *= 1000
    for row in test:
        city[row] = "Lima"
    second = quick_table(Table(data.with_columns(x=pl.Series(x), city=pl.Series(city))))
    same_fit(first, second)
    assert second.feature_names == ["x", "z", "city=Oslo", "city=Rome"]
    assert noted(
        second, "column 'city' has values without a level of their own, taken as an average row: 'Lima'"
    )


def test_a_table_of_its_own_to_measure_on():
    data, new = frame(), frame(80, seed=1)
    found = quick_table(Table(data), test_table=Table(new.with_columns(fraud=pl.col("fraud"))))
    assert (found.n_train, found.n_test) == (200, 80)
    assert found.row_names[:2] == ["row 1", "row 2"]
    assert np.array_equal(found.y, new["fraud"].to_numpy() == 1)
    with pytest.raises(
        InputError, match=r"new\.csv has no column 'x', 'z': it needs every column that is used"
    ):
        quick_table(Table(data), test_table=Table(new.drop("x", "z"), "new.csv"))
    assert not found.verdict.caveats


def test_a_test_table_needs_only_what_is_used():
    data = frame(flat=np.ones(200), note=[f"n{i}" for i in range(200)])
    found = quick_table(Table(data), test_table=Table(frame(80, seed=1)))
    assert found.feature_names == ["x", "z"]
    assert found.left_out == "2 of 4 columns were left out; the notes say why."
    assert quick_table(Table(frame())).left_out == ""


def test_test_rows_that_are_training_rows():
    data, caveat = frame(), "The test rows are training rows, so nothing here says how new rows are ranked."
    new = frame(80, seed=1)
    for rows, known in (
        (data, True),
        (pl.concat([data[:41], new[:39]]), True),
        (pl.concat([data[:39], new[:41]]), False),
    ):
        assert (caveat in quick_table(Table(data), test_table=Table(rows)).verdict.caveats) == known
    few = frame().with_columns(x=(pl.col("x") > 0).cast(pl.Int8), z=(pl.col("z") > 0).cast(pl.Int8))
    other = frame(100, seed=1).with_columns(
        x=(pl.col("x") > 0).cast(pl.Int8), z=(pl.col("z") > 0).cast(pl.Int8)
    )
    assert (
        caveat not in quick_table(Table(few), test_table=Table(other)).verdict.caveats
    )  # they meet by chance
    assert caveat in quick_table(Table(few), test_table=Table(few)).verdict.caveats


def written(tmp_path, separator=",", **more):
    """A table as a file has it: all its cells are text."""
    path = tmp_path / "pay.csv"
    frame(**more).write_csv(path, separator=separator)
    return read_table(path)


def amounts(form, seed=5):
    return [form(v) for v in np.random.default_rng(seed).lognormal(6, 2, 200)]


@pytest.mark.parametrize("separator", [";", "\t"], ids=["semicolon", "tab"])
def test_decimal_commas(tmp_path, separator):
    plain = amounts(lambda v: round(v, 2))
    comma = [f"{v:,.2f}".translate(str.maketrans(",.", ".,")) for v in plain]
    found = quick_table(written(tmp_path, separator, amount=comma))
    same = quick_table(Table(frame(amount=plain)))
    assert found.feature_names == ["x", "z", "amount"]
    np.testing.assert_allclose(found.X, same.X)
    assert noted(found, "read with decimal commas: column 'amount'")
    assert not noted(same, "decimal commas")


@pytest.mark.parametrize(
    ("form", "separator"),
    [
        (lambda v: f"${v:,.2f}", ","),
        (lambda v: f"{v:.0f} %", ","),
        (lambda v: f"{v:,.0f} ".replace(",", " ") + "€", ","),
        (lambda v: f"{v:.3f}".replace(".", ","), ","),
        (lambda v: f"{1000 + v:,.0f}", ";"),  # commas between thousands, or decimal ones?
        (lambda v: f"{v:.2f}" if v < 100 else f"{v:.2f}".replace(".", ","), ";"),  # points and commas
    ],
    ids=["dollars", "percent", "euros", "quoted", "thousands", "mixed"],
)
def test_numbers_written_as_text_are_left_out_loudly(tmp_path, form, separator):
    found = quick_table(written(tmp_path, separator, amount=amounts(form)))
    assert found.feature_names == ["x", "z"]
    assert noted(found, "left out: column 'amount' (looks like numbers written as text: ")
    assert found.verdict.caveats == ("Left out although it looks like numbers written as text: 'amount'.",)
    assert found.left_out == "1 of 3 columns was left out; the notes say why."


def test_few_values_that_look_like_numbers_are_not_one_hot_encoded_unless_asked(tmp_path):
    table = written(tmp_path, rate=[f"{i % 4} %" for i in range(200)])
    assert quick_table(table).feature_names == ["x", "z"]
    assert "rate=0 %" in quick_table(table, categorical=["rate"]).feature_names
    with pytest.raises(
        InputError, match="no column left to use as a feature: column 'rate' looks like numbers"
    ):
        quick_table(table, drop=["x", "z"])


@pytest.mark.parametrize("mark", ["-", "?", "–", "N.A."])
def test_a_mark_among_numbers_is_a_missing_one(tmp_path, mark):
    age = [mark if i in (3, 150) else str(i % 7) for i in range(200)]
    found = quick_table(written(tmp_path, age=age))
    assert found.feature_names == ["x", "z", "age"]
    assert noted(found, f"taken as missing: 2 cells of column 'age' ({mark!r})")
    assert noted(found, "filled: column 'age' (2 missing numbers, with the training median)")
    many = quick_table(written(tmp_path, age=[mark if i % 9 == 0 else str(i % 7) for i in range(200)]))
    assert many.feature_names == ["x", "z"]
    assert noted(many, "left out: column 'age' (looks like numbers written as text: ")


def test_dates_as_text_are_dates(tmp_path):
    days = [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2024" for i in range(200)]
    stamps = [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}T12:30:00Z" for i in range(200)]
    found = quick_table(written(tmp_path, day=days, stamp=stamps))
    assert found.feature_names == ["x", "z"]
    for name in ("day", "stamp"):
        assert noted(
            found, f"left out: column '{name}' (dates: if the rows are ordered in time, measure on later"
        )


def test_what_a_first_look_leaves_out_and_says():
    n = 200
    rng = np.random.default_rng(3)
    data = frame(
        case_id=np.arange(n),
        merchant=[f"m{i}" for i in range(n)],
        city=rng.choice(["Oslo", "Rome", "Lima"], n),
        when=pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 7, 18), eager=True),
        flat=np.ones(n),
        same=["a"] * n,
        empty=pl.Series([None] * n, dtype=pl.Float64),
        age=[None if i % 10 == 0 else float(i % 7) for i in range(n)],
        area=[None if i % 4 == 0 else "north" for i in range(n)],
    )
    found = quick_table(Table(data))
    cities = ["city=Lima", "city=Oslo", "city=Rome"]
    missing = ["age", "age missing", "area=north", "area missing"]
    assert found.feature_names == ["x", "z", *cities, *missing]
    training = len(hold_out(data["fraud"].to_numpy() == 1)[0])
    assert found.notes[1:10] == [
        "left out: column 'case_id' (another whole number in every row, like an id: name it in --features to keep it)",
        f"left out: column 'merchant' (text, {training} different values)",
        "one-hot encoded: column 'city' (text, 3 different values)",
        "left out: column 'when' (dates: if the rows are ordered in time, measure on later rows with --test)",
        "left out: column 'flat' (one value only in the training rows)",
        "left out: column 'same' (one value only in the training rows)",
        "left out: column 'empty' (no values in the training rows)",
        "one-hot encoded: column 'area' (text, 1 different value)",
        "filled: column 'age' (20 missing numbers, with the training median)",
    ]
    assert found.notes[10] == "column 'area' has 50 missing values, taken as none of its values"
    kept = quick_table(Table(data), features=["x", "case_id"])
    assert kept.feature_names == ["x", "case_id"]
    chosen = quick_table(Table(data), categorical=["area"], impute="mean", drop=["merchant"])
    assert chosen.feature_names == ["x", "z", *missing]
    assert noted(chosen, "left out: column 'city' (text, 3 different values)")
    assert noted(chosen, "with the training mean")
    assert "city=Oslo" in quick_table(Table(data), categorical=["all"], drop=["merchant"]).feature_names


def test_a_name_like_an_id_is_not_enough():
    data = frame(paid=np.arange(200), visit_no=np.arange(200) // 2, rowId=np.arange(200))
    assert quick_table(Table(data)).feature_names == ["x", "z", "paid", "visit_no"]


def test_median_is_that_of_the_training_rows():
    data = frame()
    test = hold_out(data["fraud"].to_numpy() == 1)[1]
    x = data["x"].to_list()
    x[test[0]] = None
    found = quick_table(Table(data.with_columns(x=pl.Series(x))))
    train = np.setdiff1d(np.arange(200), test)
    own = data["x"].to_numpy()[train]
    assert found.X[0, 0] == pytest.approx((np.median(own) - own.mean()) / own.std())


def test_rows_without_a_target_are_left_out():
    data = frame()
    words = pl.Series([None if i == 0 else "NA" if i == 5 else str(v) for i, v in enumerate(data["fraud"])])
    found = quick_table(Table(data.with_columns(fraud=words), "pay.csv"))
    assert found.n_train + found.n_test == 198
    assert noted(found, "left out: 2 rows of pay.csv whose target 'fraud' is missing")
    kept = np.delete(np.arange(200), [0, 5])
    test = kept[hold_out(data["fraud"].to_numpy()[kept] == 1)[1]]
    assert found.row_names == [f"row {row + 1}" for row in test]


def test_ids_and_weights():
    data = frame(case=[None if i == 7 else f"C{i}" for i in range(200)], w=np.arange(200) % 3)
    found = quick_table(Table(data), id="case", weight="w")
    y = data["fraud"].to_numpy()
    train, test = hold_out(y == 1)
    assert found.feature_names == ["x", "z"]
    assert found.row_names == ["row 8" if row == 7 else f"C{row}" for row in test]
    X = data.select("x", "z").to_numpy()[train]
    again = np.repeat(X, train % 3, axis=0)
    X = (X - again.mean(axis=0)) / again.std(axis=0)
    expected = PNormPush(8, alpha=1e-6).fit(X, y[train], sample_weight=train % 3)
    assert found.coef[1] == pytest.approx(expected.coef_[0], rel=1e-6)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_column_that_gives_the_answer_away(sign):
    data = frame()
    leak = data.with_columns(settled=sign * (2 * pl.col("fraud") + 0.5 * (pl.col("z") / 100)))
    note = "column 'settled' alone separates the classes almost perfectly: check that it is known when you rank (leak?)"
    assert noted(quick_table(Table(leak), alphas=(1e-2,)), note)
    assert not noted(quick_table(Table(data)), "leak")


def test_groups_of_a_format_are_no_feature():
    data = frame(qid=np.arange(200) % 9)
    found = quick_table(Table(data, roles={"groups": "qid"}))
    assert found.feature_names == ["x", "z"]
    assert noted(found, "column 'qid' names groups: here rows of all groups are one list")


def test_a_fault_is_named_by_its_line(tmp_path):
    data = frame().cast(pl.String)
    x = data["x"].to_list()
    x[150] = "1,5x"
    path = tmp_path / "pay.csv"
    data.with_columns(x=pl.Series(x)).write_csv(path)
    with pytest.raises(InputError, match=r"pay\.csv line 152, column 'x': '1,5x' is not a number; one-hot"):
        quick_table(read_table(path))


@pytest.mark.parametrize(
    ("more", "options", "message"),
    [
        ({}, {"target": "frod"}, "table has no column 'frod'; did you mean 'fraud'?"),
        ({}, {"features": ["y"]}, "table has no column 'y'"),
        ({}, {"drop": ["x", "z"]}, "table has no column left to use as a feature"),
        (
            {"x": np.ones(200), "z": np.ones(200)},
            {},
            "table has no column left to use as a feature: name some",
        ),
        ({}, {"categorical": ["q"]}, "--categorical q: the column is not among the features"),
        ({}, {"positive": "maybe"}, "table column 'fraud' has no value 'maybe'"),
        ({}, {"impute": "mode"}, "unknown imputation 'mode'"),
        ({}, {"scale": "log"}, "unknown scale 'log'"),
        ({}, {"holdout": 2}, "holdout must be a share between 0 and 1, got 2"),
        ({"w": np.full(200, -1.0)}, {"weight": "w"}, "table row 1, column 'w': a weight must be a number"),
        ({"m": [f"m{i}" for i in range(200)]}, {"features": ["m"]}, "table row 1, column 'm': 'm0' is not"),
        ({"w": np.zeros(200)}, {"weight": "w"}, "table column 'w': all weights are 0"),
        (
            {"big": np.linspace(1, 2, 200) * 1e300},
            {},
            "table column 'big' has numbers of size 2e+300, too large",
        ),
        (
            {"tiny": np.linspace(1, 2, 200) * 1e-300},
            {},
            "table column 'tiny' has numbers of size 2e-300, too small",
        ),
        ({}, {"id": "fraud"}, "column 'fraud' is the target: it cannot be the id as well"),
        ({}, {"random_state": -1}, "random_state must be a whole number of at least 0"),
        ({"t": pl.Series([None] * 200)}, {"target": "t"}, "table column 't' has no values"),
    ],
    ids=lambda value: value[:40].replace(" ", "-") if isinstance(value, str) else "",
)
def test_bad_tables_are_one_line(more, options, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}") as error:
        quick_table(Table(frame().with_columns(**{k: pl.Series(v) for k, v in more.items()})), **options)
    assert "\n" not in str(error.value)


def test_few_values_is_a_limit_of_training_rows():
    limit = FEW_VALUES
    texts = [f"v{i % limit}" for i in range(200)]
    data = frame(many=texts)
    found = quick_table(Table(data))
    train = hold_out(data["fraud"].to_numpy() == 1)[0]
    counts = data["many"][train].value_counts().rows()
    levels = sorted(f"many={value}" for value, count in counts if count >= 5)
    assert found.feature_names == ["x", "z", *levels, *["many other"] * (len(levels) < limit)]
    over = quick_table(Table(frame(many=[f"v{i % (limit + 1)}" for i in range(200)])))
    assert over.feature_names == ["x", "z"]


@pytest.mark.parametrize(("n", "top"), [(60, 5), (400, 12), (2000, 30)])
def test_the_top_is_a_tenth_of_the_list_within_reason(n, top):
    found = quick(*small(n))
    assert found.top == top
    assert f"precision_at_{top}" in found.measures


def test_the_default_scoring_looks_as_deep_into_a_fold_as_into_the_list():
    """By hand: folds, alphas and p as in the comparison, the first 10 % of every fold."""
    X, y = small(400)
    found = compare_pushes(X, y, ps=(1, 8), alphas=(1e-6, 1e-2), folds=3, top=12, n_resamples=20)
    train, test = hold_out(np.asarray(y) == 1, 0.3, 0)
    assert found.n_test == len(test) == 120
    folds = StratifiedKFold(3, shuffle=True, random_state=0).split(X[train], y[train])
    expected = np.empty((3, 2, 2))
    for number, (inner, outer) in enumerate(folds):
        for (i, alpha), (j, p) in product(enumerate((1e-6, 1e-2)), enumerate((1, 8))):
            ranker = PNormPush(p, alpha=alpha).fit(X[train][inner], y[train][inner])
            first = np.argsort(-ranker.decision_function(X[train][outer]))[: round(0.1 * len(outer))]
            expected[number, i, j] = y[train][outer][first].mean()
    assert found.cv_mean == pytest.approx(expected.mean(axis=0).max(axis=0))
    assert found.scoring == "precision in the first 10 % of the rows"
    assert found.decided_by == "precision_at_12"
    few = quick(*small(100), folds=5)  # a tenth of a fold of 14 rows would be one place
    assert few.scoring == "precision in the first 5 rows of each fold"


def test_a_fold_shows_at_least_five_places():
    y, scores = np.array([1, 0, 1, 0, 0, 1, 1]), np.arange(7.0)[::-1]
    ranker = SimpleNamespace(decision_function=lambda X: scores)
    assert precision_of_share(0.01)(ranker, None, y) == pytest.approx(2 / 5)
    assert precision_of_share(1.0)(ranker, None, y) == pytest.approx(4 / 7)
    assert precision_of_share(0.01)(
        SimpleNamespace(decision_function=lambda X: scores[:3]), None, y[:3]
    ) == pytest.approx(2 / 3)


def test_draws_that_cannot_tell_the_confidence():
    X, y = small(200)
    assert noted(
        quick(X, y, confidence=0.99, n_resamples=150), "150 draws are too few for intervals of 99 % confid"
    )
    assert not noted(quick(X, y, confidence=0.99, n_resamples=200), "too few for intervals")


# the page


def test_names_on_the_page_are_isolated_and_shortened():
    X, y = small(300)
    long, turning = "a very long name " * 9, "rtl \u202e evil"
    found = quick(X, y, feature_names=[long, turning, "c"], row_names=[f"{turning} {i}" for i in range(300)])
    html = build(found)
    assert f'<bdi title="{long}">{long[:24]}…{long[-23:]}</bdi>' in html
    assert f"<bdi>{turning}</bdi>" in html
    without = re.sub(r"<bdi.*?</bdi>", "", html)
    assert "\u202e" not in without
    assert long not in without


def test_the_page_says_what_its_numbers_are_of(found):
    html = build(found)
    assert "Lists, curves and measures are of held-out rows, which no fit and no choice has seen." in html
    assert "every number below" not in html
    assert re.search(r"<td class=\"num\">[+−]\d+\.\d points</td>", html)
    first = html[html.index('id="coefficients"') :].split('data-frame="0"')[1].split("</table>")[0]
    assert " points<" not in first  # p = 1 against itself
    loud = replace(
        found, caveats=("Beware & doubt.",), left_out="1 of 3 columns was left out; the notes say why."
    )
    box = build(loud).split('class="verdict')[1].split("</div>")[0]
    assert '<p class="caveat">Beware &amp; doubt.</p>' in box
    assert "1 of 3 columns was left out" in box


def test_charts_of_shares_stay_between_0_and_1(found):
    """The highest tick of the precision at 10 is 1, though its interval ends there."""
    html = build(found)
    chart = html[html.index('aria-label="precision at 10 against p') :].split("</svg>")[0]
    ticks = [float(text) for text in re.findall(r'text-anchor="end">([\d.]+)</text>', chart)]
    assert max(ticks) == 1.0
    top = float(re.search(r'class="grid" d="M\S+ (\S+)V', chart).group(1))
    one = [
        float(y)
        for y, text in re.findall(r'y="(\S+)" text-anchor="end">([\d.]+)</text>', chart)
        if text == "1"
    ]
    assert one == [top + 4]


def test_no_interval_is_a_dash_on_the_page():
    rng = np.random.default_rng(0)
    X, X_test = rng.standard_normal((200, 3)), rng.standard_normal((60, 3))
    html = build(quick(X, X[:, 0] > 0.5, X_test=X_test, y_test=np.arange(60) < 3))
    assert "nan" not in html.split("<body>")[1].split("<script>")[0]
    assert '<td class="num">–</td>' in html
