"""The Lovász–Mallows model: the distribution over orders against enumeration, the estimator against planted models."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import chisquare
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils._param_validation import InvalidParameterError

from apexrank.aggregation.kendall_mallows import generator
from apexrank.aggregation.lovasz_bregman import LovaszBregman
from apexrank.errors import InputError
from apexrank.submodular import Chain, Custom, Cut, Indicator, Modular, Product, Sqrt, Top, is_by_size
from apexrank_papers.lovasz.mallows import (
    LovaszMallows,
    Normalisers,
    best_component,
    expectation_maximisation,
    spread_start,
)
from apexrank_papers.lovasz.mallows_density import BoxNormaliser, exact_scores
from apexrank_papers.lovasz.posterior import OrderPosterior, effective_size
from tests.aggregation.test_properties import ATOMS as FUNCTIONS

ORDERS = np.array(list(permutations(range(5))))
X5 = np.array([[0.9, 0.2, 0.5, 0.4, 0.1], [0.3, 0.8, 0.6, 0.1, 0.2], [0.7, 0.6, 0.1, 0.5, 0.95]])
THETA = np.array([1.5, 0.7, 2.0])


def odd(S):
    return len(S) ** 0.5 + 0.5 * (1 in S or 3 in S)


ATOMS = {
    "sqrt": ("sqrt", lambda S: len(S) ** 0.5),
    "product": (0.3 * Product(), lambda S: 0.3 * len(S) * (5 - len(S))),
    "top": (Top(2), lambda S: min(len(S), 2)),
    "chain": (Chain(), lambda S: sum((i in S) != (i + 1 in S) for i in range(4))),
    "custom": (Custom(odd, 5), odd),
}


def divergence(x, order, f):
    """d(x‖σ) by definition."""

    def inner(sigma):
        return sum(x[i] * (f(set(sigma[: j + 1])) - f(set(sigma[:j]))) for j, i in enumerate(sigma))

    return inner(sorted(range(len(x)), key=lambda i: -x[i])) - inner(list(order))


def log_weights(X, theta, f):
    """−Σ θ_i d(x_i‖σ) of all orders of five items."""
    return np.array(
        [
            -sum(t * divergence(x, order, f) for t, x in zip(theta, X, strict=True))
            for order in ORDERS.tolist()
        ]
    )


def p_value(draws, probability):
    """Chi-square test of sampled orders against the probabilities of all orders; rare orders are pooled."""
    code = {tuple(order): k for k, order in enumerate(ORDERS.tolist())}
    observed = np.bincount([code[tuple(order)] for order in draws.tolist()], minlength=120)
    expected = probability * len(draws)
    rare = expected < 5
    if rare.any():
        observed = np.r_[observed[~rare], observed[rare].sum()]
        expected = np.r_[expected[~rare], expected[rare].sum()]
    assert len(expected) > 30
    return chisquare(observed, expected).pvalue


@pytest.mark.parametrize("name", ATOMS)
def test_posterior_is_the_enumerated_distribution(name):
    atom, f = ATOMS[name]
    posterior = OrderPosterior(X5, THETA, atom)
    logs = log_weights(X5, THETA, f)
    p = np.exp(logs - logsumexp(logs))
    assert np.isclose(posterior.log_normaliser, logsumexp(logs), rtol=1e-11)
    np.testing.assert_allclose(posterior.probability(ORDERS), p, rtol=1e-10)
    assert np.isclose(posterior.log_probability(ORDERS[17]), np.log(p[17]), rtol=1e-10)
    assert np.isclose(posterior.probability(posterior.mode), p.max(), rtol=1e-10)
    ranks = np.argsort(ORDERS, axis=1)
    expected = np.array([[p[ranks[:, item] == rank].sum() for rank in range(5)] for item in range(5)])
    np.testing.assert_allclose(posterior.rank_marginals(), expected, atol=1e-12)
    before = np.array([[p[ranks[:, a] < ranks[:, b]].sum() for b in range(5)] for a in range(5)])
    np.testing.assert_allclose(posterior.pairwise_marginals(), before, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sqrt", "product", "chain"])
def test_exact_draws_of_orders(name):
    atom, f = ATOMS[name]
    logs = log_weights(X5, THETA, f)
    draws = OrderPosterior(X5, THETA, atom).sample(20000, random_state=0)
    assert p_value(draws, np.exp(logs - logsumexp(logs))) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n_samples"), [("sqrt", 20000), ("product", 20000), ("chain", 6000)])
def test_metropolis_draws_of_orders(name, n_samples):
    atom, f = ATOMS[name]
    logs = log_weights(X5, THETA, f)
    draws = OrderPosterior(X5, THETA, atom).metropolis(n_samples, thin=40, n_chains=50, random_state=0)
    assert p_value(draws.orders, np.exp(logs - logsumexp(logs))) > 1e-3
    assert 0.1 < draws.acceptance < 1
    assert draws.effective_size > 0.7 * n_samples
    assert draws.orders.shape == (n_samples, 5)


# functions of the set size have their own kernel; the others are called once per step
FLAT = {
    "sqrt": lambda n: Sqrt(),
    "top-n": Top,
    "product": lambda n: Product(),
    "indicator": lambda n: Indicator(),
    "modular": lambda n: Modular(np.arange(float(n))),
    "chain": lambda n: Chain(),
    "cut": lambda n: Cut(np.arange(n * n).reshape(n, n)),
}


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("name", FLAT)
def test_metropolis_draws_of_flat_posteriors_visit_all_orders_equally(name, n):
    """Every swap changes the parity of an order, so a chain that always swaps would visit only half of the orders."""
    theta = 1.0 if name in ("top-n", "modular") else 0.0  # these two do not depend on the order
    posterior = OrderPosterior(np.linspace(1, 0, n), theta, FLAT[name](n))
    found = posterior.metropolis(1200, n_chains=60, random_state=0)
    codes = found.orders @ n ** np.arange(n)
    counts = [(codes == np.array(order) @ n ** np.arange(n)).sum() for order in permutations(range(n))]
    assert chisquare(counts).pvalue > 1e-3
    # every swap is accepted, so the order stays the same only for proposals that swap nothing
    assert found.acceptance == pytest.approx(1 - 1 / (2 * n), abs=0.02)


def test_posterior_at_theta_zero_and_infinity():
    flat = OrderPosterior(X5, 0.0)
    assert np.isclose(flat.log_normaliser, np.log(120))
    np.testing.assert_allclose(flat.rank_marginals(), 0.2)
    sharp = OrderPosterior(X5, 1e6)
    assert np.isclose(sharp.probability(sharp.mode), 1.0)
    assert sharp.mode.tolist() == np.argsort(-X5.sum(axis=0), kind="stable").tolist()
    assert (sharp.sample(20, random_state=0) == sharp.mode).all()


def test_scores_far_from_zero_change_nothing():
    posterior, shifted = (
        OrderPosterior(X5, THETA),
        OrderPosterior(X5 + np.array([[1e6], [-5.0], [3.0]]), THETA),
    )
    np.testing.assert_allclose(shifted.probability(ORDERS), posterior.probability(ORDERS), rtol=1e-6)


def test_many_items_by_metropolis():
    rng = np.random.default_rng(0)
    scores = np.linspace(3, 0, 40)
    posterior = OrderPosterior(scores, 40.0)
    assert not posterior.exact
    draws = posterior.metropolis(2000, random_state=rng)
    ranks, before = posterior.rank_marginals(draws.orders), posterior.pairwise_marginals(draws.orders)
    np.testing.assert_allclose(ranks.sum(axis=1), 1)
    np.testing.assert_allclose(before + before.T, 1 - np.eye(40), atol=1e-12)
    assert before[0, 39] > 0.99
    with pytest.raises(
        InputError, match="exact sums over orders need at most 20 items, got 40: use metropolis"
    ):
        _ = posterior.log_normaliser
    with pytest.raises(InputError, match="at most 20 items"):
        posterior.rank_marginals()
    with pytest.raises(InputError, match="at most 20 items"):
        posterior.sample(3, method="exact")
    assert posterior.sample(8, random_state=0).shape == (8, 40)


def test_metropolis_agrees_with_exact_marginals_for_twelve_items():
    scores = np.random.default_rng(3).random((4, 12))
    posterior = OrderPosterior(scores, 6.0)
    draws = posterior.metropolis(6000, thin=300, random_state=0)
    error = np.abs(posterior.pairwise_marginals(draws.orders) - posterior.pairwise_marginals()).max()
    assert error < 4.5 * 0.5 / np.sqrt(draws.effective_size)


def test_poor_draws_are_reported():
    posterior = OrderPosterior(np.linspace(1, 0, 30), 500.0)
    assert posterior.metropolis(400, thin=1, random_state=0).effective_size < 40
    with pytest.warns(ConvergenceWarning, match="Metropolis draws are worth"):
        posterior.sample(400, random_state=0, thin=1)


def test_effective_size_of_an_autoregression():
    rng = np.random.default_rng(0)
    x = np.zeros((4, 20000))
    noise = rng.standard_normal(x.shape)
    for t in range(1, x.shape[1]):
        x[:, t] = 0.8 * x[:, t - 1] + noise[:, t]
    assert np.isclose(effective_size(x), x.size * (1 - 0.8) / (1 + 0.8), rtol=0.15)
    assert effective_size(np.ones((2, 10))) == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X5, -1.0), "`theta` must be finite and at least 0, got -1.0"),
        ((X5, [1.0, 2.0]), "one for each of the 3 voters, got shape"),
        ((X5, "much"), "`theta` must be a number or one for each of the 3 voters"),
        ((X5 * np.nan, 1.0), "scores must be finite numbers, got nan"),
        ((X5[None], 1.0), "a table of voters and items"),
    ],
)
def test_bad_input_of_the_posterior(arguments, message):
    with pytest.raises(InputError, match=message):
        OrderPosterior(*arguments)


def test_bad_arguments_of_the_posterior():
    posterior = OrderPosterior(X5)
    with pytest.raises(InputError, match="unknown `method` 'gibbs': use one of auto, exact, metropolis"):
        posterior.sample(3, method="gibbs")
    with pytest.raises(InputError, match="item 0 occurs twice"):
        posterior.probability([0, 0, 1, 2, 3])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("thin", 0), ("thin", 1.5), ("burn_in", -50), ("burn_in", 2.0), ("n_chains", 0)],
        *[("n_samples", 2.5), ("n_samples", -1), ("n_samples", "3")],
    ],
)
@pytest.mark.parametrize("f", [Sqrt(), Chain()], ids=["sqrt", "chain"])
def test_counts_of_draws_are_checked(f, name, value):
    posterior = OrderPosterior(X5, f=f)
    with pytest.raises(InputError, match=name):
        posterior.metropolis(**{"n_samples": 3, name: value})
    if name == "n_samples":
        with pytest.raises(InputError, match=name):
            posterior.sample(value)
    assert posterior.metropolis(np.int64(3), burn_in=0, thin=1).orders.shape == (3, 5)


def planted(theta, order, n_samples, seed=0, f=None):
    atom = Sqrt() if f is None else f
    lattice = BoxNormaliser(atom, len(order), np.asarray(order)).lattice
    return exact_scores(lattice, theta, np.asarray(order), n_samples, generator(seed))


@pytest.mark.parametrize("f", ["sqrt", "log", Product(), Chain()], ids=["sqrt", "log", "product", "chain"])
def test_fit_is_maximum_likelihood(f):
    X = np.random.default_rng(5).random((40, 5)) ** np.array([0.5, 1, 1.5, 2, 3])
    model = LovaszMallows(f).fit(X)
    lb = LovaszBregman(f)
    assert model.orders_[0].tolist() == np.argsort(-X.mean(axis=0), kind="stable").tolist()
    normaliser = BoxNormaliser(lb.f, 5, model.orders_[0])
    mean = lb.divergence(X, model.orders_[0]).mean()
    best = minimize_scalar(
        lambda t: t * mean + normaliser.at(t).log_z,
        bounds=(0, 500),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert np.isclose(model.thetas_[0], best.x, rtol=1e-5)
    assert np.isclose(model.score(X), -best.fun, rtol=1e-10)
    # the standard error comes from the observed information
    step = 1e-3 * best.x
    curve = [-len(X) * (t * mean + normaliser.at(t).log_z) for t in (best.x - step, best.x, best.x + step)]
    assert np.isclose(
        model.thetas_se_[0], (-(curve[0] - 2 * curve[1] + curve[2]) / step**2) ** -0.5, rtol=1e-4
    )


def test_no_order_has_a_larger_likelihood():
    X = np.random.default_rng(5).random((30, 5)) ** np.array([2, 1, 0.5, 3, 1])
    model = LovaszMallows().fit(X)
    normaliser = Normalisers(LovaszBregman("sqrt"), 5)
    others = [normaliser.divergence.divergence(X, order).mean() for order in ORDERS]
    assert ORDERS[np.argmin(others)].tolist() == model.orders_[0].tolist()
    for order in ORDERS[::7]:
        given = LovaszMallows(theta=model.thetas_).fit(X)
        d = normaliser.divergence.divergence(X, order)
        assert given.score(X) >= (-model.thetas_[0] * d).mean() - model.log_normalisers_[0] - 1e-12


def test_density_integrates_to_one():
    model = LovaszMallows().fit(planted(8.0, [2, 0, 1], 50))
    grid = np.stack(np.meshgrid(*[(np.arange(60) + 0.5) / 60] * 3), axis=-1).reshape(-1, 3)
    assert np.isclose(np.exp(model.score_samples(grid)).mean(), 1.0, rtol=2e-3)
    assert np.isclose(model.log_likelihood(grid), model.score(grid) * len(grid))


def test_samples_follow_the_model():
    model = LovaszMallows(theta=[4.0, 12.0], n_components=2, random_state=0)
    X = np.concatenate([planted(4.0, [0, 1, 2, 3], 200), planted(12.0, [3, 2, 1, 0], 100, 1)])
    model.fit(X)
    draws = model.sample(4000, random_state=0)
    assert draws.shape == (4000, 4)
    parts = np.bincount(model.predict(draws), minlength=2) / 4000
    np.testing.assert_allclose(parts, model.weights_, atol=0.05)
    # the cross-entropy of a model with its own samples is its entropy, which fresh samples confirm
    again = model.score_samples(model.sample(4000, random_state=1))
    own = model.score_samples(draws)
    assert abs(own.mean() - again.mean()) < 4 * np.sqrt((own.var() + again.var()) / 4000)
    chain = model.score_samples(model.sample(2000, random_state=0, method="chain"))
    assert abs(own.mean() - chain.mean()) < 4.5 * np.sqrt(own.var() / 4000 + chain.var() / 2000)


def mixed(seed=0):
    parts = [
        planted(2.0, [0, 1, 2, 3, 4, 5], 120, seed, Product()),
        planted(3.0, [5, 3, 1, 0, 2, 4], 80, seed + 1, Product()),
        planted(1.2, [2, 4, 5, 1, 3, 0], 100, seed + 2, Product()),
    ]
    return np.concatenate(parts), np.repeat([0, 1, 2], [120, 80, 100])


@pytest.mark.slow
def test_mixture_recovers_planted_components():
    X, label = mixed()
    model = LovaszMallows(Product(), n_components=3, random_state=0).fit(X)
    assert model.converged_
    found = np.argsort(model.orders_[:, 0])  # the planted orders start with items 0, 2 and 5
    assert model.orders_[found].tolist() == [[0, 1, 2, 3, 4, 5], [2, 4, 5, 1, 3, 0], [5, 3, 1, 0, 2, 4]]
    assert (np.abs(model.thetas_[found] - [2.0, 1.2, 3.0]) < 4 * model.thetas_se_[found]).all()
    assert (np.abs(model.weights_[found] - [0.4, 1 / 3, 0.8 / 3]) < 0.1).all()
    assert adjusted_rand_score(label, model.predict(X)) > 0.8
    np.testing.assert_allclose(model.predict_proba(X), model.responsibilities_)
    np.testing.assert_allclose(model.responsibilities_.sum(axis=1), 1)
    np.testing.assert_allclose(model.weights_, model.responsibilities_.mean(axis=0), atol=1e-2)
    assert np.isclose(model.log_likelihood_, model.log_likelihood(X))
    bics = [LovaszMallows(Product(), k, random_state=0, n_init=2).fit(X).bic(X) for k in (1, 2, 3, 4)]
    assert np.argmin(bics) == 2


@pytest.mark.slow
@pytest.mark.parametrize("f", ["sqrt", Top(2), Chain()], ids=["sqrt", "top", "chain"])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_likelihood_never_falls(f, seed):
    X = np.random.default_rng(seed).random((40, 4))
    normalisers = Normalisers(LovaszBregman(f), 4)
    start = spread_start(X, 3, normalisers.divergence, generator(seed))
    run = expectation_maximisation(X, start, normalisers, max_iter=40, tol=0.0)
    assert len(run.history) > 3
    assert (np.diff(run.history) >= -1e-9 * abs(run.history[-1])).all()


def test_best_component_is_never_worse_than_the_old_one():
    # with the chain the order of the mean need not have the largest likelihood
    normalisers = Normalisers(LovaszBregman(Chain()), 4)
    gains = []
    for seed in range(6):
        X = np.random.default_rng(seed).random((6, 4))

        def likelihood(component, X=X):
            d = normalisers.divergence.divergence(X, component.order)
            return -component.theta * d.mean() - normalisers.of(component.order).at(component.theta).log_z

        found = best_component(X, np.ones(6), normalisers, None, None)
        for order in permutations(range(4)):
            old = found._replace(order=np.array(order))
            new = best_component(X, np.ones(6), normalisers, None, old)
            assert likelihood(new) >= max(likelihood(old), likelihood(found)) - 1e-12
            gains.append(likelihood(new) - likelihood(found))
        assert best_component(X, np.zeros(6), normalisers, None, found) is found
    assert max(gains) > 1e-3


def test_monte_carlo_normaliser():
    X = planted(10.0, np.arange(8), 300)
    exact, estimate = LovaszMallows().fit(X), LovaszMallows(normaliser="monte_carlo").fit(X)
    assert exact.log_normalisers_se_[0] == 0
    assert estimate.log_normalisers_se_[0] > 0
    assert abs(estimate.log_normalisers_[0] - exact.log_normalisers_[0]) < 0.15
    assert np.isclose(estimate.thetas_[0], exact.thetas_[0], rtol=0.05)


@pytest.mark.slow
def test_more_items_than_the_exact_sum_can_take():
    order = np.random.default_rng(0).permutation(24)
    X = (
        LovaszMallows(theta=30.0, n_particles=8)
        .fit(np.argsort(order)[None, ::-1] / 24.0 * np.ones((2, 1)))
        .sample(60, 0)
    )
    model = LovaszMallows(n_particles=16).fit(X)
    assert model.log_normalisers_se_[0] > 0
    assert np.isclose(model.thetas_[0], 30.0, rtol=0.15)
    with pytest.raises(InputError, match="24 items are too many for the exact sum"):
        LovaszMallows(normaliser="exact").fit(X)
    with pytest.raises(InputError, match="use at most 20 items, or a function of the size"):
        LovaszMallows("chain").fit(X)


def test_theta_at_its_ends_is_reported():
    agree = np.sort(np.random.default_rng(0).random((20, 4)), axis=1)[:, ::-1]
    with pytest.warns(ConvergenceWarning, match="all voters agree with their order"):
        model = LovaszMallows().fit(agree)
    assert np.isclose(model.score(agree), np.log(24), atol=1e-3)
    corners = np.repeat(np.eye(4), 5, axis=0)  # farther from every order than random scores
    with pytest.warns(ConvergenceWarning, match="theta is 0"):
        model = LovaszMallows().fit(corners)
    assert model.thetas_[0] == 0
    assert model.score(corners) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("max_iter", [1, 3])
def test_max_iter_is_the_most_steps(max_iter):
    X = mixed()[0]
    model = LovaszMallows("product", 2, max_iter=max_iter, n_init=1, random_state=0, tol=0)
    with pytest.warns(ConvergenceWarning, match=f"not converged after {max_iter} steps"):
        model.fit(X)
    assert model.n_iter_ == len(model.history_) == max_iter
    # step by step from the same start: the history is the likelihood after each step
    normalisers = Normalisers(LovaszBregman("product"), 6)
    shares = spread_start(X, 2, normalisers.divergence, generator(0))
    components = [None, None]
    for value in model.history_:
        components = [
            best_component(X, r, normalisers, None, c) for r, c in zip(shares.T, components, strict=True)
        ]
        joint = np.stack(
            [
                np.log(r.mean())
                - theta * normalisers.divergence.divergence(X, order)
                - normalisers.of(order).at(theta).log_z
                for r, (order, theta) in zip(shares.T, components, strict=True)
            ],
            axis=1,
        )
        assert value == pytest.approx(logsumexp(joint, axis=1).sum(), rel=1e-12)
        shares = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))


def test_one_component_is_fitted_in_one_step():
    model = LovaszMallows(max_iter=1).fit(planted(6.0, [1, 3, 0, 2], 30))
    assert model.converged_
    assert model.n_iter_ == 1


def test_posterior_of_the_model():
    X = planted(6.0, [1, 3, 0, 2, 4], 30)
    model = LovaszMallows().fit(X)
    posterior = model.posterior(X)
    assert posterior.mode.tolist() == model.orders_[0].tolist()
    # Bayes with a uniform prior: the likelihoods of the orders, whose normalisers cancel
    lb = LovaszBregman("sqrt")
    logs = -model.thetas_[0] * lb.divergence(X, ORDERS).sum(axis=0)
    np.testing.assert_allclose(posterior.probability(ORDERS), np.exp(logs - logsumexp(logs)), rtol=1e-8)
    unfitted = LovaszMallows()
    assert unfitted.posterior(X, theta=np.linspace(0, 2, 30)).probability(ORDERS).sum() == pytest.approx(1)
    with pytest.raises(InputError, match="between 0 and 1"):
        unfitted.posterior(X + 1, theta=1.0)
    with pytest.raises(NotFittedError):
        unfitted.posterior(X)
    two = LovaszMallows(n_components=2, random_state=0, theta=5.0).fit(X)
    with pytest.raises(InputError, match="a mixture has no single theta: pass `theta=`"):
        two.posterior(X)


@pytest.mark.parametrize(
    ("parameters", "X", "message"),
    [
        ({}, X5 * 3, r"scores must lie between 0 and 1, got 2.85: scale them"),
        ({}, X5 - 0.5, r"scores must lie between 0 and 1, got -0.4: scale them"),
        ({}, np.where(X5 > 0.8, np.nan, X5), "X has missing scores"),
        ({}, X5[:, :1], "an order needs at least two items"),
        ({"theta": -2.0}, X5, "theta"),
        ({"theta": [1.0, 2.0]}, X5, "`theta` must be a number or one for each of the 1 components"),
        ({"n_components": 4}, X5, "3 voters are too few for `n_components=4`"),
        ({"n_components": 0}, X5, "n_components"),
        ({"tol": -1}, X5, "tol"),
        ({"normaliser": "quick"}, X5, "normaliser"),
        ({"f": "cube"}, X5, "unknown set function 'cube'"),
    ],
    ids=[
        "large",
        "negative",
        "missing",
        "one_item",
        "theta",
        "thetas",
        "many",
        "none",
        "tol",
        "normaliser",
        "f",
    ],
)
def test_bad_input(parameters, X, message):
    with pytest.raises((InputError, InvalidParameterError), match=message) as error:
        LovaszMallows(**parameters).fit(X)
    assert "\n" not in str(error.value)


def test_estimator_manners():
    X, _ = mixed()
    model = LovaszMallows("product", 2, random_state=3, n_init=2)
    again = clone(model).fit(X)
    model.fit(X)
    assert (model.orders_ == again.orders_).all()
    assert (model.thetas_ == again.thetas_).all()
    assert model.n_features_in_ == 6
    assert model.n_iter_ == len(model.history_)
    with pytest.raises(ValueError, match="5 features"):
        model.predict(X[:, :5])
    with pytest.raises(NotFittedError):
        LovaszMallows().sample(3)
    with pytest.raises(InputError, match="`n_samples` must be a whole number of at least 1, got 0"):
        model.sample(0)


# ---------------------------------------------------------------- other boxes


@pytest.mark.parametrize("n_components", [1, 2])
def test_a_box_is_a_change_of_units(n_components):
    U = np.random.default_rng(3).uniform(size=(40, 4))
    stars = 1 + 4 * U
    unit = LovaszMallows(n_components=n_components, n_init=2, random_state=0).fit(U)
    model = LovaszMallows(n_components=n_components, n_init=2, random_state=0, box=(1, 5)).fit(stars)
    np.testing.assert_array_equal(model.orders_, unit.orders_)
    np.testing.assert_allclose(model.thetas_, unit.thetas_, rtol=1e-8)
    np.testing.assert_allclose(model.predict_proba(stars), unit.predict_proba(U), rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.score_samples(stars), unit.score_samples(U) - 4 * np.log(4), rtol=1e-8)
    assert model.log_likelihood_ == pytest.approx(model.log_likelihood(stars), rel=1e-9)
    drawn = model.sample(50, random_state=1)
    np.testing.assert_allclose(drawn, 1 + 4 * unit.sample(50, random_state=1), rtol=1e-6)


def test_the_posterior_of_a_box_is_that_of_its_units():
    expected = OrderPosterior(X5, THETA, "sqrt").probability(ORDERS)
    for model in (LovaszMallows(box=(-1, 9)), LovaszMallows(box=(-1, 9)).fit(10 * X5 - 1)):
        np.testing.assert_allclose(
            model.posterior(10 * X5 - 1, theta=THETA).probability(ORDERS), expected, rtol=1e-10
        )


@pytest.mark.parametrize("box", [(1, 0), (0, 0), (0, np.inf), (np.nan, 1), 3, ("a", "b"), (0, 1, 2), None])
def test_bad_boxes(box):
    with pytest.raises(ValueError, match="box"):
        LovaszMallows(box=box).fit(X5)


boxed = st.lists(
    st.lists(st.integers(0, 64).map(lambda x: x / 64), min_size=3, max_size=3), min_size=2, max_size=6
).map(np.array)


@pytest.mark.parametrize("name", [name for name, f in FUNCTIONS.items() if is_by_size(f)])
@settings(max_examples=4)
@given(X=boxed, theta=st.sampled_from([0.5, 3.0, 20.0]), data=st.data())
def test_models_of_scores(name, X, theta, data):
    f = FUNCTIONS[name]
    assume(len(np.unique(X.sum(axis=0))) == 3)
    place = np.array(data.draw(st.permutations(range(3))))
    moved = np.empty_like(X)
    moved[:, place] = X
    model, other = (LovaszMallows(f, theta=theta).fit(each) for each in (X, moved))
    assert other.orders_.tolist() == place[model.orders_].tolist()
    assert other.log_likelihood_ == pytest.approx(model.log_likelihood_)
    divergence = LovaszBregman(f).divergence(X, model.orders_[0])
    assert model.score_samples(X) == pytest.approx(-theta * divergence - model.log_normalisers_[0])
    drawn = model.sample(5, random_state=1)
    assert (drawn == model.sample(5, random_state=1)).all()
    assert ((drawn >= 0) & (drawn <= 1)).all()
    # log Z decreases from 0, ever more slowly
    logs = [LovaszMallows(f, theta=each).fit(X).log_normalisers_[0] for each in (0.0, theta / 2, theta)]
    assert logs[0] == pytest.approx(0, abs=1e-12)
    assert logs[0] >= logs[1] >= logs[2]
    assert logs[0] + logs[2] >= 2 * logs[1] - 1e-12
