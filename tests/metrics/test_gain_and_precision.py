"""Listwise measures against every order of the ties, scikit-learn, trec_eval and ir-measures."""

from functools import partial
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from apexrank.errors import InputError
from apexrank.metrics import (
    average_precision,
    dcg,
    err,
    evaluate,
    mrr,
    ndcg,
    per_group,
    precision_at,
    recall_at,
    winner_takes_all,
)
from apexrank.metrics.evaluation import find_measure

# The definitions for one list in a given order, written down once more


def one_dcg(rel, k):
    return sum((2.0**r - 1) / np.log2(i + 2) for i, r in enumerate(rel[:k]))


def one_ndcg(rel, k):
    return one_dcg(rel, k) / one_dcg(sorted(rel, reverse=True), k)


def one_ap(rel, k):
    hits = [sum(r > 0 for r in rel[: i + 1]) / (i + 1) for i, r in enumerate(rel[:k]) if r > 0]
    return sum(hits) / sum(r > 0 for r in rel)


def one_mrr(rel, k):
    return next((1 / (i + 1) for i, r in enumerate(rel[:k]) if r > 0), 0.0)


def one_err(rel, k, top=3):
    value, left = 0.0, 1.0
    for i, r in enumerate(rel[:k]):
        chance = (2.0**r - 1) / 2.0**top
        value += left * chance / (i + 1)
        left *= 1 - chance
    return value


def one_precision(rel, k):
    return sum(r > 0 for r in rel[:k]) / k


def one_recall(rel, k):
    return sum(r > 0 for r in rel[:k]) / sum(r > 0 for r in rel)


PAIRS = {
    "dcg": (dcg, one_dcg),
    "ndcg": (ndcg, one_ndcg),
    "average_precision": (average_precision, one_ap),
    "mrr": (mrr, one_mrr),
    "precision_at": (precision_at, one_precision),
    "recall_at": (recall_at, one_recall),
    "err": (partial(err, max_grade=3), one_err),
}
LISTWISE = {
    "dcg": dcg,
    "ndcg": ndcg,
    "ndcg linear": partial(ndcg, gain="linear", k=3),
    "err": partial(err, max_grade=3),
    "average_precision": average_precision,
    "mrr": mrr,
    "winner": winner_takes_all,
}
every_listwise = pytest.mark.parametrize("measure", LISTWISE.values(), ids=LISTWISE.keys())

short_lists = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=6).filter(
    lambda rows: any(rel for rel, _ in rows)
)


def orders_of_ties(rows):
    """Relevance in every order compatible with these scores."""
    for order in permutations(range(len(rows))):
        scores = [rows[i][1] for i in order]
        if scores == sorted(scores, reverse=True):
            yield [rows[i][0] for i in order]


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
@given(rows=short_lists, k=st.integers(1, 7))
def test_ties_are_all_their_orders(name, rows, k):
    measure, one = PAIRS[name]
    y, scores = np.array(rows).T
    values = [one(rel, k) for rel in orders_of_ties(rows)]
    options = {"relevant": 1} if name in ("average_precision", "mrr", "precision_at", "recall_at") else {}
    expected = {"pessimistic": min(values), "optimistic": max(values), "average": np.mean(values)}
    for ties, value in expected.items():
        if (name, ties) != ("err", "average"):
            assert measure(y, scores, k=k, ties=ties, **options) == pytest.approx(value, abs=1e-12)
    given_order = [rel for rel, _ in sorted(rows, key=lambda row: -row[1])]
    assert measure(y, scores, k=k, ties="given", **options) == pytest.approx(one(given_order, k), abs=1e-12)


# Peers


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 200))
    y, scores = rng.integers(0, 5, n), rng.integers(0, 30, n) / 7
    y[:2] = 0, 3
    for k in (None, 1, 5, n):
        assert ndcg(y, scores, k=k, gain="linear") == pytest.approx(ndcg_score([y], [scores], k=k), abs=1e-10)
    weight = rng.uniform(0.1, 2, n)
    assert average_precision(y, scores, relevant=1, ties="threshold", sample_weight=weight) == pytest.approx(
        average_precision_score(y > 0, scores, sample_weight=weight), abs=1e-10
    )
    distinct = rng.permutation(n)
    assert average_precision(y, distinct, relevant=1) == pytest.approx(
        average_precision_score(y > 0, distinct), abs=1e-10
    )


def trec_dicts(y, scores, groups, documents):
    qrels, run = {}, {}
    for rel, score, group, document in zip(
        y.tolist(), scores.tolist(), groups.tolist(), documents, strict=True
    ):
        qrels.setdefault(group, {})[document] = int(rel)
        run.setdefault(group, {})[document] = score
    return qrels, run


@pytest.fixture(scope="module")
def queries():
    """Unsorted queries of 1 to 40 documents, some without a relevant one; ties in the scores are broken by row."""
    rng = np.random.default_rng(5)
    groups = np.repeat([f"q{i:02d}" for i in range(60)], rng.integers(1, 41, 60))
    y = rng.choice([0, 0, 0, 1, 2], len(groups))
    y[groups == "q07"] = 0
    order = rng.permutation(len(groups))
    scores = rng.permutation(len(groups)) / 7.0
    return y[order], scores, groups[order], [f"d{i}" for i in range(len(groups))]


def test_agrees_with_trec_eval(queries):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier is not installed")
    y, scores, groups, documents = queries
    qrels, run = trec_dicts(y, scores, groups, documents)
    peers = {"map": "map", "recip_rank": "mrr", "P_5": "precision_at_5", "recall_10": "recall_at_10"}
    peers |= {"map_cut_5": "average_precision_at_5"}
    found = pytrec_eval.RelevanceEvaluator(qrels, {"map", "recip_rank", "P.5", "recall.10", "map_cut.5"})
    theirs = found.evaluate(run)
    ours = per_group(y, scores, list(peers.values()), groups=groups, relevant=1)
    for record in ours.iter_rows(named=True):
        for their_name, name in peers.items():
            # a query without a relevant document has no value here, and counts 0 there
            value = 0.0 if record["relevant"] == 0 else record[name]
            assert theirs[record["group"]][their_name] == pytest.approx(value, abs=1e-10)
    means = evaluate(y, scores, list(peers.values()), groups=groups, relevant=1, empty="zero")
    for their_name, name in peers.items():
        assert np.mean([query[their_name] for query in theirs.values()]) == pytest.approx(
            means[name], abs=1e-10
        )


def test_exponential_gain_and_err_agree_with_gdeval(queries):
    """The script prints five decimals, so agreement is checked to five; its highest grade is 4."""
    ir_measures = pytest.importorskip("ir_measures", reason="ir-measures is not installed")
    if not ir_measures.gdeval.is_available():
        pytest.skip("gdeval needs perl, which is not installed")
    y, scores, groups, documents = queries
    groups = np.array([group.removeprefix("q") for group in groups])  # it takes numbers only
    qrels, run = trec_dicts(y, scores, groups, documents)
    measures = [ir_measures.ERR @ 10, ir_measures.nDCG(dcg="exp-log2") @ 10]
    half_digit = 5.1e-6
    theirs = {(m.query_id, str(m.measure)): m.value for m in ir_measures.iter_calc(measures, qrels, run)}
    for group in np.unique(groups):
        rows = groups == group
        options = {"k": 10, "empty": "zero"}
        ours = (
            err(y[rows], scores[rows], max_grade=4, ties="given", **options),
            ndcg(y[rows], scores[rows], **options),
        )
        for measure, value in zip(measures, ours, strict=True):
            # scores of documents without a relevant one are not printed there
            assert theirs.get((group, str(measure)), 0.0) == pytest.approx(value, abs=half_digit)


# Scales, weights, groups


def test_grades_on_any_scale():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 60, 500), rng.normal(size=500)
    exact = one_ndcg([int(r) for r in y[np.argsort(-scores)]], 500)
    assert ndcg(y, scores) == pytest.approx(exact, rel=1e-12)
    assert 0 < ndcg(1000 * y, scores) < 1
    assert ndcg(y * 1e-18, scores) == pytest.approx(ndcg(y, scores, gain="linear"), rel=1e-12)
    assert 0 < err(1000 * y, scores) < 1
    with pytest.raises(InputError, match="too large: use `gain='linear'`"):
        dcg(1000 * y, scores)


@every_listwise
def test_one_document(measure):
    assert measure([1], [0.3]) > 0
    assert measure([0], [0.3], empty="zero") == 0
    with pytest.raises(InputError, match="not defined"):
        measure([0], [0.3])


@pytest.mark.parametrize("measure", [dcg, ndcg, err, average_precision])
def test_fractional_weights_are_refused(measure):
    with pytest.raises(InputError, match="whole numbers"):
        measure([1, 0, 2], [3, 2, 1], sample_weight=[1, 0.5, 1])


def test_rows_not_on_the_list_have_no_rank():
    y, scores = np.array([1, 0, 2, 1]), np.array([2.0, 1.0, -np.inf, -np.inf])
    assert ndcg(y, scores, gain="linear") == pytest.approx(1 / (2 + 1 / np.log2(3) + 1 / 2))
    assert average_precision(y, scores) == pytest.approx(1 / 3)
    assert mrr(1 - (y == 1), scores) == 0.5  # row 2 would be third
    assert precision_at(y, scores, k=4) == 0.25
    assert recall_at(y, scores, k=4) == pytest.approx(1 / 3)
    assert err(y, scores, max_grade=2) == pytest.approx(0.25)
    assert precision_at(y, scores, k=0.5) == 1.0  # half of the two rows on the list


def test_gains_and_discounts_may_be_functions():
    y, scores = [2, 0, 1], [0.9, 0.8, 0.7]
    assert dcg(y, scores, gain=np.square, discount=lambda rank: 1 / rank**2) == pytest.approx(4 + 1 / 9)
    assert dcg(y, scores, gain="linear", discount="none") == 3
    assert dcg(y, scores, gain="linear", discount="log") == pytest.approx(2 / np.log(2) + 1 / np.log(4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ndcg([1, -1, 0], [1, 2, 3]), "negative in row 1"),
        (lambda: ndcg(["a", "b", "c"], [1, 2, 3]), "3 distinct labels"),
        (lambda: ndcg([1, np.nan], [1, 2]), "missing|not finite in row 1"),
        (lambda: ndcg([1, 0], [1, 2], k=0), "`k` must be a number of rows"),
        (lambda: ndcg([1, 0], [1, 2], gain="cubic"), "unknown `gain` 'cubic'"),
        (lambda: ndcg([1, 0], [1, 2], discount="cubic"), "unknown `discount` 'cubic'"),
        (lambda: ndcg([1, 0], [1, 2], ties="random"), "unknown `ties` 'random'"),
        (lambda: err([3, 0], [1, 2], max_grade=2), "below the highest relevance 3"),
        (lambda: err([3, 0], [1, 2], ties="average"), "ERR has no rule 'average' for ties"),
        (lambda: mrr([1, 0], [1, 2], relevant=1, pos_label=1), "give one of them"),
        (lambda: evaluate([1, 0], [1, 2], "nonsense"), "unknown measure 'nonsense'"),
        (lambda: evaluate([1, 0], [1, 2], []), "no measure to compute"),
        (lambda: evaluate([1, -1, 2], [1, 2, 3], "ndcg"), "negative in row 1"),
        (lambda: ndcg([1, 0], [1, 2], k="5"), "`k` must be a number of rows"),
        (lambda: ndcg([1, 0], [1, 2], k=np.inf), "`k` must be a number of rows"),
        (lambda: ndcg([1, 0], [1, 2], discount=[1, 2]), "unknown `discount`"),
        (lambda: ndcg([1, 0], ["0.5", "0.7"]), "scores must be numbers"),
        (lambda: ndcg([1, 0], np.ma.array([1, 2], mask=[0, 1])), "scores is NaN in row 1"),
        (lambda: ndcg([1, 0], [1, 2], groups=np.array(["a", 1], dtype=object)), "ids of several types"),
        (lambda: err([1, 0], [1, 2], max_grade="4"), "`max_grade` must be a finite number"),
        (lambda: err([1, 0], [1, 2], max_grade=np.nan), "`max_grade` must be a finite number"),
        (lambda: evaluate([1, 0], [1, 2], None), "measures must be names"),
        (lambda: evaluate([1, 0], [1, 2], [1]), "named by text"),
        (lambda: evaluate([1, 0], [1, 2], ["err"], ties="average"), "ERR has no rule 'average'"),
    ],
)
def test_faults_are_one_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


# One sort for many measures


def test_two_named_classes_are_graded_zero_and_one():
    y, scores = ["bad", "good", "bad"], [3, 2, 1]
    assert evaluate(y, scores, "ndcg,auc") == {"ndcg": pytest.approx(1 / np.log2(3)), "auc": 0.5}
    assert evaluate([-1, 1, -1], scores, "ndcg") == {"ndcg": pytest.approx(1 / np.log2(3))}


# What a demanding reader found


def test_a_group_sees_nothing_of_the_weights_of_others():
    y, scores, groups = [1, 0, 1, 0], [1, 2, 2, 1], ["a", "a", "b", "b"]
    names = ["auc", "push_dcg", "partial_auc_1", "tpr_at_fpr_0.5", "recall_at_1", "p_norm_risk_2"]
    for weight in ([1, 1, 1e17, 1e17], [1e17, 1e17, 1, 1], [1e16, 1e16, 3, 3]):
        together = per_group(y, scores, names, groups=groups, sample_weight=weight)
        for part, name in ((slice(0, 2), "a"), (slice(2, 4), "b")):
            alone = evaluate(y[part], scores[part], names, sample_weight=weight[part])
            row = together.filter(together["group"] == name).to_dicts()[0]
            assert {key: row[key] for key in names} == pytest.approx(alone, rel=1e-12)


def test_two_numbers_above_zero_are_not_guessed_at():
    with pytest.raises(
        InputError, match="say `relevant=1` if they are grades, or `pos_label=2` if they are classes"
    ):
        average_precision([2, 1, 1], [1, 2, 3])
    assert average_precision([2, 1, 1], [1, 2, 3], relevant=1) == 1.0
    assert average_precision([2, 1, 1], [1, 2, 3], pos_label=2) == pytest.approx(1 / 3)
    assert average_precision([0, 2, 2], [1, 2, 3]) == 1.0
    assert ndcg([2, 1, 1], [1, 2, 3]) == ndcg([2, 1, 1], [1, 2, 3], groups=["q", "q", "q"])


def test_all_weights_zero():
    for measure in LISTWISE.values():
        assert measure([1, 0], [1, 2], sample_weight=[0, 0], empty="zero") == 0


def test_fractional_weights_hide_nowhere():
    with pytest.raises(InputError, match="whole numbers"):
        mrr([0, 1], [2, 1], sample_weight=[0.5, 1])
    with pytest.raises(InputError, match="whole numbers"):
        average_precision([0, 1], [1, 1], sample_weight=[0.5, 0.5])
    with pytest.raises(InputError, match="repeats the rows to 3e\\+08"):
        ndcg([1, 0], [1, 2], sample_weight=[3e8, 1])


def test_the_best_order_is_by_gain():
    assert ndcg([0, 1, 2], [1, 3, 2], gain=lambda grade: 2 - grade) <= 1
    assert ndcg([0, 1, 2], [3, 2, 1], gain=lambda grade: 2 - grade) == 1
    with pytest.raises(InputError, match="`gain` must give one finite number"):
        ndcg([0, 1, 2], [1, 3, 2], gain=lambda grade: grade - 1)


def test_objects_that_are_numbers_are_numbers():
    grades = np.array([1, 2, 1], dtype=object)
    assert ndcg(grades, [3, 1, 2]) == ndcg([1, 2, 1], [3, 1, 2])


def test_large_whole_numbers_keep_their_order():
    from apexrank.metrics import auc

    assert auc([0, 1], [2**60, 2**60 + 1]) == 1.0


def test_names_of_other_tools():
    for ours, theirs in {
        "ndcg@10": ["NDCG_at_10", "ndcg_burges@10", "nDCG@10"],
        "ndcg_linear@10": ["ndcg_cut_10", "ndcg_score@10"],
    }.items():
        for name in theirs:
            assert find_measure(name)[1:] == find_measure(ours)[1:], name


@pytest.mark.parametrize(
    "name", ["ndcg_at_0", "ndcg_at_0.5", "precision_at_nan", "partial_auc_5", "tpr_at_fpr_7"]
)
def test_bad_numbers_in_names_are_found_at_once(name):
    from apexrank.metrics import get_scorer

    with pytest.raises(InputError, match="at its end"):
        get_scorer(name)


def test_missing_group_ids_of_pandas():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    with pytest.raises(InputError, match="`groups` has a missing id in row 1"):
        ndcg([1, 0], [1, 2], groups=pd.Series(["a", None], dtype="string"))


def test_a_measure_named_twice_is_one_column():
    assert per_group([1, 0], [2, 1], ["ndcg", "ndcg"]).columns == ["group", "n", "relevant", "ndcg"]
