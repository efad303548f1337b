"""Rows stored as positions between knots give the same numbers as the matrix they represent."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from apexrank.objectives import Push
from apexrank.preprocessing.ramps import knots_of, learn_basis
from apexrank.problem import Problem, ramps
from apexrank.problem.ramps import RampDesign, RampRows, Side
from tests.oracles import numerical_gradient


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def make_basis(rng, n=200):
    """Numbers with missing values, few values, codes of levels and a constant, and two pairs of them."""
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 4, n), rng.integers(0, 3, n), np.full(n, 2.0)])
    X[rng.random(n) < 0.2, 0] = np.nan
    basis = learn_basis(X, None, 7, {2: ["a", "b", "c"]})
    knots = [(0, basis.knots[0][::2]), (1, basis.knots[1]), (2, basis.knots[2]), (0, basis.knots[0][::3])]
    sides = [Side(j, own, rng.random(len(own)) + 0.1, j == 2) for j, own in knots]
    basis = replace(basis, sides=sides, pairs=[(0, 1), (1, 2), (3, 2)])
    return X, basis.with_strength(np.exp(rng.normal(size=basis.n_terms)))


def hats(x, knots):
    """Weight of each knot in a value, by interpolation of one function at a time; all 0 for a missing value."""
    return np.nan_to_num([np.interp(x, knots, row) for row in np.eye(len(knots))])


def dense_by_formula(X, basis):
    """The matrix by definition: ramps minus their values at the median, levels, missing values, and pairs.

    Each is divided by the root of its term's strength.
    """
    columns, d, unit = [], len(basis.knots), 1 / np.sqrt(basis.strength)
    for j, knots in enumerate(basis.knots):
        x, own = X[:, j], unit[j] if len(knots) > 2 else unit[d]
        ramps = len(knots) - 1
        if basis.levels[j]:
            columns += [own * np.where(np.isnan(x), 0, x == level) for level in knots]
        for low, high in pairwise(knots) if not basis.levels[j] else ():
            ramp = np.clip((x - low) / (high - low), 0, 1)
            middle = np.clip((knots[basis.middle[j]] - low) / (high - low), 0, 1)
            columns.append(own * np.where(np.isnan(x), 0, ramp - middle) / np.sqrt(ramps))
        if basis.missing[j]:
            columns.append(unit[d + 1] * np.isnan(x))
    for q, pair in enumerate(basis.pairs):
        one, two = (hats(X[:, side.column], side.knots) for side in (basis.sides[a] for a in pair))
        both = np.einsum("an,bn->nab", one, two).reshape(len(X), -1)
        columns += list((both @ basis.blocks[d + q]).T)
    return np.column_stack(columns)


def test_scores_products_and_rows_are_those_of_the_matrix(rng):
    X, basis = make_basis(rng)
    expected, rows = dense_by_formula(X, basis), RampRows(X, basis)
    design, (n, d) = RampDesign(rows), rows.shape
    assert expected.shape == (n, d)
    np.testing.assert_allclose(rows.dense(slice(None)), expected, atol=1e-14)
    w, r, weight = rng.normal(size=d), rng.normal(size=n), rng.random(n)
    np.testing.assert_allclose(design.scores(w), expected @ w, atol=1e-12)
    np.testing.assert_allclose(design.pull_back(r), expected.T @ r, atol=1e-12)
    np.testing.assert_allclose(design.column(3), expected[:, 3], atol=1e-14)
    centre, U = rng.normal(size=d), rng.normal(size=(n, 2))
    gram, V = design.curvature(centre, weight, U)
    Z = expected - centre
    np.testing.assert_allclose(gram, Z.T @ (weight[:, None] * Z), atol=1e-10)
    np.testing.assert_allclose(V, Z.T @ U, atol=1e-10)


def test_products_with_sparse_columns_are_those_of_the_matrix_in_any_chunks(rng, monkeypatch):
    X, basis = make_basis(rng)
    design = RampDesign(RampRows(X, basis))
    n, centre = len(X), rng.normal(size=design.n_features)
    U = sparse.csr_array((rng.normal(size=n), (np.arange(n), rng.integers(n // 3, size=n))))
    expected = (dense_by_formula(X, basis) - centre).T @ U.toarray()
    for rows in (7, n, 4096):
        monkeypatch.setattr(ramps, "CHUNK", rows)
        np.testing.assert_allclose(design.curvature(centre, np.ones(n), U)[1], expected, atol=1e-10)


def test_threads_and_chunks_do_not_change_a_bit(rng):
    X = rng.normal(size=(20_000, 12))
    rows = RampRows(X, learn_basis(X, None, 9, {}))
    v, r = rng.normal(size=int(rows.basis.starts[-1]) + 1), rng.normal(size=len(X))
    found = []
    for threads in (1, 2, 5):
        rows.threads = threads
        found.append([rows.gather(v).tobytes(), rows.scatter(r).tobytes(), rows.gram(r**2).tobytes()])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("p", [1.0, 8.0])
def test_the_problem_has_its_derivatives(rng, p):
    X, basis = make_basis(rng)
    positive = rng.random(len(X)) < 0.3
    problem = Problem(RampRows(X, basis), Push(positive, price="power" if p > 1 else "identity"), 0.1)
    w = 0.3 * rng.normal(size=problem.n_features)
    gradient = numerical_gradient(lambda u: problem.value_and_grad(u)[0], w)
    np.testing.assert_allclose(problem.value_and_grad(w)[1], gradient, atol=1e-7)
    rows = [numerical_gradient(lambda u, j=j: problem.value_and_grad(u)[1][j], w) for j in range(len(w))]
    np.testing.assert_allclose(problem.hessian(w), rows, atol=1e-6)


def test_functions_of_pairs_are_the_others_with_unit_ridge(rng):
    """They have no part that depends on one column alone, and their coefficients have the ridge of their values."""
    _, basis = make_basis(rng)
    d = len(basis.knots)
    for q, (pair, block) in enumerate(zip(basis.pairs, basis.blocks[d:], strict=True)):
        one, two = (basis.sides[a] for a in pair)
        grids = block.T.reshape(-1, len(one.knots), len(two.knots))
        assert len(grids) == (len(one.knots) - 1) * (len(two.knots) - 1)
        np.testing.assert_allclose(np.einsum("cab,a->cb", grids, one.weight), 0, atol=1e-12)
        np.testing.assert_allclose(np.einsum("cab,b->ca", grids, two.weight), 0, atol=1e-12)
        w = rng.normal(size=len(grids))
        values = np.einsum("c,cab->ab", w, grids)
        rough = [
            np.sum(values**2 if side.levels else np.diff(values, axis=k) ** 2)
            for k, side in enumerate((one, two))
        ]
        ridge = basis.strength[d + 2 + q] * (sum(rough) + 0.1 * np.sum(values**2))
        assert ridge == pytest.approx(w @ w)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-5, 30), min_size=1, max_size=40), st.integers(2, 9), st.data())
def test_knots_of_weighted_values_are_those_of_repeated_ones(values, most, data):
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(values), max_size=len(values))))
    values = np.array(values, dtype=float)
    found, middle = knots_of(values, weight.astype(float), most)
    repeated, same = knots_of(np.repeat(values, weight), np.ones(weight.sum()), most)
    np.testing.assert_array_equal(found, repeated)
    assert middle == same
    assert (np.diff(found) > 0).all()
    counted = np.unique(np.repeat(values, weight))
    if len(counted):
        assert set(found) <= set(counted)
        assert (found[0], found[-1]) == (counted[0], counted[-1])
        assert len(counted) > most or len(found) == len(counted)
