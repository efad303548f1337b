"""Projections onto the permutahedron against its inequalities, repeated entries and the conformance vectors."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apexrank.errors import InputError
from apexrank.kernels.permutahedron import Staircase, onto_permutahedron

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "projections.json").read_text())
SMALL = st.integers(-4, 4).map(lambda k: k / 2)  # many ties


def frank_wolfe_gap(z, y, v):
    """``max_{u in P(y)} <z − v, u − v>``, 0 exactly at the projection; the best u is y in the order of z − v."""
    u = np.empty(len(y))
    u[np.argsort(z - v)] = np.sort(y)
    return float((z - v) @ (u - v))


@pytest.mark.parametrize(
    "case", [c for c in VECTORS if "permutahedron" in c["what"]], ids=lambda c: len(c["theta"])
)
def test_conformance_vectors(case):
    found = onto_permutahedron(np.array(case["theta"]) / case["s"], case["y"]).values
    np.testing.assert_allclose(found, case["projection"], atol=2e-6)


@given(st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=12))
def test_small_integers(rows):
    z, y = np.array(rows).T
    v = onto_permutahedron(z, y).values
    assert frank_wolfe_gap(z, y, v) == pytest.approx(0, abs=1e-12)
    largest_sums = np.cumsum(np.sort(y)[::-1])  # v is majorised by y, which is equivalent to being in P(y)
    assert np.all(np.cumsum(np.sort(v)[::-1]) <= largest_sums + 1e-12)
    assert v.sum() == pytest.approx(y.sum(), abs=1e-12)


@given(st.integers(0, 10**6), st.integers(1, 300), st.floats(-3, 3))
def test_random_numbers(seed, n, log_size):
    rng = np.random.default_rng(seed)
    z, y = 10**log_size * rng.normal(size=n), rng.normal(size=n)
    v = onto_permutahedron(z, y).values
    assert frank_wolfe_gap(z, y, v) <= 1e-11 * max(1, 10**log_size) * n
    assert np.all(np.cumsum(np.sort(v)[::-1]) <= np.cumsum(np.sort(y)[::-1]) + 1e-11)


@given(st.lists(st.tuples(SMALL, SMALL, st.integers(1, 4)), min_size=1, max_size=10))
def test_weights_are_repetitions(rows):
    z, y, count = np.array(rows).T
    weighted = onto_permutahedron(z, y, weight=count).values
    repeated = onto_permutahedron(*(np.repeat(part, count.astype(int)) for part in (z, y))).values
    np.testing.assert_allclose(np.repeat(weighted, count.astype(int)), repeated, atol=1e-12)


@given(st.integers(0, 10**6), st.integers(1, 30))
def test_real_weights_are_repetitions_of_fractions(seed, n):
    """Weights k/7 are the same as k copies, whatever the unit of the weights is."""
    rng = np.random.default_rng(seed)
    z, y, count = rng.normal(size=n), rng.normal(size=n), rng.integers(1, 6, n)
    repeated = onto_permutahedron(np.repeat(z, count), np.repeat(y, count)).values
    weighted = onto_permutahedron(z, y, weight=count / 7).values
    np.testing.assert_allclose(np.repeat(weighted, count), repeated, atol=1e-11)


def test_a_row_alone_in_its_block_has_its_y_to_the_last_bit():
    y = np.array([0.1, 0.7, 0.3])
    for weight in (None, [3.0, 0.5, 0.1]):
        fit = onto_permutahedron([0.0, 3e15, 1e15], y, weight=weight)
        assert fit.values.tolist() == [0.1, 0.7, 0.3]
        assert len(set(fit.block.tolist())) == 3
    moved = onto_permutahedron(np.array([0.0, 0.01, 3e9]), y).values  # two rows share a block, far from zero
    np.testing.assert_allclose(moved, [0.195, 0.205, 0.7], rtol=1e-12)


def test_segments_are_projected_one_by_one():
    rng = np.random.default_rng(5)
    indptr = np.array([0, 3, 3, 50, 51, 90])
    z, y, weight = rng.normal(size=90), rng.normal(size=90), rng.uniform(0.2, 3, 90)
    fit, seen = onto_permutahedron(z, y, indptr, weight), set()
    for a, b in pairwise(indptr):
        np.testing.assert_allclose(
            fit.values[a:b], onto_permutahedron(z[a:b], y[a:b], weight=weight[a:b]).values, atol=1e-12
        )
        blocks = set(fit.block[a:b].tolist())
        assert not blocks & seen
        seen |= blocks


def test_rows_of_a_block_move_together():
    z, y = np.array([0.0, 0.1, 5.0, 0.05]), np.array([1.0, 2.0, 3.0, 4.0])
    fit = onto_permutahedron(z, y)
    assert fit.block[0] == fit.block[1] == fit.block[3] != fit.block[2]
    np.testing.assert_allclose(np.diff(fit.values[[0, 3, 1]]), 0.05)


def test_the_limit_of_small_s_shares_values_among_ties():
    steps = Staircase(np.array([1.0, 2.0, 4.0, 8.0]), np.array([0, 4]))
    theta = np.array([3.0, 1.0, 3.0, 0.0])
    fit = steps.project(theta, s=0.0)
    assert fit.theta.tolist() == [0.0, 1.0, 3.0, 3.0]
    assert fit.values.tolist() == [1.0, 2.0, 6.0, 6.0]
    np.testing.assert_allclose(steps.project(theta, s=1e-12).values, fit.values)


def test_a_weight_covers_a_stretch_of_the_staircase():
    weight = np.array([2.0, 1.0, 1.0])
    fit = Staircase(np.array([0.0, 1.0, 2.0]), np.array([0, 3]), weight).project(np.array([9.0, 5.0, 0.0]))
    # sorted by theta the rows weigh 1, 1 and 2: they cover 0, 0 and 1–2
    assert fit.values.tolist() == [0.0, 0.0, 1.5]
    assert fit.low.tolist() == [0.0, 0.0, 1.0]
    assert fit.high.tolist() == [0.0, 0.0, 2.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0, np.nan], [0.0, 1.0]), "z must be a one-dimensional array of finite"),
        (([0.0, 1.0], [[0.0, 1.0]]), "y must be a one-dimensional array of finite"),
        (([0.0, 1.0], [0.0]), "`z` and `y` need one number per row each: got 2 and 1"),
        (([0.0, 1.0], [0.0, 1.0], [0, 1]), "`indptr` must rise from 0"),
        (([0.0, 1.0], [0.0, 1.0], None, [1.0, 0.0]), "drop rows of weight 0"),
        (([0.0, 1.0], [0.0, 1.0], None, [1.0]), "`weight` needs a finite number above 0 for each of 2 rows"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(InputError, match=message):
        onto_permutahedron(*arguments)


def test_nothing_to_project():
    assert onto_permutahedron([], []).values.shape == (0,)
