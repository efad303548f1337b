"""Set functions against their definitions: explicit subsets, all orders, all tied orders."""

import copy
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations
from math import log, sqrt

import numpy as np
import pytest
from scipy import sparse

from apexrank.errors import InputError
from apexrank.kernels.tv import total_variation
from apexrank.submodular import (
    SET_FUNCTIONS,
    Cardinality,
    Chain,
    Custom,
    Cut,
    Indicator,
    Log,
    Modular,
    Product,
    SetFunction,
    Sqrt,
    Top,
    prox_extension,
    set_function,
)

GAINS = [2.0, 0.5, 0.5, -0.25, -1.0, -3.0]  # any non-increasing numbers
TOPICS = ["ab", "a", "bcd", "de", "e", "abe"]


def weights(n, one_way=False, seed=0):
    rng = np.random.default_rng(seed)
    d = np.round(rng.uniform(0, 1, (n, n)), 3) * (rng.uniform(size=(n, n)) < 0.7)
    np.fill_diagonal(d, 0)
    return d if one_way else d + d.T


def cut_value(d, X):
    return sum(d[i, j] for i in X for j in range(len(d)) if j not in X)


def covered(X):
    return len(set("".join(TOPICS[i] for i in X)))


def steps(X, n):
    return sum((i in X) != (i + 1 in X) for i in range(n - 1))


# name → (the atom for n items, its definition on a set X of n items)
ATOMS = {
    "sqrt": (lambda n: Sqrt(), lambda X, n: sqrt(len(X))),
    "sqrt of 2": (lambda n: Sqrt(m=2), lambda X, n: sqrt(min(len(X), 2))),
    "log": (lambda n: Log(), lambda X, n: log(1 + len(X))),
    "top": (lambda n: Top(m=3), lambda X, n: min(len(X), 3)),
    "gains": (lambda n: Cardinality(GAINS[:n]), lambda X, n: sum(GAINS[: len(X)])),
    "gains of 2": (lambda n: Cardinality([3, 1, 0.5], m=2), lambda X, n: sum([3, 1][: len(X)])),
    "callable": (lambda n: Cardinality(lambda k: -((k - 2) ** 2)), lambda X, n: 4 - (len(X) - 2) ** 2),
    "product": (lambda n: Product(), lambda X, n: len(X) * (n - len(X))),
    "indicator": (lambda n: Indicator(), lambda X, n: float(1 <= len(X) <= n - 1)),
    "chain": (lambda n: Chain(), lambda X, n: steps(X, n)),
    "cut": (lambda n: Cut(weights(n)), lambda X, n: cut_value(weights(n), X)),
    "one-way cut": (lambda n: Cut(weights(n, True)), lambda X, n: cut_value(weights(n, True), X)),
    "sparse cut": (
        lambda n: Cut(sparse.csc_matrix(weights(n, True))),
        lambda X, n: cut_value(weights(n, True), X),
    ),
    "modular": (lambda n: Modular(GAINS[::-1][:n]), lambda X, n: sum(GAINS[::-1][i] for i in X)),
    "custom": (lambda n: Custom(covered, n), lambda X, n: covered(X)),
    "custom from 7": (lambda n: Custom(lambda X: covered(X) + 7, n), lambda X, n: covered(X)),
    "sum": (lambda n: 2 * Sqrt() + Chain() * 0.5, lambda X, n: 2 * sqrt(len(X)) + 0.5 * steps(X, n)),
    "sum of sums": (
        lambda n: 3 * (Cut(weights(n)) + 2 * Custom(covered, n)) + Modular(GAINS[:n]),
        lambda X, n: 3 * cut_value(weights(n), X) + 6 * covered(X) + sum(GAINS[i] for i in X),
    ),
}
each_atom = pytest.mark.parametrize("name", ATOMS)
each_n = pytest.mark.parametrize("n", [1, 2, 3, 6])


def subsets(n):
    return [frozenset(X) for k in range(n + 1) for X in combinations(range(n), k)]


def gains_by_definition(value, order, n):
    return [value(set(order[: j + 1]), n) - value(set(order[:j]), n) for j in range(n)]


def by_item(gains, order):
    h = np.empty(len(order))
    h[list(order)] = gains
    return h


def tied_orders(y):
    return [s for s in permutations(range(len(y))) if all(y[a] >= y[b] for a, b in pairwise(s))]


@each_atom
@each_n
def test_gains_of_all_orders(name, n):
    make, value = ATOMS[name]
    orders = list(permutations(range(n)))
    expected = [gains_by_definition(value, order, n) for order in orders]
    np.testing.assert_allclose(make(n).gains(orders), expected, rtol=0, atol=1e-12)


@each_atom
@each_n
def test_values_of_all_subsets(name, n):
    make, value = ATOMS[name]
    f = make(n)
    for X in subsets(n):
        mask = [i in X for i in range(n)]
        assert f(mask) == pytest.approx(value(X, n), abs=1e-12)
        if f.n is not None:
            assert f(sorted(X)) == f(X) == f(mask)


@each_atom
@pytest.mark.parametrize("n", [1, 2, 5])
def test_ties_are_means_over_all_tied_orders(name, n):
    make, value = ATOMS[name]
    ys = np.random.default_rng(n).integers(0, 3, (8, n)).astype(float)
    ys[0] = 7.0  # all tied
    expected = [
        np.mean([by_item(gains_by_definition(value, s, n), s) for s in tied_orders(y)], axis=0) for y in ys
    ]
    f = make(n)
    np.testing.assert_allclose(f.subgradient(ys), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(f.subgradient(ys[3]), expected[3], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("f", "monotone"),
    [
        (Sqrt(), True),
        (Top(m=2), True),
        (Sqrt() + 2 * Log(), True),
        (Cardinality([2, 1, 0]), True),
        (Cardinality([2, 1, -1]), False),
        (Cardinality(np.sqrt), False),  # not known without n
        (Cardinality(np.sqrt, m=3), True),
        (Product(), False),
        (Indicator(), False),
        (Chain(), False),
        (Cut(weights(4)), False),
        (Cut(weights(4)) + Modular(weights(4).sum(axis=0)), True),
        (Sqrt() + Modular([0, 0, -1]), False),
        (Custom(covered, 6), True),
    ],
)
def test_monotone(f, monotone):
    assert f.monotone is monotone


def test_leading_dimensions_are_kept():
    orders = np.array([list(permutations(range(4)))[:6]] * 2).reshape(2, 2, 3, 4)
    y = np.random.default_rng(0).integers(0, 3, orders.shape)
    for make, _ in ATOMS.values():
        f = make(4)
        assert f.gains(orders).shape == f.subgradient(y).shape == orders.shape
        assert f.extension(y).shape == orders.shape[:-1]
        np.testing.assert_array_equal(f.gains(orders)[1, 0, 2], f.gains(orders[1, 0, 2]))
        np.testing.assert_allclose(f.subgradient(y)[1, 1, 0], f.subgradient(y[1, 1, 0]), rtol=0, atol=1e-15)
        f.gains(orders)[:] = 0.0  # the caller's to write on
        assert f.gains(orders[0, 0, 0]).any()


@pytest.mark.parametrize("name", sorted(SET_FUNCTIONS.members))
def test_names(name):
    arguments = {"top": {"m": 2}, "cut": {"weights": weights(4)}, "cardinality": {"g": [3, 2, 1, 0]}}.get(
        name, {}
    )
    f = set_function(name, **arguments)
    assert type(f) is SET_FUNCTIONS.members[name]
    assert set_function(f) is f
    np.testing.assert_array_equal(copy.deepcopy(f).gains([1, 0, 3, 2]), f.gains([1, 0, 3, 2]))


def test_named_g_is_the_named_atom():
    order = [2, 0, 1]
    np.testing.assert_array_equal(Cardinality("sqrt").gains(order), Sqrt().gains(order))
    np.testing.assert_array_equal(Cardinality("log", m=2).gains(order), Log(m=2).gains(order))
    np.testing.assert_array_equal(Cardinality("linear", m=1).gains(order), Top(m=1).gains(order))
    assert Cardinality([2, 1]) == Cardinality(np.array([2.0, 1.0]))
    assert np.float64(2) * Sqrt() == Sqrt() * 2 == 2 * Sqrt()
    assert repr(Top(m=2)) == "Top(m=2)"


def test_gains_of_long_lists_keep_their_digits():
    n = 2_000_000
    for f in (Sqrt(), Log()):
        deltas = f.deltas(n)
        assert (np.diff(deltas) <= 0).all()
        assert deltas.sum() == pytest.approx(sqrt(n) if f == Sqrt() else log(n + 1), rel=1e-12)
    assert Sqrt().deltas(n)[-1] == pytest.approx(0.5 / sqrt(n - 0.5), rel=1e-12)


def test_rounding_of_a_users_g_is_repaired():
    def g(k):
        return np.sqrt(k + 1e12)  # so flat that differences of its rounded values are not monotone

    assert (np.diff(np.diff(g(np.arange(1001.0)))) > 0).any()
    assert (np.diff(Cardinality(g).deltas(1000)) <= 0).all()


def test_a_cut_ignores_its_diagonal_and_adds_repeated_links():
    d = weights(4, one_way=True)
    with_diagonal = d + np.diag([5.0, -1.0, np.nan, 2.0])
    order = [3, 1, 0, 2]
    np.testing.assert_array_equal(Cut(with_diagonal).gains(order), Cut(d).gains(order))
    twice = sparse.coo_array((np.r_[1.0, 2.0], (np.r_[0, 0], np.r_[1, 1])), shape=(2, 2))
    assert Cut(twice)([0]) == 3.0
    assert Cut(twice)([1]) == 0.0


def test_a_large_sparse_cut_is_fast_enough_to_compute():
    n = 20_000  # a dense matrix would take 3.2 GB
    ring = sparse.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    path = sparse.csr_array((np.ones(n - 1), (np.arange(n - 1), np.arange(1, n))), shape=(n, n))
    order = np.random.default_rng(0).permutation(n)
    np.testing.assert_array_equal(Cut(path + path.T).gains(order), Chain().gains(order))
    assert Cut(ring).gains(order).sum() == 0.0


def test_many_items_of_a_users_function_are_believed():
    f = Custom(lambda X: min(len(X), 5), 14)
    order = np.random.default_rng(1).permutation(14)
    np.testing.assert_array_equal(f.gains([order, order[::-1]]), Top(m=5).gains([order, order[::-1]]))
    y = np.r_[np.arange(9.0), np.full(5, 20.0)]
    np.testing.assert_allclose(f.subgradient(y), Top(m=5).subgradient(y), rtol=0, atol=1e-12)
    assert f(range(3)) == 3.0
    with pytest.raises(
        InputError, match=r"14 items are tied: orders of at most 12 are averaged, break the ties"
    ):
        f.subgradient(np.zeros(14))
    assert Custom(lambda X: len(X) ** 2, 13).n == 13


def test_an_atom_needs_only_its_gains():
    @dataclass(frozen=True)
    class HalfAtThird(SetFunction):
        def _gains(self, orders):
            return np.where(np.arange(orders.shape[-1]) < 2, 1.0, 0.5) * (orders + 1 > 0)

    f, same = HalfAtThird(), Cardinality([1, 1, 0.5, 0.5])
    y = [1.0, 1.0, 1.0, 0.0]
    np.testing.assert_allclose(f.subgradient(y), same.subgradient(y), rtol=0, atol=1e-15)
    assert f([True, False, True, True]) == same([0, 2, 3]) == 2.5
    assert f.is_monotone(4)
    with pytest.raises(NotImplementedError):
        SetFunction().gains([0, 1])


def test_sum_of_a_list():
    total = sum([Sqrt(), Log(), 2 * Top(1)])
    np.testing.assert_array_equal(total.gains([0, 1, 2]), (Sqrt() + Log() + 2 * Top(1)).gains([0, 1, 2]))
    assert sum([Sqrt()]) == Sqrt()
    with pytest.raises(TypeError):
        sum([Sqrt()], 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: set_function("sqr"),
            r"unknown set function 'sqr': did you mean 'sqrt'\? Use one of sqrt",
        ),
        (lambda: set_function("product", m=2), "the set function 'product' takes no 'm': it takes nothing"),
        (lambda: set_function("sqrt", g=np.log), "the set function 'sqrt' takes no 'g': it takes m"),
        (lambda: set_function(Sqrt(), m=2), "`m=` is for a set function given by its name"),
        (
            lambda: set_function("sqr", m=2),
            r"unknown set function 'sqr': did you mean 'sqrt'\? Use one of sqrt",
        ),
        (lambda: set_function("cut"), "the set function 'cut' needs `weights=`"),
        (lambda: set_function("top"), "the set function 'top' needs `m=`"),
        (lambda: Top(m=0), "`m` must be a whole number of at least 1, got 0"),
        (lambda: Sqrt(m=1.5), "`m` must be a whole number of at least 1, got 1.5"),
        (
            lambda: Cardinality("cube"),
            "unknown `g` 'cube': use one of sqrt, log, linear, a function, or gains",
        ),
        (lambda: Cardinality([3, 1, 2]), "gains must not increase: 1.0 at rank 2, 2.0 at rank 3"),
        (
            lambda: Cardinality(np.square).gains([0, 1, 2]),
            "gains must not increase: 1.0 at rank 1, 3.0 at rank 2",
        ),
        (lambda: Cardinality(lambda k: 1.0).gains([0, 1]), "`g` must give a finite number for each"),
        (
            lambda: Cardinality(lambda k: np.full_like(k, np.inf)).gains([0]),
            "`g` must give a finite number for each",
        ),
        (lambda: Cardinality([1.0, np.nan]), "gains must be finite numbers, got nan"),
        (lambda: Cardinality([[1.0]]), "gains must be a list of numbers"),
        (lambda: Cardinality([2, 1], m=3), "at least m of them"),
        (
            lambda: Cardinality([1, -1, -2], m=2).gains([0, 1, 2]),
            "the first gains must not be negative, got -1.0",
        ),
        (lambda: Cardinality([2, 1]).gains([0, 1, 2]), "an order must list all 2 items, got 3"),
        (lambda: Cut([[0, -1], [0, 0]]), "weights must be finite and not negative, got -1.0"),
        (lambda: Cut([[0, np.nan], [0, 0]]), "weights must be finite and not negative, got nan"),
        (
            lambda: Cut(np.ones((2, 3))),
            r"weights must be a square matrix of items × items, got shape \(2, 3\)",
        ),
        (lambda: Cut([["a"]]), "weights must be a square matrix of numbers"),
        (lambda: Cut(np.ones((2, 2))).subgradient([1.0]), "one number for each of 2 items, got 1"),
        (lambda: Modular([[1.0]]), "weights must be one number per item"),
        (lambda: Modular([np.inf]), "weights must be finite numbers, got inf"),
        (lambda: Custom(len, 0), "`n` must be a whole number of at least 1, got 0"),
        (lambda: Custom(7, 2), "function must take a frozenset of items and give a number"),
        (lambda: Custom(lambda X: np.nan, 2), r"must give finite numbers, it does not for \{\}"),
        (lambda: Custom(lambda X: "x" if 1 in X else 0, 2), r"it does not for \{1\}"),
        (
            lambda: Custom(lambda X: float({0, 2} <= X), 3),
            r"not submodular: f\(\{0\}\) \+ f\(\{2\}\) = 0.0 is less than f\(\{0, 2\}\) \+ f\(\{\}\) = 1.0",
        ),
        (lambda: Sqrt() * -1, "multiplied by a finite number ≥ 0, got -1"),
        (lambda: np.inf * Sqrt(), "multiplied by a finite number ≥ 0, got inf"),
        (lambda: Modular([1, 2]) + Cut(np.ones((3, 3))), "set functions of 2 and of 3 items cannot be added"),
        (lambda: Sqrt().gains([0, 1, 1]), "each of the items 0 … 2 once: item 1 occurs twice"),
        (lambda: Sqrt().gains([[0, 1], [1, 1]]), "item 1 occurs twice"),
        (lambda: Sqrt().gains([1, 2, 3]), "there is no item 3"),
        (lambda: Sqrt().gains([0, -1]), "there is no item -1"),
        (lambda: Sqrt().gains([0.0, 1.0]), "an order must be a list of whole numbers"),
        (lambda: Sqrt().gains([True, False]), "an order must be a list of whole numbers"),
        (lambda: Sqrt().gains([]), "an order must be a list of whole numbers"),
        (lambda: Sqrt().gains([[0, 1], [0]]), "orders must have the same number of items each"),
        (lambda: Sqrt().subgradient([1.0, np.nan]), "scores must be finite numbers, got nan"),
        (lambda: Sqrt().subgradient(["a"]), "scores must be numbers"),
        (lambda: Sqrt().subgradient(3.0), "scores must hold one number per item"),
        (lambda: Sqrt()([0, 1]), "pass the subset as a mask"),
        (lambda: Modular([1, 2])([0, 0]), "a subset must be a list of different items"),
        (lambda: Modular([1, 2])([2]), r"items are numbered from 0 to 1, got \[2\]"),
        (lambda: Modular([1, 2])([True]), "the mask of a subset must have 2 entries, got 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_other_things_cannot_be_added_or_multiplied():
    for call in (lambda: Sqrt() + 1, lambda: Sqrt() * None, lambda: Sqrt() * Sqrt()):
        with pytest.raises(TypeError, match="unsupported operand"):
            call()


@pytest.mark.parametrize("t", [0.0, 1e-3, 0.3, 2.0, 1e4])
@pytest.mark.parametrize("n", [1, 2, 3, 40, 1000])
def test_total_variation_by_its_dual(n, t):
    # x solves it exactly where u = Σ_{j≤i}(x_j − y_j) has |u| ≤ t, ends at 0, and is ±t at the steps of x
    rng = np.random.default_rng(n)
    ys = np.stack([rng.normal(size=n), rng.integers(0, 3, n), np.cumsum(rng.normal(size=n))]) + 5.0
    xs = total_variation(ys, t)
    u = np.cumsum(xs - ys, axis=1)
    size = 1e-12 * n * (1 + t)
    assert np.abs(u).max() <= t + size
    np.testing.assert_allclose(u[:, -1], 0.0, atol=size)
    jump = np.diff(xs, axis=1)
    np.testing.assert_allclose(
        t * np.abs(jump), u[:, :-1] * jump, atol=size * (1 + np.abs(jump).max(initial=0.0))
    )
    np.testing.assert_array_equal(total_variation(ys[1], t), xs[1])


def test_total_variation_refuses_bad_input():
    for y in ([], [np.nan], np.ones((2, 2, 2))):
        with pytest.raises(InputError, match="y must be finite numbers"):
            total_variation(y, 1.0)
    with pytest.raises(InputError, match="`strength` must be a finite number"):
        total_variation([1.0], -1.0)


def test_decomposition_equals_the_fast_ways():
    # a cut that is a chain, and a user's function of the size, go the slow way
    rng = np.random.default_rng(5)
    v, h = rng.normal(size=(4, 7)), rng.normal(size=7)
    path = np.diag(np.ones(6), 1) + np.diag(np.ones(6), -1)
    shift = Modular(rng.normal(size=7))
    for slow, fast in (
        (Cut(path), Chain()),
        (Custom(lambda X: sqrt(len(X)), 7), Sqrt()),
        (2 * Cut(path) + shift, shift + 2 * Chain()),
        (Cut(np.ones((7, 7))) + 0.5 * shift, 0.5 * shift + Product()),
    ):
        for strength in (0.0, 0.2, 3.0):
            np.testing.assert_allclose(
                prox_extension(slow, v, strength, h), prox_extension(fast, v, strength, h), rtol=0, atol=1e-12
            )
