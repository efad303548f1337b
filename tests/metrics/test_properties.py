"""Properties of every named measure and every public function of `apexrank.metrics`, on random small lists.

A new measure needs a line in `CLAIMS`, a new public name one in `PROPERTIES` at the end of this file.
"""

from __future__ import annotations

from functools import partial
from inspect import signature
from itertools import groupby, permutations, product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from apexrank import InputError, metrics
from apexrank.metrics._labels import check_rows
from apexrank.metrics.evaluation import FAMILIES, find_measure
from tests import test_clicks as clicks

INFINITE = float("inf")


class Claims(NamedTuple):
    """Properties of a measure.

    ``best`` and ``worst`` are its values for the perfect and the reversed list, None if they depend on the list.
    ``ties``: "mean" is the mean over all orders of tied rows, and "ends" says that the two extreme rules are the worst
    and the best of them; "shared" is below them all; None accepts no rule.
    """

    low: float = 0.0
    high: float = 1.0
    best: float | None = None
    worst: float | None = None
    ties: str | None = "mean"
    any_unit_of_weights: bool = False
    ties_are_best: bool = False  # rows with equal labels are best given equal scores


CUT = Claims()
CLAIMS = {
    "auc": Claims(best=1, worst=0, any_unit_of_weights=True),
    "partial_auc": Claims(best=1, worst=0, ties="ends", any_unit_of_weights=True),
    "tpr_at_fpr": Claims(best=1, worst=0, ties=None, any_unit_of_weights=True),
    "precision_at": CUT,
    "recall_at": CUT,
    "average_precision": Claims(best=1),
    "average_precision_at": CUT,
    "ndcg": Claims(best=1),
    "ndcg_at": Claims(best=1),
    "ndcg_linear": Claims(best=1),
    "ndcg_linear_at": Claims(best=1),
    "dcg": Claims(high=INFINITE),
    "dcg_at": Claims(high=INFINITE),
    "err": Claims(ties="ends"),
    "err_at": Claims(ties="ends"),
    "mrr": Claims(best=1),
    "mrr_at": Claims(best=1),
    "winner_takes_all": Claims(best=1),
    "kendall_tau": Claims(low=-1, best=1, worst=-1, ties=None, ties_are_best=True),
    "average_reciprocal_rank": Claims(high=INFINITE, ties="shared"),
    "push_dcg": Claims(high=INFINITE, ties="shared"),
    "r_max": Claims(high=INFINITE, best=0, ties="ends"),
    "p_norm_risk": Claims(best=0, worst=1, ties="ends", any_unit_of_weights=True),
}
NUMBERS = {
    "k": ("1", "3", "100"),
    "max_fpr": ("0.3", "1"),
    "fpr": ("0", "0.4"),
    "p": ("1", "16", "inf"),
    None: (),
}
NAMES = [
    *FAMILIES,
    *(f"{name}_{number}" for name, family in FAMILIES.items() for number in NUMBERS[family.argument]),
    "precision_at_0.4",
    "recall_at_0.4",
]


def claims_of(name):
    return CLAIMS[next(base for base in (name, name.rpartition("_")[0]) if base in CLAIMS)]


def sign_of(name):
    return 1 if find_measure(name).family.greater_is_better else -1


def measured(y, scores, names=NAMES, **options):
    """All measures; a list without a value counts as 0."""
    return metrics.evaluate(y, scores, names, **({"relevant": 1, "empty": "zero"} | options))


def same(values, abs=1e-12):
    return pytest.approx(values, rel=1e-11, abs=abs)


grades, levels = st.integers(0, 3), st.integers(0, 4)
tied_lists = st.lists(st.tuples(grades, levels), min_size=2, max_size=9).map(lambda rows: np.array(rows).T)
grouped_lists = st.lists(st.tuples(grades, levels, st.integers(0, 3)), min_size=2, max_size=14).map(
    lambda rows: np.array(rows).T
)
ordered_grades = st.lists(grades, min_size=2, max_size=9).map(np.array)  # from top to bottom


def falling(n):
    return np.arange(n, 0.0, -1.0)


def two_classes(y):
    assume(0 < (y > 0).sum() < len(y))
    return (y > 0).astype(int)


# Every measure by its name


@settings(max_examples=25)
@given(grouped_lists)
def test_every_value_is_within_its_bounds(rows):
    y, scores, groups = rows
    table = metrics.per_group(y, scores, NAMES, groups=groups, relevant=1)
    for name in NAMES:
        low, high = claims_of(name)[:2]
        assert all(low - 1e-12 <= value <= high + 1e-12 for value in table[name].drop_nulls()), name


@settings(max_examples=25)
@given(tied_lists)
def test_no_list_is_better_than_the_perfect_or_worse_than_the_reversed_one(rows):
    y, scores = rows
    apart = y + 0.5 * np.linspace(0, 1, len(y))  # in the order of the labels without ties
    here = measured(y, scores)
    for ties_are_best, order in ((False, apart), (True, y)):
        perfect, reversed_ = measured(y, order), measured(y, -order)
        for name in NAMES:
            claim, sign = claims_of(name), sign_of(name)
            if claim.ties_are_best != ties_are_best:
                continue
            worst, value, best = (sign * found[name] for found in (reversed_, here, perfect))
            assert value <= best + 1e-12, name
            assert worst - 1e-12 <= value or claim.ties == "shared", name
            if y.min() < 1 <= y.max():  # two classes: all measures have a value
                assert claim.best is None or perfect[name] == same(claim.best), name
                assert claim.worst is None or reversed_[name] == same(claim.worst), name


@settings(max_examples=25)
@given(ordered_grades, st.data())
def test_swapping_two_neighbours_in_the_wrong_order_never_hurts(y, data):
    wrong = np.flatnonzero(y[:-1] < y[1:])
    assume(len(wrong))
    i = data.draw(st.sampled_from(wrong.tolist()))
    swapped = y.copy()
    swapped[[i, i + 1]] = y[[i + 1, i]]
    before, after = measured(y, falling(len(y))), measured(swapped, falling(len(y)))
    for name in NAMES:
        assert sign_of(name) * (after[name] - before[name]) >= -1e-12, name


INCREASING = {
    "shifted": lambda s: s - 1e6,
    "small": lambda s: 1e-6 * s,
    "large": lambda s: 1e6 * s,
    "float32": lambda s: (1e-6 * s).astype(np.float32),
    "whole": lambda s: s.astype(np.int8),
    "exponential": lambda s: np.exp(100 * s),
    "subnormal": lambda s: 5e-324 * s,
    "hardly apart": lambda s: 1 + s * np.finfo(float).eps,
    "to infinity": lambda s: np.where(s == 4, np.inf, s),
    "beyond doubles": lambda s: 2**62 + s.astype(np.int64),
}


@pytest.mark.parametrize("how", INCREASING)
@settings(max_examples=8)
@given(rows=grouped_lists)
def test_only_the_order_of_the_scores_counts(how, rows):
    y, scores, groups = rows
    assert measured(y, INCREASING[how](scores.astype(float)), groups=groups) == measured(
        y, scores, groups=groups
    )


RELABELLED = {
    "other numbers": lambda groups: 17 - 5 * groups,
    "text": lambda groups: np.array(["b", "", "ä", "a b"])[groups],
    "floats": lambda groups: np.array([0.5, -1.0, 1e300, 2.0])[groups],
    "objects": lambda groups: np.array(["x", "10", "9", "y"], dtype=object)[groups],
}


@pytest.mark.parametrize("how", RELABELLED)
@settings(max_examples=10)
@given(rows=grouped_lists, data=st.data())
def test_neither_names_of_groups_nor_the_order_of_rows_count(how, rows, data):
    y, scores, groups = rows
    order = np.array(data.draw(st.permutations(range(len(y)))))
    there = measured(y[order], scores[order], groups=RELABELLED[how](groups)[order])
    assert there == same(measured(y, scores, groups=groups))


@settings(max_examples=20)
@given(grouped_lists, st.sampled_from(["skip", "zero", "one"]))
def test_the_whole_is_the_mean_over_the_groups(rows, empty):
    y, scores, groups = rows
    table = metrics.per_group(y, scores, NAMES, groups=groups, relevant=1).select(NAMES)
    filled = table if empty == "skip" else table.fill_null({"zero": 0.0, "one": 1.0}[empty])
    means = {column.name: column.mean() for column in filled.iter_columns() if column.count()}
    if means:
        assert measured(y, scores, means, groups=groups, empty=empty) == same(means)
    for name in set(NAMES) - set(means):  # no group has a value
        with pytest.raises(InputError, match="not defined"):
            measured(y, scores, [name], groups=groups, empty=empty)


@settings(max_examples=12)
@given(grouped_lists)
def test_a_group_sees_nothing_of_the_others(rows):
    y, scores, groups = rows
    # an additional group keeps the highest grade of all, by which ERR divides
    table = metrics.per_group([*y, 3], [*scores, 0], NAMES, groups=[*groups, 9], relevant=1)
    for row in table.drop("n", "relevant").filter(table["group"] != 9).rows(named=True):
        own = groups == row["group"]
        alone = metrics.per_group(
            [*y[own], 3], [*scores[own], 0], NAMES, groups=[*groups[own], 9], relevant=1
        )
        found = alone.drop("n", "relevant").row(0, named=True)
        for name in NAMES:
            assert (row[name] is None) == (found[name] is None), name
            assert row[name] is None or row[name] == same(found[name]), name


@settings(max_examples=25)
@given(tied_lists, st.data())
def test_weights_are_repetitions(rows, data):
    y, scores = rows
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y))))
    assume(times.any())
    repeated = measured(np.repeat(y, times), np.repeat(scores, times))
    assert measured(y, scores, sample_weight=times) == same(repeated)


WEIGHTED = {
    name: signature(getattr(metrics, name)).parameters
    for name in metrics.__all__
    if "sample_weight" in signature(getattr(metrics, name)).parameters
}
NEEDED = {
    "bootstrap": {"measure": NAMES[0:None:4], "n_resamples": 20},
    "compare": {"measures": NAMES[1:None:4], "n_resamples": 20},
    "evaluate": {"measures": NAMES},
    "p_norm_risk": {"p": 3.0},
    "per_group": {"measures": NAMES},
    "precision_at": {"k": 3},
    "rank_sum": {"g": np.sqrt},
    "recall_at": {"k": 0.4},
    "tpr_at_fpr": {"fpr": 0.4},
}
OF_ROWS = {"heights": 0, "reverse_heights": 1, "ranks": 1}  # one value for each row of this label


def outcome(name, y, scores, **options):
    """Result of a public function for some rows as plain numbers, or its error."""
    known = {key: value for key, value in options.items() if key in WEIGHTED[name] and value is not None}
    rows = ({"a": scores, "b": scores % 3}, None, y) if name == "compare" else (y, scores)
    rows = (y,) if name == "empty_groups" else rows
    try:
        found = (
            getattr(metrics, name)(*rows, **known)
            if name != "bootstrap"
            else metrics.bootstrap(known.pop("measure"), *rows, **known)
        )
    except InputError:
        return None
    if hasattr(found, "to_dicts"):
        found = [tuple(row.values()) for row in found.to_dicts()]
    return found


def flat(found):
    """All numbers in nested dicts, lists and arrays; missing ones are NaN."""
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, list | tuple | np.ndarray):
        return [number for part in found for number in flat(part)]
    return [] if isinstance(found, str) else [np.nan if found is None else found]


@pytest.mark.parametrize("name", WEIGHTED)
@settings(max_examples=15)
@given(grouped=st.booleans(), rows=grouped_lists, data=st.data())
def test_every_weight_is_a_number_of_repetitions(name, grouped, rows, data):
    """A row of weight 2 counts as two rows; a row or group of weight 0 is absent."""
    assume(grouped or name not in ("bootstrap", "compare", "empty_groups"))  # which draw rows, or need groups
    y, scores, groups = rows
    y = y if "pos_label" not in WEIGHTED[name] or "relevant" in WEIGHTED[name] else (y > 1).astype(int)
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y))))
    assume(times.any())
    options = NEEDED.get(name, {}) | {
        "relevant": 1 if "relevant" in WEIGHTED[name] else None,
        "pos_label": 1 if "relevant" not in WEIGHTED[name] else None,
        "empty": data.draw(st.sampled_from(["skip", "zero", "one", "raise"])),
        "ties": data.draw(st.sampled_from([None, "pessimistic", "optimistic", "given"])),
    }
    weighted = outcome(name, y, scores, groups=groups if grouped else None, sample_weight=times, **options)
    again = [np.repeat(column, times) for column in (y, scores, groups)]
    repeated = outcome(name, *again[:2], groups=again[2] if grouped else None, **options)
    if name in OF_ROWS:
        weighted = np.repeat(weighted, times[y == OF_ROWS[name]])
        assume((name, options["ties"]) != ("ranks", "given"))  # a row has the rank of its last repetition
    assert (weighted is None) == (repeated is None)
    if repeated is not None:
        assert flat(weighted) == pytest.approx(flat(repeated), rel=1e-12, abs=1e-12, nan_ok=True)


@settings(max_examples=25)
@given(tied_lists, st.data())
def test_a_draw_is_the_measure_of_its_rows(rows, data):
    """Drawing every row once gives the sample itself, bit for bit

    Rows drawn several times are repeated without new ties.
    """
    y, scores = rows
    sample = check_rows(y, scores, relevant=1, graded=True)
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y))))
    assume(times.any())
    for rule in ({}, {"ties": "pessimistic"}, {"ties": "optimistic"}, {"ties": "given"}):
        for measure in map(find_measure, NAMES):
            once = measure.mean(sample.drawn(np.ones(len(y))), "zero", **rule)
            assert once == measure.mean(sample, "zero", **rule), (measure.name, rule)
    copy = np.concatenate([np.arange(n) for n in times])
    drawn, at = np.repeat(y, times), np.repeat(scores, times)
    for measure in map(find_measure, NAMES):
        shift, top = 0.0, ([], [])
        if claims_of(measure.name).ties == "shared":
            # a positive without other tied positives does not share a rank with its copies
            lone = np.array([np.sum((scores == score) & (y > 0)) == 1 for score in at])
            shift = 0.1 * copy * (lone & (drawn > 0))
        if measure.name.startswith("err"):  # the highest grade of the sample, not on the list
            top = ([y.max()], [-np.inf])
        expected = measured(np.r_[drawn, top[0]], np.r_[at - shift, top[1]], [measure.name])
        found = measure.mean(sample.drawn(times.astype(float)), "zero")
        assert found == same(expected[measure.name]), measure.name


@pytest.mark.parametrize("name", ["auc", "precision_at_10", "push_dcg"])
def test_whole_weights_are_drawn_one_by_one(name):
    rng = np.random.default_rng(5)
    y, scores, times = rng.integers(0, 2, 60), rng.normal(size=60).round(1), rng.integers(0, 6, 60)
    weighted = metrics.bootstrap(name, y, scores, sample_weight=times, n_resamples=1000)
    repeated = metrics.bootstrap(name, np.repeat(y, times), np.repeat(scores, times), n_resamples=1000)
    assert weighted.n == repeated.n == times.sum()
    assert weighted.value == same(repeated.value)
    assert weighted.standard_error == pytest.approx(
        repeated.standard_error, rel=0.12
    )  # 5 standard errors of it


@settings(max_examples=20)
@given(tied_lists, st.data())
def test_shares_do_not_see_the_unit_of_the_weights(rows, data):
    y, scores = rows
    free = [name for name in NAMES if claims_of(name).any_unit_of_weights]
    weights = np.array(
        data.draw(st.lists(st.sampled_from([0, 0.1, 0.5, 3]), min_size=len(y), max_size=len(y)))
    )
    assume(weights.any())
    unit = data.draw(st.sampled_from([0.37, 1e-6, 1e6]))
    assert measured(y, scores, free, sample_weight=unit * weights) == same(
        measured(y, scores, free, sample_weight=weights)
    )


def orders_of_ties(y, scores):
    """Labels from top to bottom in every order that breaks the ties."""
    rows = sorted(zip(-scores, y, strict=True))
    blocks = [[grade for _, grade in block] for _, block in groupby(rows, key=lambda row: row[0])]
    for parts in product(*(list(permutations(block)) for block in blocks)):
        yield np.array([grade for part in parts for grade in part])


@pytest.mark.slow
@settings(max_examples=20)
@given(
    st.lists(st.tuples(grades, st.integers(0, 2)), min_size=2, max_size=5).map(lambda rows: np.array(rows).T)
)
def test_ties_are_what_all_orders_of_them_say(rows):
    y, scores = rows
    ruled = [name for name in NAMES if claims_of(name).ties]
    all_orders = [measured(order, falling(len(y)), ruled) for order in orders_of_ties(y, scores)]
    ends = [measured(y, scores, ruled, ties=ties) for ties in ("pessimistic", "optimistic")]
    means = [name for name in ruled if claims_of(name).ties == "mean"]
    average = measured(y, scores, means, ties="average")
    for name in ruled:
        values = [sign_of(name) * found[name] for found in all_orders]
        worst, best = (sign_of(name) * end[name] for end in ends)
        if claims_of(name).ties == "shared":
            assert worst <= min(values) + 1e-12, name
            assert best <= max(values) + 1e-12, name
        else:
            assert (worst, best) == same((min(values), max(values))), name
        if name in means:
            assert average[name] == same(np.mean([found[name] for found in all_orders])), name


@settings(max_examples=20)
@given(tied_lists)
def test_ties_as_given_are_those_of_the_rows_from_the_top(rows):
    y, scores = rows
    ruled = [name for name in NAMES if claims_of(name).ties]
    order = np.argsort(-scores, kind="stable")
    assert measured(y, scores, ruled, ties="given") == same(measured(y[order], falling(len(y)), ruled))


@settings(max_examples=20)
@given(tied_lists)
def test_a_cut_below_the_end_cuts_nothing(rows):
    y, scores = rows
    whole = measured(y, scores)
    for name in FAMILIES:
        uncut = name.removesuffix("_at")
        if uncut != name and uncut in FAMILIES:
            assert whole[f"{name}_100"] == same(whole[uncut]), name
    assert whole["recall_at_100"] == (1 if y.any() else 0)
    assert whole["precision_at_100"] == same((y > 0).sum() / 100)


@settings(max_examples=20)
@given(tied_lists)
def test_scores_read_from_the_other_end(rows):
    y, scores = rows
    forward, back = (measured(y, sign * scores, ["auc", "kendall_tau"]) for sign in (1, -1))
    assert back["kendall_tau"] == same(-forward["kendall_tau"])
    label = two_classes(y)
    assert back["auc"] == same(1 - forward["auc"])
    assert metrics.auc(1 - label, scores) == same(1 - forward["auc"])
    risk = metrics.p_norm_risk(label, scores, 1, normalize=True, ties="average")
    assert risk == same(1 - forward["auc"])


@settings(max_examples=20)
@given(tied_lists)
def test_other_libraries_agree(rows):
    y, scores = rows
    tau = stats.kendalltau(y, scores).statistic
    assert measured(y, scores, ["kendall_tau"])["kendall_tau"] == same(0 if np.isnan(tau) else tau)
    label = two_classes(y)
    assert metrics.auc(label, scores) == same(roc_auc_score(label, scores))
    assert metrics.average_precision(label, scores, ties="threshold") == same(
        average_precision_score(label, scores)
    )
    assert metrics.ndcg(y, scores, gain="linear") == same(ndcg_score([y], [scores]))


# The public functions


FUNCTIONS = {
    "auc": metrics.auc,
    "average_precision": metrics.average_precision,
    "average_reciprocal_rank": metrics.average_reciprocal_rank,
    "dcg": metrics.dcg,
    "err": metrics.err,
    "mrr": metrics.mrr,
    "ndcg": metrics.ndcg,
    "p_norm_risk": partial(metrics.p_norm_risk, p=4, normalize=True),
    "partial_auc": metrics.partial_auc,
    "precision_at": partial(metrics.precision_at, k=10),
    "push_dcg": metrics.push_dcg,
    "r_max": metrics.r_max,
    "recall_at": partial(metrics.recall_at, k=10),
    "tpr_at_fpr": partial(metrics.tpr_at_fpr, fpr=0.01),
    "winner_takes_all": metrics.winner_takes_all,
}


@settings(max_examples=15)
@given(grouped_lists)
def test_a_function_is_the_measure_of_its_name(rows):
    y, scores, groups = rows
    label = two_classes(y)
    named = measured(label, scores, FUNCTIONS, groups=groups)
    for name, function in FUNCTIONS.items():
        assert function(label, scores, groups=groups, empty="zero") == named[name], name


def test_functions_say_what_they_take():
    for name in FUNCTIONS:
        function = getattr(metrics, name)
        known = signature(function).parameters
        assert list(known)[:2] == ["y_true", "scores"], name
        assert {"empty", "groups", "sample_weight"} <= set(known), name
        assert function.__doc__.count(">>>"), name
        needed = {key: 1 for key, option in list(known.items())[2:] if option.default is option.empty}
        with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'tie'"):
            function([0, 1], [1, 2], **needed, tie="average")


class FirstColumn(BaseEstimator):
    """A ranker whose scores are in X."""

    def predict(self, X):
        return X[:, 0]


@settings(max_examples=8)
@given(tied_lists)
def test_a_scorer_is_the_measure_with_the_sign_that_makes_larger_better(rows):
    y, scores = rows
    label = two_classes(y)
    assume(np.ptp(scores))
    assert metrics.scorer_names() == list(FAMILIES)
    values = measured(label, scores, FAMILIES, empty="skip")
    for name in metrics.scorer_names():
        scorer = metrics.get_scorer(name)
        assert scorer(FirstColumn(), scores[:, None], label) == sign_of(name) * values[name], name


@settings(max_examples=25)
@given(grouped_lists, st.data())
def test_heights_and_ranks_add_up_to_the_measures(rows, data):
    y, scores, groups = rows
    label = two_classes(y)
    order = np.array(data.draw(st.permutations(range(len(y)))))
    positive, negative = label == 1, label == 0
    for function, class_ in (
        (metrics.heights, negative),
        (metrics.reverse_heights, positive),
        (metrics.ranks, positive),
    ):
        by_row = np.zeros(len(y))
        by_row[class_] = function(label, scores, groups=groups)
        moved = function(label[order], scores[order], groups=-groups[order])
        assert moved.tolist() == by_row[order][class_[order]].tolist()
    pairs = positive.sum() * negative.sum()
    down = metrics.heights(label, scores, ties="average").sum()
    assert down == same(metrics.reverse_heights(label, scores, ties="average").sum())
    assert down == same(pairs * (1 - metrics.auc(label, scores)))
    places = metrics.ranks(label, scores)
    assert metrics.rank_sum(label, scores, np.sqrt) == same(np.sqrt(places).sum())
    assert metrics.average_reciprocal_rank(label, scores) == same((1 / places).sum())
    assert metrics.r_max(label, scores) == metrics.heights(label, scores).max()


@settings(max_examples=20)
@given(tied_lists)
def test_the_roc_curve_rises_to_all_rows_above_the_auc(rows):
    y, scores = rows
    label = two_classes(y)
    false, true, thresholds = metrics.roc_points(label, scores)
    assert (np.diff(false) >= 0).all()
    assert (np.diff(true) >= 0).all()
    assert (np.diff(thresholds) < 0).all()
    assert (false[0], true[0], false[-1], true[-1]) == (0, 0, (label == 0).sum(), label.sum())
    assert np.trapezoid(true, false) / (false[-1] * true[-1]) == same(metrics.auc(label, scores))


@settings(max_examples=20)
@given(grouped_lists)
def test_empty_groups_are_those_without_a_value(rows):
    y, scores, groups = rows
    label = two_classes(y)
    for need, name in (("both", "auc"), ("positive", "mrr")):
        table = metrics.per_group(label, scores, [name], groups=groups)
        without = table.filter(table[name].is_null())["group"]
        assert metrics.empty_groups(label, groups, need=need).tolist() == without.to_list()


DISTANCES = {
    "kendall_distance": metrics.kendall_distance,
    "kendall_distance with ties": partial(metrics.kendall_distance, tie_penalty=0.5),
    "spearman_distance": metrics.spearman_distance,
    "spearman_footrule": metrics.spearman_footrule,
    "weighted_kendall_distance": None,  # of weights that belong to the items
}
two_lists = st.lists(st.tuples(levels, levels, st.integers(1, 3)), min_size=2, max_size=7).map(
    lambda rows: np.array(rows, dtype=float).T
)


@pytest.mark.parametrize("name", DISTANCES)
@settings(max_examples=25)
@given(lists=two_lists, data=st.data())
def test_every_distance_of_two_rankings(name, lists, data):
    first, second, weights = lists
    order = np.array(data.draw(st.permutations(range(len(first)))))

    def distance(a, b, w=weights, **options):
        if DISTANCES[name] is None:
            return metrics.weighted_kendall_distance(scores=(a, b), weights=w, **options)
        return DISTANCES[name](scores=(a, b), **options)

    here = distance(first, second)
    assert distance(first, first) == 0
    assert distance(second, first) == same(here)
    assert distance(first[order], second[order], weights[order]) == same(here)
    assert distance(np.exp(first), 7 * second - 3) == same(here)
    assert distance(-first, -second) == same(here)
    assert 0 <= distance(first, second, normalize=True) <= 1
    strict = np.argsort(order).astype(float)
    assert distance(strict, -strict, normalize=True) == same(1)


@settings(max_examples=25)
@given(two_lists, st.permutations(range(6)), st.permutations(range(6)))
def test_pairs_of_two_rankings(lists, one, other):
    first, second, _ = lists
    counts = metrics.kendall_counts(scores=(first, second))
    assert isinstance(counts, metrics.KendallCounts)
    assert sum(counts[:5]) == counts.n_pairs
    turned = metrics.kendall_counts(scores=(second, first))
    assert turned == counts._replace(tied_first=counts.tied_second, tied_second=counts.tied_first)
    against = metrics.kendall_counts(scores=(first, -second))
    assert against[:2] == (counts.discordant, counts.concordant)
    assert metrics.kendall_tau(scores=(first, second), variant="a") == counts.tau_a
    # Diaconis and Graham (1977): footrule and Kendall's distance are within a factor of 2
    kendall = metrics.kendall_distance(rankings=(one, other))
    assert kendall <= metrics.spearman_footrule(rankings=(one, other)) <= 2 * kendall


@settings(max_examples=25)
@given(st.lists(st.tuples(st.booleans(), levels), min_size=1, max_size=9), st.sampled_from([0.5, 1e-6, 1e6]))
def test_spam_takes_what_others_do_not(rows, unit):
    spam, scores = np.array(rows).T
    if scores.any():
        mass = metrics.spam_mass(spam, scores)
        assert 0 <= mass <= 1
        assert mass + metrics.spam_mass(1 - spam, scores) == same(1)
        assert metrics.spam_mass(spam, unit * scores) == same(mass)
    m = np.arange(len(spam) + 2)
    first, mean, last = (
        metrics.spam_met(spam, unit * scores, m, ties=ties)
        for ties in ("pessimistic", "average", "optimistic")
    )
    assert (np.diff(mean) >= -1e-12).all()
    assert (first >= mean - 1e-12).all()
    assert (mean >= last - 1e-12).all()
    assert mean[-1] == spam.sum()
    others = metrics.spam_met(1 - spam, unit * scores, m, ties="optimistic")
    assert first + others == same(np.minimum(m, len(spam)))


# Confidence


@settings(max_examples=8)
@given(grouped_lists, st.sampled_from(["percentile", "bca"]))
def test_intervals_over_groups_hold_the_value_and_grow_with_confidence(rows, method):
    y, scores, groups = rows
    table = metrics.per_group(y, scores, NAMES, groups=groups, relevant=1)
    draw = partial(metrics.bootstrap, y_true=y, scores=scores, groups=groups, relevant=1, empty="zero")
    narrow, wide = (
        draw(NAMES, method=method, confidence=c, n_resamples=200, random_state=3) for c in (0.6, 0.99)
    )
    whole = measured(y, scores, groups=groups)
    for name in NAMES:
        interval = wide[name]
        assert isinstance(interval, metrics.Interval)
        assert interval.value == whole[name]
        if interval.n < 2:
            assert np.isnan(interval.low)
            continue
        values = table[name].fill_null(0.0)
        assert values.min() - 1e-9 <= interval.low <= interval.value + 1e-9, name
        assert interval.value - 1e-9 <= interval.high <= values.max() + 1e-9, name
        if method == "percentile":
            assert interval.low <= narrow[name].low <= narrow[name].high <= interval.high, name


@settings(max_examples=5)
@given(st.integers(0, 1000))
def test_intervals_over_rows_are_within_the_bounds_of_the_measure(seed):
    rng = np.random.default_rng(seed)
    y = np.r_[rng.integers(1, 4, 8), np.zeros(8, int)]
    scores = rng.integers(0, 8, 16)
    found = metrics.bootstrap(NAMES, y, scores, relevant=1, n_resamples=20, random_state=seed)
    again = metrics.bootstrap(NAMES, y, scores, relevant=1, n_resamples=20, random_state=seed)
    assert found == again
    for name in NAMES:
        low, high = claims_of(name)[:2]
        assert low - 1e-12 <= found[name].low <= found[name].high <= high + 1e-12, name
        assert found[name].standard_error >= 0


differences = st.lists(st.integers(-4, 4), min_size=2, max_size=7).map(np.array)


@settings(max_examples=30)
@given(differences, st.data())
def test_paired_test_is_the_share_of_all_exchanges(gaps, data):
    zero = np.zeros(len(gaps))
    p = metrics.paired_test(gaps, zero)
    sums = [abs(np.dot(signs, gaps)) for signs in product((-1, 1), repeat=len(gaps))]
    assert p == same(np.mean(np.array(sums) >= abs(gaps.sum())))
    order = np.array(data.draw(st.permutations(range(len(gaps)))))
    assert metrics.paired_test(zero, gaps[order]) == same(p)
    assert metrics.paired_test(0.1 * gaps + 5, zero + 5) == same(p)


@settings(max_examples=30)
@given(st.lists(st.sampled_from([0.0, 0.01, 0.02, 0.3, 0.5, 1.0, np.nan]), min_size=1, max_size=6), st.data())
def test_corrections_keep_the_order_and_never_help(p_values, data):
    p = np.array(p_values)
    known = ~np.isnan(p)
    order = np.array(data.draw(st.permutations(range(len(p)))))
    adjusted = {}
    for method in ("none", "benjamini-hochberg", "holm", "bonferroni"):
        adjusted[method] = metrics.adjust_p_values(p, method)
        moved = metrics.adjust_p_values(p[order], method)
        np.testing.assert_allclose(moved, adjusted[method][order], rtol=1e-12)
        assert (np.isnan(adjusted[method]) == ~known).all()
        assert (adjusted[method][known] <= 1).all()
        assert (np.diff(adjusted[method][known][np.argsort(p[known], kind="stable")]) >= 0).all()
    for milder, harsher in zip(list(adjusted)[:-1], list(adjusted)[1:], strict=True):
        assert (adjusted[milder][known] <= adjusted[harsher][known] + 1e-12).all()


@settings(max_examples=8)
@given(grouped_lists, st.permutations(["a", "b", "c"]), st.booleans())
def test_compare_says_the_same_from_both_sides(rows, names, grouped):
    y, scores, groups = rows
    if grouped:
        y[:2], groups[:2] = (3, 0), (0, 0)  # one group at least has a value
    else:
        y, scores, groups = np.r_[y, 3, 3, 0, 0], np.r_[scores, 4, 3, 2, 1], None
    rankers = {"a": scores, "b": -scores, "c": y}
    measures = ["ndcg", "map", "r_max"]
    options = {"relevant": 1, "n_resamples": 50, "measures": measures, "correction": "none", "empty": "zero"}
    one = metrics.compare(rankers, None, y, groups, baseline="a", **options)
    other = metrics.compare({name: rankers[name] for name in names}, None, y, groups, baseline="b", **options)
    found, turned = (
        {(row["ranker"], row["measure"]): row for row in table.rows(named=True)} for table in (one, other)
    )
    for name, measure in product(rankers, measures):
        here, there = found[name, measure], turned[name, measure]
        value = measured(y, rankers[name], [measure], groups=groups)[measure]
        assert here["value"] == there["value"] == same(value)
        assert (here["low"], here["high"]) == same((there["low"], there["high"])) or np.isnan(here["low"])
    for measure in measures:
        gap, back = found["b", measure], turned["a", measure]
        assert gap["difference"] == same(-back["difference"])
        assert gap["p_value"] == back["p_value"] or gap["p_value"] == same(back["p_value"])


PROPERTIES = {
    "counterfactual_dcg": clicks.test_estimates_of_many_sessions_are_the_truth,
    **dict.fromkeys(FUNCTIONS, test_a_function_is_the_measure_of_its_name),
    **dict.fromkeys(
        ["heights", "reverse_heights", "ranks", "rank_sum"], test_heights_and_ranks_add_up_to_the_measures
    ),
    **dict.fromkeys([name for name in DISTANCES if " " not in name], test_every_distance_of_two_rankings),
    **dict.fromkeys(["KendallCounts", "kendall_counts", "kendall_tau"], test_pairs_of_two_rankings),
    **dict.fromkeys(
        ["get_scorer", "scorer_names"], test_a_scorer_is_the_measure_with_the_sign_that_makes_larger_better
    ),
    **dict.fromkeys(["spam_mass", "spam_met"], test_spam_takes_what_others_do_not),
    **dict.fromkeys(
        ["bootstrap", "Interval"], test_intervals_over_groups_hold_the_value_and_grow_with_confidence
    ),
    "adjust_p_values": test_corrections_keep_the_order_and_never_help,
    "compare": test_compare_says_the_same_from_both_sides,
    "empty_groups": test_empty_groups_are_those_without_a_value,
    "evaluate": test_weights_are_repetitions,
    "paired_test": test_paired_test_is_the_share_of_all_exchanges,
    "per_group": test_the_whole_is_the_mean_over_the_groups,
    "roc_points": test_the_roc_curve_rises_to_all_rows_above_the_auc,
}


def test_every_measure_and_public_name_has_properties():
    assert set(CLAIMS) == set(FAMILIES)
    assert set(PROPERTIES) == set(metrics.__all__)
