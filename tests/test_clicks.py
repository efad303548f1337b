"""Clicks: the simulator against its models, propensities against the truth, and unbiasedness of each loss."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from apexrank import InputError, LinearRanker, ListwiseRanker, clicks, metrics
from apexrank.datasets import make_clicks
from apexrank.objectives import Push, Retarget
from apexrank.penalties import Ridge
from apexrank.rankers.listwise import listwise_objective

GRADES, SCORES = np.array([2.0, 0.0, 1.0, 0.0]), np.array([0.1, 0.9, 0.5, 0.3])
ATTRACTION = 0.1 + 0.9 * (2**GRADES - 1) / 3
ORDER = np.argsort(-SCORES)


def counts(log):
    return clicks.count_clicks(log.row, log.position, log.clicked)


def near(count, n, chance):
    """Whether a binomial count is within 5 standard errors."""
    return abs(count - n * chance) <= 5 * np.sqrt(n * chance * (1 - chance)) + 1e-9


# The simulator


def examined(model, eta):
    """Probability that each position is examined, by the model's recursion."""
    places = np.arange(1, 5.0)
    if model == "position":
        return places**-eta
    chance, found = 1.0, []
    for place, attraction in zip(places, ATTRACTION[ORDER], strict=True):
        found.append(chance)
        goes_on = 0.0 if model == "cascade" else place**-eta
        chance *= 1 - attraction * (1 - goes_on)
    return np.array(found)


@pytest.mark.parametrize("model", ["position", "cascade", "dependent"])
@pytest.mark.parametrize("eta", [0.0, 1.5])
def test_clicks_have_the_chances_of_their_model(model, eta):
    n = 40_000
    log = make_clicks(GRADES, SCORES, n_sessions=n, model=model, eta=eta, random_state=1)
    assert len(log.row) == 4 * n
    assert (log.row.reshape(n, 4) == ORDER).all()
    assert (log.position.reshape(n, 4) == [1, 2, 3, 4]).all()
    chances = examined(model, eta) * ATTRACTION[ORDER]
    for place, chance in enumerate(chances):
        assert near(log.clicked[place::4].sum(), n, chance)
    per_session = np.bincount(log.session, log.clicked)
    assert per_session.max() == 1 or model != "cascade"
    if model == "position":
        assert log.propensities.tolist() == pytest.approx(np.arange(1, 5.0) ** -eta)
        both = log.clicked[0::4] & log.clicked[2::4]  # clicks are independent given the list
        assert near(both.sum(), n, chances[0] * chances[2])


def test_queries_rankers_cut_and_trust():
    groups = np.array(["b", "b", "a", "a", "a"])
    scores = np.array([[1, 2], [2, 1], [3, 1], [2, 2], [1, 3]])
    log = make_clicks(np.zeros(5), scores, groups=groups, n_sessions=30_000, cut=2, noise=[0.4, 0.1], eta=0)
    assert log.position.max() == 2
    assert near(np.sum(groups[log.row[log.position == 1]] == "b"), 30_000, 0.5)
    assert near(np.sum(log.ranker[log.position == 1]), 30_000, 0.5)
    for ranker, firsts in ((0, {1, 2}), (1, {0, 4})):
        assert set(log.row[(log.position == 1) & (log.ranker == ranker)].tolist()) == firsts
    assert 3 in log.row  # second in both rankings of its query
    for place, chance in ((1, 0.4), (2, 0.1)):
        own = log.clicked[log.position == place]
        assert near(own.sum(), len(own), chance)
    again = make_clicks(np.zeros(5), scores, groups=groups, n_sessions=30_000, cut=2, noise=[0.4, 0.1], eta=0)
    assert (again.clicked == log.clicked).all()
    half = make_clicks([1, 0], [1, 0], n_sessions=20_000, noise=0, max_grade=2, eta=0)
    assert near(half.clicked.sum(), 20_000, 1 / 3)


# Propensities


def test_harvested_propensities_are_the_maximum_of_the_likelihood():
    """Compared with a direct minimisation over log p, and close to the truth of the simulation."""
    rng = np.random.default_rng(0)
    grades, groups = rng.integers(0, 3, 60), np.repeat(np.arange(10), 6)
    log = make_clicks(grades, rng.normal(size=(60, 4)), groups=groups, n_sessions=60_000, random_state=2)
    found = counts(log)
    p = clicks.harvest_propensities(found, smoothing=0.0)

    def negative_log_likelihood(free):
        exposure = found.shown * np.exp(np.r_[0.0, free])[found.position - 1]
        share = exposure / np.bincount(found.row, exposure)[found.row]
        return -found.clicked @ np.log(share) / found.clicked.sum()

    best = minimize(negative_log_likelihood, np.zeros(5), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(np.log(p[1:]), best.x, atol=2e-3)
    np.testing.assert_allclose(p, np.arange(1, 7.0) ** -1, rtol=0.1)
    assert clicks.harvest_propensities(found)[1:] == pytest.approx(p[1:], rel=0.02)


def test_regressed_propensities_of_one_ranker():
    """The truth if the model holds: clicks in proportion to p_k·exp(x·w)."""
    rng = np.random.default_rng(1)
    X, groups = rng.normal(size=(600, 3)), np.repeat(np.arange(100), 6)
    place = np.tile(np.arange(1, 7), 100)
    order = np.lexsort((-(X[:, 0] + X[:, 2]), groups))  # the logging ranker
    attraction, truth = np.exp(X @ [0.5, 0.5, 0.0] - 3), np.arange(1, 7.0) ** -1.5
    found = clicks.Clicks(order, place, np.full(600, 1e3), 1e3 * truth[place - 1] * attraction[order])
    with pytest.raises(InputError, match="shown at only one position"):
        clicks.harvest_propensities(found)
    p = clicks.regress_propensities(found, X, groups, alpha=0.0, smoothing=0.0)
    np.testing.assert_allclose(p, truth, rtol=1e-2)
    # without the feature used by the logging ranker, relevance at the top is mistaken for position bias
    confounded = clicks.regress_propensities(found, X[:, 1:], groups, alpha=0.0, smoothing=0.0)
    assert (confounded[1:] < 0.9 * truth[1:]).all()


def test_positions_without_links_are_named():
    log = make_clicks([1, 0, 1], [[3, 1], [2, 2], [1, 3]], n_sessions=5000)
    with pytest.warns(UserWarning, match="1 positions, first 2, share no document with position 1"):
        p = clicks.harvest_propensities(counts(log))
    assert p[2] == pytest.approx(1 / 3, rel=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clicks.harvest_propensities(counts(make_clicks([1, 0], [[1, 2], [2, 1]], n_sessions=5000)))


# Labels, weights, and unbiasedness of the losses


numbers = st.integers(0, 20)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3), st.booleans()), min_size=1, max_size=40))
def test_counts_and_labels(entries):
    row, position, clicked = (np.array(column) for column in zip(*entries, strict=True))
    found, p = clicks.count_clicks(row, position, clicked), np.array([1.0, 0.5, 0.2])
    assert found.shown.sum() == len(row)
    for cell in zip(*found, strict=True):
        own = (row == cell[0]) & (position == cell[1])
        assert cell[2:] == (own.sum(), clicked[own].sum())
    exposure, shown = (clicks.click_labels(found, p, 6, unit=unit) for unit in ("exposure", "impressions"))
    classes = clicks.click_classes(found, p)
    for d in range(6):
        own = row == d
        n, c = own.sum(), clicked[own].sum()
        inverse = (clicked / p[position - 1])[own].sum()
        assert shown.weight[d] == n
        assert shown.weight[d] * shown.relevance[d] == pytest.approx(inverse)
        assert exposure.weight[d] == pytest.approx(p[position - 1][own].sum())
        assert exposure.weight[d] * exposure.relevance[d] == pytest.approx(c)
        assert classes.weight[(classes.row == d) & ~classes.positive].sum() == n
        assert classes.weight[(classes.row == d) & classes.positive].sum() == pytest.approx(inverse)


N, GROUPS = 7, np.array([0, 0, 0, 1, 1, 1, 1])
PLACE = np.array([1, 2, 3, 1, 2, 3, 4])
P = np.array([1.0, 0.5, 0.3, 0.2])


def gradient_of_labels(make, unit):
    """Gradient at given scores as a function of the clicks of each document."""

    def gradient(clicked, scores, p):
        found = clicks.Clicks(np.arange(N), PLACE, np.full(N, 100.0), clicked)
        labels = clicks.click_labels(found, p, N, unit=unit)
        objective = make(labels.relevance, labels.weight)
        return objective.value_and_grad(scores)[1]

    return gradient


def gradient_of_classes(**options):
    def gradient(clicked, scores, p):
        found = clicks.Clicks(np.arange(N), PLACE, np.full(N, 100.0), clicked)
        rows = clicks.click_classes(found, p)
        objective = Push(rows.positive, sample_weight=rows.weight, groups=GROUPS[rows.row], **options)
        slope = objective.value_and_grad(scores[rows.row])[1]
        return np.bincount(rows.row, slope, N)

    return gradient


LOSSES = {
    "cross_entropy": lambda y, w: clicks.cross_entropy(y, sample_weight=w, groups=GROUPS),
    "pointwise": lambda y, w: listwise_objective("pointwise", y, sample_weight=w, groups=GROUPS),
    "listnet": lambda y, w: listwise_objective("listnet", y, sample_weight=w, groups=GROUPS),
    "ndcg_consistent": lambda y, w: listwise_objective("ndcg_consistent", y, sample_weight=w, groups=GROUPS),
    "rank_cosine": lambda y, w: listwise_objective("rank_cosine", y, sample_weight=w, groups=GROUPS),
    "unknown_link": lambda y, w: listwise_objective("unknown_link", y, sample_weight=w, groups=GROUPS),
    "retarget": lambda y, w: Retarget(y, sample_weight=w, groups=GROUPS),
}
UNBIASED = {
    **{f"{name} {unit}": (gradient_of_labels(make, unit), name in ("cross_entropy", "pointwise"))
       for name, make in LOSSES.items() for unit in ("exposure", "impressions")},
    "pairs, logistic": (gradient_of_classes(loss="logistic", price="identity"), True),
    "pairs, squared hinge": (gradient_of_classes(loss="squared_hinge", price="identity"), True),
    "pairs, exponential": (gradient_of_classes(loss="exponential", price="identity"), False),
    "push, p = 4": (gradient_of_classes(loss="logistic"), False),
}  # fmt: skip


@pytest.mark.parametrize("name", UNBIASED)
def test_which_losses_are_unbiased(name):
    """If a gradient is affine in the clicks, its mean is the gradient at the mean clicks, n·p·γ.

    At the mean clicks the labels are γ itself, whatever the positions: the gradient with full information. For every
    other loss two draws of clicks are a counterexample: the mean of their gradients is not the gradient at their mean.
    """
    gradient, unbiased = UNBIASED[name]
    rng = np.random.default_rng(5)
    scores, attraction = rng.normal(size=N), np.array([0.9, 0.1, 0.5, 0.2, 0.7, 0.4, 0.1])
    mean = 100 * P[PLACE - 1] * attraction
    change = rng.uniform(0.2, 0.8, N) * mean
    middle = gradient(mean, scores, P)
    ends = [gradient(mean + sign * change, scores, P) for sign in (-1, 1)]
    assert np.allclose((ends[0] + ends[1]) / 2, middle, rtol=1e-8, atol=1e-10) == unbiased
    # at the mean clicks the labels are the attractiveness: where it does not count how often a document was examined
    # the gradient is that of clicks without position bias
    if "exposure" not in name:
        full = gradient(100 * attraction, scores, np.ones(4))
        np.testing.assert_allclose(middle, full, rtol=1e-8, atol=1e-10)


def test_weights_of_lightgbm_do_not_reach_the_other_row_of_a_pair():
    """In lambdarank the weight of a positive moves its own leaf, but not that of the negative it is paired with."""
    lgb = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    leaves = []
    for weight in (1.0, 16.0):
        data = lgb.Dataset(
            np.tile([[1.0], [0.0]], (200, 1)),
            np.tile([1, 0], 200),
            group=[2] * 200,
            weight=np.tile([weight, 1.0], 200),
        )
        options = {
            "objective": "lambdarank",
            "num_leaves": 2,
            "lambda_l2": 50.0,
            "verbose": -1,
            "num_threads": 1,
        }
        leaves.append(lgb.train(options, data, 1).predict([[1.0], [0.0]]))
    assert leaves[1][0] > 1.5 * leaves[0][0] > 0
    assert leaves[1][1] == pytest.approx(leaves[0][1])


def test_naive_labels_reverse_an_order_that_the_correction_restores():
    """The worse document is always shown first; one feature distinguishes the two."""
    groups = np.repeat(np.arange(50), 2)
    grades, X = np.tile([0, 1], 50), np.tile([[0.0], [1.0]], (50, 1))
    log = make_clicks(grades, -X[:, 0], groups=groups, n_sessions=20_000, noise=0.5, eta=2, random_state=0)
    found = counts(log)
    signs = {}
    for name, p in (("naive", np.ones(2)), ("known", log.propensities)):
        y, w = clicks.click_labels(found, p, 100)
        soft = LinearRanker(clicks.cross_entropy, Ridge(1e-6)).fit(X, y, sample_weight=w, groups=groups)
        point = ListwiseRanker("pointwise").fit(X, y, sample_weight=w)
        signs[name] = [float(np.sign(ranker.coef_[0])) for ranker in (soft, point)]
        if name == "known":  # the scores are the logarithm of the attractiveness, 0.5 and 1
            assert soft.coef_[0] == pytest.approx(np.log(2), abs=0.05)
    assert signs == {"naive": [-1, -1], "known": [1, 1]}


# Counterfactual measures


def log_of_queries(n_sessions, seed=0, **options):
    rng = np.random.default_rng(7)
    grades, groups = rng.integers(0, 3, 40), np.repeat(np.arange(8), 5)
    logged, new = rng.normal(size=(2, 40))
    log = make_clicks(grades, logged, groups=groups, n_sessions=n_sessions, random_state=seed, **options)
    return log, groups, new, 0.1 + 0.9 * (2.0**grades - 1) / 3


@pytest.mark.parametrize("k", [None, 2])
def test_estimates_of_many_sessions_are_the_truth(k):
    log, groups, new, attraction = log_of_queries(60_000)
    truth = metrics.dcg(attraction, new, groups=groups, gain="linear", k=k)
    shared = log.clicked, log.position, new[log.row], log.propensities

    def estimate(p=log.propensities, **options):
        rows = {"sessions": log.session, "k": k, "n_resamples": 200}
        return metrics.counterfactual_dcg(*shared[:3], p, **rows, **options)

    def robust(relevance, **options):
        return estimate(estimator="doubly-robust", relevance=relevance[log.row], **options)

    ips, wrong = estimate(), np.full(40, 0.9)
    assert abs(ips.value - truth) < 5 * ips.standard_error
    assert robust(wrong) == pytest.approx(ips)  # nothing is clipped, and all documents are shown
    clipped = robust(attraction, clip=0.5)
    assert abs(clipped.value - truth) < 5 * clipped.standard_error
    assert clipped.standard_error < 0.8 * ips.standard_error
    assert estimate(clip=0.5).high < truth < robust(wrong, clip=0.5).low
    own = estimate(estimator="self-normalised")
    assert abs(own.value - truth / (attraction.sum() / 8)) < 5 * own.standard_error
    assert estimate(7 * log.propensities, estimator="self-normalised") == pytest.approx(own)
    assert estimate(np.ones(5)).high < truth  # clicks as they are


def test_documents_that_were_not_shown():
    """Position 0 marks documents never shown: the prediction replaces their clicks."""
    log, groups, new, attraction = log_of_queries(30_000)
    shown = log.position <= 3
    position, clicked = np.where(shown, log.position, 0), log.clicked & shown
    rows = {"sessions": log.session, "n_resamples": 100}
    truth = metrics.dcg(attraction, new, groups=groups, gain="linear")
    shared = clicked, position, new[log.row], log.propensities
    robust = metrics.counterfactual_dcg(
        *shared, estimator="doubly-robust", relevance=attraction[log.row], **rows
    )
    assert abs(robust.value - truth) < 5 * robust.standard_error
    assert metrics.counterfactual_dcg(*shared, **rows).high < truth


def test_without_bias_it_is_the_dcg_of_the_clicks():
    log, _, new, _ = log_of_queries(300, eta=0.0)
    found = metrics.counterfactual_dcg(
        log.clicked, log.position, new[log.row].round(), np.ones(5), sessions=log.session, n_resamples=50
    )
    direct = metrics.dcg(log.clicked, new[log.row].round(), groups=log.session, gain="linear", empty="zero")
    assert found.value == pytest.approx(direct)
    assert found.low <= found.value <= found.high
    assert found.n == 300


@pytest.mark.slow
def test_intervals_cover_the_truth():
    """About 95 % of the intervals of 200 logs contain the truth; 5 standard errors of that share are 8 %."""
    covered, truth = [], None
    for seed in range(200):
        log, groups, new, attraction = log_of_queries(400, seed=seed)
        truth = truth or metrics.dcg(attraction, new, groups=groups, gain="linear")
        found = metrics.counterfactual_dcg(
            log.clicked, log.position, new[log.row], log.propensities, sessions=log.session, n_resamples=300
        )
        covered.append(found.low <= truth <= found.high)
    assert 0.87 <= np.mean(covered) <= 1


def test_drawing_queries_keeps_their_sessions_together():
    log, groups, new, _ = log_of_queries(2000)
    shared = log.clicked, log.position, new[log.row], log.propensities
    by_query, by_session = (
        metrics.counterfactual_dcg(*shared, sessions=log.session, queries=queries, n_resamples=300)
        for queries in (groups[log.row], None)
    )
    assert by_query.value == pytest.approx(by_session.value)
    assert (by_query.n, by_session.n) == (8, 2000)
    assert by_query.standard_error > 2 * by_session.standard_error  # queries differ


COUNTS = clicks.count_clicks([0, 1], [1, 2], [1, 0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_clicks([-1], [1]), "one finite grade of at least 0"),
        (lambda: make_clicks([1], [1, 2]), "scores needs 1 rows"),
        (lambda: make_clicks([1], [1], model="random"), "unknown `model` 'random'"),
        (lambda: make_clicks([1], [1], noise=2), "`noise` must be a probability"),
        (lambda: make_clicks([2], [1], max_grade=1), "`max_grade` must be a finite number of at least 2"),
        (lambda: make_clicks([2], [1], n_sessions=0), "`n_sessions` must be a whole number"),
        (lambda: clicks.count_clicks([0], [0], [1]), "`position` must be whole numbers of at least 1"),
        (lambda: clicks.count_clicks([0.5], [1], [1]), "`row` must be whole numbers"),
        (lambda: clicks.count_clicks([0], [1], [2]), "clicked must be True or False"),
        (lambda: clicks.count_clicks([], [], []), "one entry each"),
        (lambda: clicks.click_labels(COUNTS, [1.0], 2), "each of the 2 positions"),
        (lambda: clicks.click_labels(COUNTS, [1.0, 0.0], 2), "a number above 0"),
        (lambda: clicks.click_labels(COUNTS, [1.0, 1.0], 1), "`n_rows` is 1, but the log has the document 1"),
        (lambda: clicks.click_labels(COUNTS, [1.0, 1.0], 2, unit="x"), "unknown `unit` 'x'"),
        (lambda: clicks.regress_propensities(COUNTS, [[1.0]], [0]), "a row for each of the 2 documents"),
        (
            lambda: clicks.regress_propensities(COUNTS._replace(clicked=np.zeros(2)), [[1.0], [2.0]], [0, 0]),
            "no clicks to learn propensities from",
        ),
        (
            lambda: metrics.counterfactual_dcg([2], [1], [1], [1], sessions=[0]),
            "clicked must be True or False",
        ),
        (lambda: metrics.counterfactual_dcg([1], [-1], [1], [1], sessions=[0]), "position must be"),
        (lambda: metrics.counterfactual_dcg([1], [0], [1], [1], sessions=[0]), "not shown .* is clicked"),
        (lambda: metrics.counterfactual_dcg([1], [2], [1], [1], sessions=[0]), "each of the 2 positions"),
        (
            lambda: metrics.counterfactual_dcg([1], [1], [1], [1], sessions=[0], estimator="doubly-robust"),
            "relevance goes with",
        ),
        (
            lambda: metrics.counterfactual_dcg(
                [1], [1], [1], [1], sessions=[0], estimator="doubly-robust", relevance=[2]
            ),
            "relevance must be a probability",
        ),
        (
            lambda: metrics.counterfactual_dcg([0], [1], [1], [1], sessions=[0], estimator="self-normalised"),
            "no click in the log",
        ),
    ],
)
def test_faults_are_one_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
