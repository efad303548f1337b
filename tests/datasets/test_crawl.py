"""Synthetic crawls have the statistics of real crawls, and farms are planted link by link as documented."""

from __future__ import annotations

import os
import socket
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix

from apexrank.datasets.crawl import make_crawl, plant_farms
from apexrank.errors import InputError

DATA = Path(os.environ.get("APEXRANK_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.fixture(scope="module")
def crawl():
    return make_crawl(30_000, mean_degree=12, random_state=0)


def hill(values, k):
    """Hill's estimate of the tail index from the k largest values."""
    top = np.sort(values)[::-1][: k + 1].astype(float)
    return 1 / np.log(top[:-1] / top[-1]).mean()


def test_arrays_of_a_crawl(crawl):
    A = crawl.adjacency
    assert A.shape == (30_000, 30_000)
    assert A.format == "csr"
    assert A.dtype == np.int8
    assert A.indices.dtype == A.indptr.dtype == np.int32
    assert A.has_canonical_format
    assert (A.data == 1).all()
    assert crawl.host.dtype == np.int32
    assert (np.diff(crawl.host) >= 0).all()
    assert np.unique(crawl.host).tolist() == list(range(150))
    assert not crawl.spam.any()
    assert (crawl.farm == -1).all()
    assert len(crawl.target_vertices) == 0


def test_degrees_of_a_crawl(crawl):
    A = crawl.adjacency
    out, into = np.diff(A.indptr), np.bincount(A.indices, minlength=A.shape[0])
    assert out.mean() == pytest.approx(12, rel=0.01)
    assert (out == 0).mean() == pytest.approx(1 / 3, abs=1e-3)
    # a heavy tail has an index between 1 and 3: Poisson or even degrees give more than 5 here
    assert 1 < hill(out, 500) < 2.5
    assert 1 < hill(into, 500) < 2.5
    assert out.max() > 50 * out.mean()
    assert into.max() > 50 * into.mean()
    assert (into == 0).mean() < 0.05
    assert 0 < A.diagonal().sum() < 0.02 * A.nnz


def test_links_stay_in_their_host(crawl):
    A = crawl.adjacency
    source = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    inside = (crawl.host[source] == crawl.host[A.indices]).mean()
    sizes = np.bincount(crawl.host)
    by_chance = (sizes / sizes.sum()) @ (sizes / sizes.sum())
    assert inside > 0.5 > 4 * by_chance


def test_same_number_same_crawl():
    first, again, other = (make_crawl(2000, spam_share=0.3, random_state=seed) for seed in (7, 7, 8))
    for key in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(first.adjacency, key), getattr(again.adjacency, key))
    np.testing.assert_array_equal(first.host, again.host)
    assert (first.adjacency != other.adjacency).nnz > 1000
    assert (make_crawl(2000).adjacency != make_crawl(2000).adjacency).nnz > 1000


def test_random_states_are_used_up_not_reset():
    rng, before = np.random.RandomState(3), np.random.RandomState(3)
    first, second = make_crawl(500, random_state=rng), make_crawl(500, random_state=rng)
    assert (first.adjacency != second.adjacency).nnz > 100
    assert (first.adjacency != make_crawl(500, random_state=before).adjacency).nnz == 0


@given(
    n=st.integers(20, 3000),
    degree=st.floats(1, 30),
    share=st.sampled_from([0.0, 0.05, 0.3, 0.5]),
    hosts=st.none() | st.integers(1, 50),
    seed=st.integers(0, 99),
)
@settings(max_examples=60)
def test_any_crawl_is_a_crawl(n, degree, share, hosts, seed):
    honest = n - round(n * share)
    if degree > honest / 20 or (hosts or 0) > honest or honest < 20 or 0 < round(n * share) < 2:
        with pytest.raises(InputError):
            make_crawl(n, mean_degree=degree, hosts=hosts, spam_share=share, random_state=seed)
        return
    crawl = make_crawl(n, mean_degree=degree, hosts=hosts, spam_share=share, random_state=seed)
    A = crawl.adjacency
    A.check_format()
    assert A.shape == (n, n)
    assert A.has_canonical_format
    assert (A.data == 1).all()
    assert A.indices.dtype == A.indptr.dtype == np.int32
    assert len(crawl.host) == len(crawl.spam) == len(crawl.farm) == n
    honest = int((~crawl.spam).sum())
    assert abs(crawl.spam.sum() - n * share) <= 1 + len(crawl.target_vertices)
    out = np.diff(A.indptr)[:honest]
    assert (out == 0).sum() == round(honest / 3)
    assert out.max() <= honest // 10
    # degrees are integers, so the sum only approximates its target
    assert out.sum() <= honest * degree + honest * 0.01 + 2
    assert out.sum() >= 0.9 * honest * degree - 2
    if hosts:
        assert crawl.host[:honest].max() == hosts - 1


def test_spam_of_a_crawl_is_planted_farms():
    crawl = make_crawl(10_000, spam_share=0.2, random_state=1)
    assert crawl.spam.mean() == pytest.approx(0.2, abs=1e-3)
    honest = int((~crawl.spam).sum())
    assert not crawl.adjacency[:honest, honest:].nnz
    assert not crawl.adjacency[honest:, :honest].nnz
    into = np.bincount(crawl.adjacency.indices, minlength=10_000)
    boosters = (10_000 - honest) // len(crawl.target_vertices) - 1
    assert 150 < boosters < 260
    assert (into[crawl.target_vertices] == boosters).all()
    np.testing.assert_array_equal(crawl.host[honest:] - crawl.host[honest - 1] - 1, crawl.farm[honest:])
    clean = make_crawl(honest, random_state=1)
    assert (crawl.adjacency[:honest, :honest] != clean.adjacency).nnz == 0


def test_memory_is_a_few_bytes_a_link():
    make_crawl(500, random_state=0)
    tracemalloc.start()
    crawl = make_crawl(100_000, mean_degree=20, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # four bytes for the index and one for the weight, and some forty for a page while it is made
    assert peak < 5.1 * crawl.adjacency.nnz + 60 * 100_000


def test_no_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    assert make_crawl(500, spam_share=0.1, random_state=0).adjacency.nnz > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 19}, "`n` must be a whole number of at least 20"),
        ({"n": 1e4}, "`n` must be a whole number"),
        ({"n": True}, "`n` must be a whole number"),
        ({"mean_degree": 0.5}, "`mean_degree` must be from 1 to 50"),
        ({"mean_degree": 51}, "`mean_degree` must be from 1 to"),
        ({"mean_degree": float("nan")}, "`mean_degree` must be from 1 to"),
        ({"mean_degree": "10"}, "`mean_degree` must be from 1 to"),
        ({"n": 2**30, "mean_degree": 4.0}, "over 2\\*\\*31 links"),
        ({"hosts": 0}, "`hosts` must be a whole number of at least 1"),
        ({"hosts": 1001}, "`hosts` must be at most"),
        ({"spam_share": 1}, "`spam_share` must be a number of at least 0 and below 1"),
        ({"spam_share": -0.1}, "`spam_share` must be"),
        ({"spam_share": 0.001}, "makes 1 of 1000 pages spam"),
        ({"spam_share": 0.999}, "makes 999 of 1000 pages spam"),
    ],
)
def test_bad_crawls(arguments, message):
    with pytest.raises(InputError, match=message) as error:
        make_crawl(**{"n": 1000, **arguments})
    assert "\n" not in str(error.value)


def dense_farms(old, farms, boosters, return_links, hijacked_links, interlinked):
    """The same graph, link by link."""
    n = len(old)
    A = np.zeros((n + farms * (boosters + 1),) * 2)
    A[:n, :n] = old
    targets = [n + f * (boosters + 1) for f in range(farms)]
    for f, target in enumerate(targets):
        for booster in range(target + 1, target + 1 + boosters):
            A[booster, target] = 1
            if return_links:
                A[target, booster] = 1
        if interlinked:
            A[target, targets[(f + 1) % farms]] = 1
    for source, target in hijacked_links:
        assert source < n
        assert target in targets
        assert A[source, target] == 0
        A[source, target] = 1
    return A, targets


@given(
    farms=st.integers(1, 4),
    boosters=st.integers(1, 4),
    back=st.booleans(),
    hijacked=st.integers(0, 3),
    ring=st.booleans(),
    form=st.sampled_from([np.asarray, csr_array, csc_array, coo_array, csr_matrix]),
    seed=st.integers(0, 9),
)
def test_farms_link_by_link(farms, boosters, back, hijacked, ring, form, seed):
    old = np.random.RandomState(seed).randint(-1, 3, size=(6, 6)).astype(float)
    old[4] = 0
    options = {
        "farms": farms,
        "boosters": boosters,
        "return_links": back,
        "hijacked": hijacked,
        "interlinked": ring,
    }
    if ring and farms == 1:
        with pytest.raises(InputError, match="farms >= 2"):
            plant_farms(form(old), **options)
        return
    given = form(old)
    planted = plant_farms(given, **options, random_state=seed)
    assert planted.hijacked_links.shape == (farms * hijacked, 2)
    expected, targets = dense_farms(old, farms, boosters, back, planted.hijacked_links.tolist(), ring)
    np.testing.assert_array_equal(planted.adjacency.toarray(), expected)
    np.testing.assert_array_equal(given if isinstance(given, np.ndarray) else given.toarray(), old)
    assert planted.target_vertices.tolist() == targets
    assert planted.farm.tolist() == [-1] * 6 + [f for f in range(farms) for _ in range(boosters + 1)]
    np.testing.assert_array_equal(planted.spam, planted.farm >= 0)
    assert planted.adjacency.indices.dtype == planted.adjacency.indptr.dtype == np.int32
    assert planted.adjacency.dtype == old.dtype
    assert planted.adjacency.has_canonical_format
    assert 4 not in planted.hijacked_links[:, 0]
    assert (
        np.bincount(planted.hijacked_links[:, 1], minlength=targets[-1] + 1)[targets].tolist()
        == [hijacked] * farms
    )


def test_hijacked_vertices_follow_the_random_state():
    crawl = make_crawl(2000, random_state=0).adjacency
    links = [plant_farms(crawl, farms=5, hijacked=4, random_state=s).hijacked_links for s in (1, 1, 2)]
    np.testing.assert_array_equal(links[0], links[1])
    assert (links[0] != links[2]).any()
    assert len(np.unique(links[0][:, 0])) > 10


def test_a_boolean_graph_counts_links():
    planted = plant_farms(np.eye(3, dtype=bool), farms=1, boosters=2)
    assert planted.adjacency.dtype == np.int8
    assert planted.adjacency.sum() == 3 + 4


@pytest.mark.parametrize(
    ("adjacency", "arguments", "message"),
    [
        (np.ones((2, 3)), {}, r"square matrix or a Graph, got shape \(2, 3\)"),
        (np.ones(4), {}, "square matrix"),
        (np.array([["a"]]), {}, "must hold numbers"),
        (np.eye(3), {"farms": 0}, "`farms` must be a whole number of at least 1"),
        (np.eye(3), {"boosters": 0}, "`boosters` must be"),
        (np.eye(3), {"boosters": 2.5}, "`boosters` must be"),
        (np.eye(3), {"hijacked": -1}, "`hijacked` must be"),
        (np.eye(3), {"hijacked": 4}, "more than the 3 vertices that have links"),
        (np.eye(3), {"farms": 2**20, "boosters": 2**12}, "more than 2\\*\\*31"),
    ],
)
def test_bad_farms(adjacency, arguments, message):
    with pytest.raises(InputError, match=message) as error:
        plant_farms(adjacency, **arguments)
    assert "\n" not in str(error.value)
