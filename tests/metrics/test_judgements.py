"""Measures for unjudged rows, several intents and exposure, against other libraries and brute force; errors."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from apexrank import InputError, metrics
from apexrank.io.judging import judge_run
from apexrank.metrics.evaluation import FAMILIES, find_measure

NAN = float("nan")
KNOW_UNJUDGED = ["rbp", "rbp_residual", "bpref", "inf_ap"]
KNOW_INTENTS = ["alpha_ndcg", "alpha_ndcg_at", "err_ia", "err_ia_at"]


def incomplete(seed):
    """Labels with unjudged rows, and scores with some rows outside the list."""
    rng = np.random.default_rng(seed)
    n = rng.integers(3, 15)
    y = rng.choice([0, 1, 2, NAN], n, p=[0.4, 0.2, 0.1, 0.3])
    y[:2] = 0, 1
    scores = rng.permutation(n).astype(float)
    scores[rng.random(n) < 0.2] = -np.inf
    scores[0] = n
    return y, scores


def trec(y, scores, unjudged=None):
    """Run and qrels of one query; ``unjudged`` is trec_eval's value for unjudged documents in the pool."""
    judged = {f"d{i}": int(label) for i, label in enumerate(y) if label == label}
    pool = {} if unjudged is None else {f"d{i}": unjudged for i, label in enumerate(y) if label != label}
    return {"q": {f"d{i}": s for i, s in enumerate(scores) if s > -np.inf}}, {"q": judged | pool}


@pytest.mark.parametrize(("name", "peer", "unjudged"), [("bpref", "bpref", None), ("infAP", "infAP", -1)])
def test_trec_eval(name, peer, unjudged):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier is not installed")
    for seed in range(100):
        y, scores = incomplete(seed)
        run, qrels = trec(y, scores, unjudged)
        theirs = pytrec_eval.RelevanceEvaluator(qrels, {peer}).evaluate(run)["q"][peer]
        assert metrics.evaluate(y, scores, name, relevant=1)[name] == pytest.approx(theirs, abs=1e-12)


def test_rbp_of_cwl_eval():
    ir_measures = pytest.importorskip("ir_measures", reason="ir-measures is not installed")
    if not ir_measures.cwl_eval.is_available():
        pytest.skip("cwl-eval is not installed")
    for seed in range(30):
        y, scores = incomplete(seed)
        run, qrels = trec(y, scores)
        theirs = ir_measures.calc_aggregate([ir_measures.RBP(p=0.8, rel=1)], qrels, run)
        assert metrics.rbp(y, scores, relevant=1) == pytest.approx(next(iter(theirs.values())), abs=1e-12)


def test_ndeval():
    """ndeval divides ERR-IA by that of a list whose rows all serve all intents; its grades are 0 and 1."""
    ndeval = pytest.importorskip("pyndeval", reason="pyndeval is not installed")
    rng = np.random.default_rng(0)
    for _ in range(60):
        n, k = rng.integers(3, 15), int(rng.choice([5, 10]))
        table, scores = rng.random((n, 3)) < 0.3, rng.permutation(n).astype(float)
        table[0, :2] = True
        cells = np.argwhere(table)
        qrels = [ndeval.SubtopicQrel("q", str(j + 1), f"d{i}", 1) for i, j in cells]
        run = [ndeval.ScoredDoc("q", f"d{i}", s) for i, s in enumerate(scores)]
        theirs = ndeval.ndeval(qrels, run, measures=[f"alpha-nDCG@{k}", f"ERR-IA@{k}"])["q"]
        ours = metrics.evaluate(table, scores, [f"alpha-nDCG@{k}", f"ERR-IA@{k}"])
        unit = np.sum(0.5 ** np.arange(1, k + 1) / np.arange(1, k + 1))
        assert ours[f"alpha-nDCG@{k}"] == pytest.approx(theirs[f"alpha-nDCG@{k}"], abs=1e-9)
        assert ours[f"ERR-IA@{k}"] == pytest.approx(theirs[f"ERR-IA@{k}"] * unit, abs=1e-9)


labels = st.sampled_from([0.0, 1.0, 2.0, NAN])
tied = st.lists(st.tuples(labels, st.integers(0, 2)), min_size=2, max_size=5)


@settings(max_examples=40)
@given(tied, st.data())
def test_unjudged_rows_in_ties_and_weights(rows, data):
    """Mean over all orders of tied rows; weights are repetitions."""
    y, scores = np.array(rows).T
    assume((y > 0).any())
    orders = [o for o in permutations(range(len(y))) if (np.diff(scores[list(o)]) <= 0).all()]
    for name in KNOW_UNJUDGED:
        values = [
            metrics.evaluate(y[list(o)], -np.arange(len(y)), name, relevant=1, ties="given")[name]
            for o in orders
        ]
        ends = [
            metrics.evaluate(y, scores, name, relevant=1, ties=ties)[name]
            for ties in ("pessimistic", "optimistic")
        ]
        if name != "rbp_residual":  # which goes with the ends of rbp
            assert ends == pytest.approx([min(values), max(values)], abs=1e-12), name
        if name != "inf_ap":
            mean = metrics.evaluate(y, scores, name, relevant=1)[name]
            assert mean == pytest.approx(np.mean(values), abs=1e-12), name
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y))))
    assume((times * (y > 0)).any())
    weighted = metrics.evaluate(y, scores, KNOW_UNJUDGED, relevant=1, sample_weight=times)
    repeated = metrics.evaluate(np.repeat(y, times), np.repeat(scores, times), KNOW_UNJUDGED, relevant=1)
    assert weighted == pytest.approx(repeated, abs=1e-12)


@settings(max_examples=30)
@given(tied, st.sampled_from(["average", "pessimistic", "optimistic", "given"]))
def test_the_residual_bounds_rbp(rows, ties):
    y, scores = np.array(rows).T
    assume((y > 0).any())
    both = metrics.evaluate(y, scores, "rbp_0.7,rbp_residual_0.7", relevant=1, ties=ties)
    value, residual = both.values()
    judged = np.nan_to_num(y, nan=1.0)
    all_relevant = metrics.rbp(judged, scores, persistence=0.7, relevant=1, ties=ties)
    assert value + residual == pytest.approx(all_relevant + 0.7 ** len(y), abs=1e-12)
    # bpref ignores unjudged rows
    known = y == y
    assert metrics.bpref(y, scores, relevant=1) == metrics.bpref(y[known], scores[known], relevant=1)


@pytest.mark.parametrize("name", FAMILIES)
def test_unjudged_rows_and_intents_are_refused_where_they_are_not_known(name):
    y, scores, table = [1.0, 0.0, NAN, 1.0], [4, 3, 2, 1], [[1, 0], [0, 1], [0, 0], [1, 1]]
    kinds = {
        "unjudged": (y, KNOW_UNJUDGED, "not finite in row 2"),
        "intents": (table, KNOW_INTENTS, "got shape"),
    }
    for judgements, known, message in kinds.values():
        calls = [
            lambda y=judgements: metrics.evaluate(y, scores, name),
            lambda y=judgements: metrics.per_group(y, scores, name),
            lambda y=judgements: metrics.bootstrap(name, y, scores, groups=[0, 0, 1, 1], n_resamples=20),
            lambda y=judgements: metrics.compare({"a": scores}, None, y, measures=name, n_resamples=20),
        ]
        for call in calls:
            if name in known:
                call()
                continue
            with pytest.raises(InputError, match=message) as caught:
                call()
            assert "\n" not in str(caught.value)


def test_scorers_take_unjudged_rows_and_intents():
    class First(BaseEstimator):
        def predict(self, X):
            return X[:, 0]

    scores = np.array([4.0, 3.0, 2.0, 1.0])
    for name, y in (("bpref", [1, 0, NAN, 1]), ("alpha_ndcg", [[1, 0], [0, 1], [0, 0], [1, 1]])):
        assert (
            metrics.get_scorer(name)(First(), scores[:, None], y) == metrics.evaluate(y, scores, name)[name]
        )


@settings(max_examples=40)
@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=6), st.floats(0, 1), st.data())
def test_intents_by_brute_force(table, alpha, data):
    table = np.array(table)
    assume(table.any())
    order = np.array(data.draw(st.permutations(range(len(table)))))
    k = data.draw(st.integers(1, 7))

    def gain(rows):
        total, met = 0.0, np.zeros(3)
        for rank, row in enumerate(table[list(rows)][:k], start=1):
            total += np.sum((row > 0) * (1 - alpha) ** met) / np.log2(1 + rank)
            met += row > 0
        return total

    best = max(gain(rows) for rows in permutations(range(len(table))))
    found = metrics.alpha_ndcg(table[order], -np.arange(len(table)), alpha=alpha, k=k)
    # the greedy order has at least 1 − 1/e of the best gain
    assert gain(order) / best - 1e-12 <= found <= gain(order) / best / (1 - 1 / np.e) + 1e-12
    served = np.flatnonzero(table.any(axis=0))
    means = [
        metrics.err(table[order][:, j], -np.arange(len(table)), max_grade=table.max(), k=k) for j in served
    ]
    assert metrics.err_ia(table[order], -np.arange(len(table)), k=k) == pytest.approx(np.mean(means))


def test_intents_do_not_see_the_order_of_rows_nor_of_intents():
    rng = np.random.default_rng(1)
    table, scores, groups = rng.integers(0, 2, (60, 3)), rng.integers(0, 4, 60), rng.integers(0, 6, 60)
    names = ["alpha_ndcg", "alpha_ndcg@5", "err_ia"]
    here = metrics.evaluate(table, scores, names, groups=groups)
    order = rng.permutation(60)
    assert metrics.evaluate(table[order], scores[order], names, groups=groups[order]) == pytest.approx(here)
    assert metrics.evaluate(np.c_[table, np.zeros(60)], scores, names, groups=groups) == pytest.approx(here)
    times = rng.integers(0, 3, 60)
    again = [np.repeat(values, times, axis=0) for values in (table, scores, groups)]
    weighted = metrics.evaluate(table, scores, names, groups=groups, sample_weight=times)
    assert weighted == pytest.approx(metrics.evaluate(*again[:2], names, groups=again[2]))


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=5))
def test_exposure_is_that_of_all_orders(rows):
    y, scores = np.array(rows).T
    assume(y.any())

    def mean_exposure(keys):
        total = []
        for order in permutations(range(len(y))):
            if (np.diff(keys[list(order)]) <= 0).all():
                total.append(0.6 ** np.argsort(order))
        return np.mean(total, axis=0)

    own, target = mean_exposure(scores), mean_exposure(y)
    expected = own @ own, own @ target, np.sum((own - target) ** 2)
    assert metrics.expected_exposure(y, scores, persistence=0.6) == pytest.approx(expected)
    assert metrics.exposure_loss(y, scores, persistence=0.6) == pytest.approx(expected[2])
    # orders of the ties drawn by a policy, in columns
    drawn = [np.argsort(np.argsort(o)) for o in permutations(range(len(y)))]
    kept = [-place for place in drawn if (np.diff(scores[np.argsort(place)]) <= 0).all()]
    assert metrics.expected_exposure(y, np.array(kept).T, persistence=0.6) == pytest.approx(expected)


def test_exposure_of_groups():
    y, scores, groups = [1, 0, 2, 1, 1, 0], [3, 2, 1, 1, 2, 2], ["b", "b", "a", "a", "a", "c"]
    names = metrics.per_group(y, scores, ["exposure_loss"], groups=groups)["exposure_loss"].drop_nulls()
    found = metrics.expected_exposure(y, scores, groups=groups)
    assert isinstance(found, metrics.Exposure)
    assert found.loss == pytest.approx(names.mean())


def test_names_of_other_tools():
    same = {
        "ndcg@10": ["NDCG_at_10", "ndcg_burges@10", "nDCG@10"],
        "ndcg_linear@10": ["ndcg_cut_10", "ndcg_score@10"],
        "inf_ap": ["infAP"],
        "alpha_ndcg@20": ["alpha-nDCG@20", "alpha_nDCG@20"],
    }
    for ours, theirs in same.items():
        for name in theirs:
            assert find_measure(name)[1:] == find_measure(ours)[1:], name


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: metrics.rbp([1, 0], [1, 2], persistence=1),
            "`persistence` must be a number between 0 and 1",
        ),
        (lambda: metrics.evaluate([1, 0], [1, 2], "rbp_1.5"), "at its end"),
        (lambda: metrics.bpref([1, 0], [1, 2], sample_weight=[0.5, 1]), "whole numbers"),
        (lambda: metrics.inf_ap([1, 0], [1, 2], ties="average"), "inf_ap has no rule 'average'"),
        (lambda: metrics.bpref([NAN, NAN], [1, 2]), "not defined"),
        (lambda: metrics.alpha_ndcg([[1, 0]], [1], alpha=2), "`alpha` must be between 0 and 1"),
        (lambda: metrics.alpha_ndcg([[1, NAN]], [1]), "negative or not finite in row 0"),
        (lambda: metrics.err_ia([[1, -1]], [1]), "negative or not finite in row 0"),
        (lambda: metrics.err_ia([["a", "b"]], [1]), "column of numbers for each"),
        (lambda: metrics.ndcg([[1, 0]], [1]), "one label per row"),
        (lambda: metrics.expected_exposure([1, NAN], [1, 2]), "not finite in row 1"),
        (lambda: metrics.expected_exposure([1], [[[1]]]), "one column for each ranking"),
        (lambda: metrics.team_draft(["x", "x"], ["y"]), "ranking a has an item twice"),
        (lambda: metrics.team_draft(["x"], ["y"], length=0), "`length` must be a whole number"),
        (lambda: metrics.interleaving_test([1], ["c"], [0]), "teams must be 'a' or 'b'"),
        (lambda: metrics.interleaving_test([-1], ["a"], [0]), "clicked must be a number"),
        (lambda: metrics.interleaving_test([], [], []), "at least one row"),
    ],
)
def test_faults_are_one_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


# Interleaving

items = st.lists(st.integers(0, 9), unique=True, max_size=7)


@settings(max_examples=60)
@given(items, items, st.integers(1, 12) | st.none(), st.integers(0, 99))
def test_team_draft(a, b, length, seed):
    found = metrics.team_draft(a, b, length=length, random_state=seed)
    assert isinstance(found, metrics.Interleaved)
    assert len(set(found.items)) == len(found.items) == min(len({*a, *b}), length or 99)
    for place, (item, team) in enumerate(zip(*found, strict=True)):
        ranking, above = {"a": a, "b": b}[team], found.items[:place]
        assert item == next(each for each in ranking if each not in above)
    whole = [found.teams[i : i + 2] for i in range(0, 2 * (len(found.teams) // 2), 2)]
    rounds = min(len(a), len(b)) // 2  # in this many rounds neither ranking can be exhausted
    assert all(set(pair) == {"a", "b"} for pair in whole[:rounds])


def test_interleaving_of_equal_rankers_is_fair_and_of_a_better_one_is_not():
    """Readers click relevant items; equal rankers win equally often, and a better one more often."""
    rng = np.random.default_rng(0)
    relevant, good, bad = {0, 1, 2}, list(range(8)), [0, 7, 6, 1, 5, 4, 3, 2]
    for a, b, better in ((good, good, None), (bad, good, "b")):
        logs = [metrics.team_draft(a, b, length=4, random_state=rng) for _ in range(400)]
        clicked = [item in relevant and rng.random() < 0.5 for log in logs for item in log.items]
        teams = [team for log in logs for team in log.teams]
        found = metrics.interleaving_test(clicked, teams, np.repeat(np.arange(400), 4))
        assert isinstance(found, metrics.InterleavingTest)
        assert found.wins_a + found.wins_b + found.ties == 400
        assert found.low < found.share_b < found.high
        assert (found.low > 0.5) == (found.p_value < 0.001) == (better == "b")
    swapped = metrics.interleaving_test(
        clicked, np.where(np.array(teams) == "a", "b", "a"), np.repeat(np.arange(400), 4)
    )
    assert (swapped.wins_a, swapped.p_value) == (found.wins_b, found.p_value)
    assert swapped.share_b == pytest.approx(1 - found.share_b)
    nobody = metrics.interleaving_test([0, 0], ["a", "b"], ["x", "x"])
    assert nobody[:3] == (0, 0, 1)
    assert nobody.p_value == 1


def test_inf_ap_of_a_run_with_documents_outside_the_pool(tmp_path):
    """Judgements below 0 are in the pool but unjudged; documents without a judgement are outside the pool."""
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier is not installed")
    rng = np.random.default_rng(0)
    run, qrels = {}, {}
    for query in map(str, range(30)):
        documents = [f"d{i:02}" for i in range(25)]
        run[query] = {
            name: float(score) for name, score in zip(documents[:20], rng.permutation(20), strict=True)
        }
        judged = {name: int(rng.choice([-1, 0, 0, 1, 2])) for name in documents if rng.random() < 0.6}
        qrels[query] = judged | {"d00": 1}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"infAP", "bpref", "map"}).evaluate(run)
    lines = [f"{q} Q0 {d} 1 {s} x" for q, row in run.items() for d, s in row.items()]
    (tmp_path / "run.txt").write_text("\n".join(lines) + "\n")
    lines = [f"{q} 0 {d} {r}" for q, row in qrels.items() for d, r in row.items()]
    (tmp_path / "qrels.txt").write_text("\n".join(lines) + "\n")
    for name, unjudged in (("infAP", "pool"), ("bpref", True), ("map", False)):
        rows = judge_run(tmp_path / "run.txt", tmp_path / "qrels.txt", unjudged=unjudged)
        found = metrics.per_group(rows.y, rows.scores, name, groups=rows.groups, relevant=1, ties="given")
        expected = [theirs[query][name] for query in found["group"]]
        np.testing.assert_allclose(found[name], expected, atol=1e-12, err_msg=name)
