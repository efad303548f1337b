import numpy as np
import pytest
from scipy import stats

from apexrank.comparison.trials import (
    SHARES,
    Split,
    Top,
    Trials,
    corrected_interval,
    gains_of,
    later_rows,
    measures_of,
    repeated_folds,
)
from apexrank.errors import InputError


@pytest.mark.parametrize(
    ("given", "share"),
    [(100, 0.05), ("100", 0.05), ("5%", 0.05), ("0.05", 0.05), (0.05, 0.05), ("2.5 %", 0.025)],
)
def test_a_top_is_a_number_of_rows_or_a_share(given, share):
    assert Top.of(given, n=2000, positives=300).share == pytest.approx(share)


@pytest.mark.parametrize(
    ("n", "positives", "share"), [(2000, 100, 0.05), (2000, 900, 0.1), (10_000, 10, 0.01)]
)
def test_the_default_top_is_as_long_as_the_positives_from_1_to_10_percent(n, positives, share):
    assert Top.of(None, n, positives).share == pytest.approx(share)


@pytest.mark.parametrize("given", ["ten", "0", "90%", 1500, "-3"])
def test_a_top_that_is_none_is_refused(given):
    with pytest.raises(InputError, match="top"):
        Top.of(given, n=2000, positives=300)


def test_top_and_fpr_exclude_each_other():
    with pytest.raises(InputError, match="are alternatives"):
        Top.of("1%", 2000, 300, fpr=0.01)


def test_corrected_interval_is_that_of_nadeau_and_bengio():
    values = np.random.default_rng(0).normal(0.1, 0.05, 25)
    found = corrected_interval(values, 0.25, 0.9)
    error = np.sqrt((1 / 25 + 0.25) * values.var(ddof=1))
    low, high = stats.t.interval(0.9, 24, values.mean(), error)
    assert (found.low, found.high) == pytest.approx((low, high))
    wider = corrected_interval(values, 0.25, 0.9, comparisons=3)
    assert wider.high - wider.low > found.high - found.low


@pytest.mark.parametrize("repeats", [1, 3])
def test_folds_test_each_row_once_a_repeat_and_keep_groups_together(repeats):
    rng = np.random.default_rng(0)
    y, groups = rng.random(300) < 0.2, rng.integers(0, 80, 300)
    splits = repeated_folds(y, folds=5, repeats=repeats, groups=groups, seed=1)
    assert (np.bincount(np.concatenate([split.test for split in splits])) == repeats).all()
    for split in splits:
        assert not set(groups[split.train]) & set(groups[split.test])
        assert not set(split.train) & set(split.test)
        assert y[split.test].any()


def test_folds_are_stratified():
    y = np.arange(200) < 20
    assert {int(y[split.test].sum()) for split in repeated_folds(y, folds=5, repeats=2)} == {4}


def test_groups_with_rows_of_both_classes_are_split_by_their_shares():
    y, groups = np.arange(600) % 10 < 3, np.repeat(np.arange(40), 15)
    splits = repeated_folds(y, folds=5, repeats=2, groups=groups)
    assert len(splits) == 10
    for split in splits:
        assert not set(groups[split.train]) & set(groups[split.test])
        assert len(split.test) == 120
    with pytest.raises(InputError, match="2 groups of each class"):
        repeated_folds(y, folds=5, repeats=1, groups=np.where(y, 0, groups))


def test_later_rows_are_tested_by_fits_on_earlier_ones():
    rng = np.random.default_rng(0)
    time, y = rng.integers(0, 40, 500), rng.random(500) < 0.3
    splits = later_rows(y, time, folds=4)
    assert len(splits) == 4
    for split in splits:
        assert time[split.train].max() < time[split.test].min()
    assert sum(len(split.test) for split in splits) >= 0.4 * len(y)


def test_times_that_cannot_be_split_are_refused():
    with pytest.raises(InputError, match="time"):
        later_rows(np.arange(100) % 2 == 0, np.zeros(100), folds=5)


def test_a_split_has_no_say_in_the_choice_that_is_measured_on_it():
    rng = np.random.default_rng(0)
    values = rng.random((4, 10, 3))
    splits = [Split(np.arange(3), np.arange(3), s // 5) for s in range(10)]
    chosen = Trials(values, np.zeros(0), np.zeros(0)).chosen(splits)
    for s in range(10):
        changed = values.copy()
        changed[:, s] = rng.random((4, 3))
        assert Trials(changed, np.zeros(0), np.zeros(0)).chosen(splits)[s] == chosen[s]


def test_gains_are_the_mean_over_orders_of_tied_rows():
    rng = np.random.default_rng(0)
    y, scores = rng.random(40) < 0.4, rng.integers(0, 6, 40).astype(float)
    found = np.zeros(len(SHARES))
    orders = 2000
    for _ in range(orders):
        order = np.lexsort((rng.random(40), -scores))
        hits = np.append(0, np.cumsum(y[order])) / y.sum()
        found += np.interp(SHARES * 40, np.arange(41), hits) / orders
    np.testing.assert_allclose(gains_of(y, scores), found, atol=0.02)


@pytest.mark.parametrize("top", [Top(share=0.1), Top(fpr=0.2)])
def test_weights_are_repetitions(top):
    rng = np.random.default_rng(0)
    y, scores, weight = rng.random(60) < 0.3, rng.normal(size=60), rng.integers(0, 4, 60).astype(float)
    again = np.repeat(np.arange(60), weight.astype(int))
    assert measures_of(y, scores, weight, top) == pytest.approx(
        measures_of(y[again], scores[again], None, top)
    )
    np.testing.assert_allclose(gains_of(y, scores, weight), gains_of(y[again], scores[again]))
