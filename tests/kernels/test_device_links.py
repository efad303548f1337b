"""Sums over in-links on a device against the host; the kernel emulated in NumPy, and on a CUDA device."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from apexrank.kernels import device_links  # noqa: E402
from apexrank.kernels.csr import InLinks  # noqa: E402
from apexrank.kernels.device_links import DeviceLinks, blocked_sum  # noqa: E402
from tests.triton_in_numpy import place_of  # noqa: E402


@pytest.fixture(params=["numpy", "cuda"])
def place(request, monkeypatch):
    return place_of(request, monkeypatch, device_links)


def random_links(weighted, n=150, m=1500, seed=0):
    """Rows of 0 to a few hundred links."""
    rng = np.random.default_rng(seed)
    targets = np.sort((n * rng.random(m) ** 4).astype(int))
    indptr = np.searchsorted(targets, np.arange(n + 1))
    indices = rng.integers(0, n, m).astype(np.int32)
    return indptr, indices, rng.random(m) if weighted else None


def assert_alike(there, host, x, dtype, p=40.0):
    tolerance = 1e-12 if dtype == "float64" else 2e-6
    for found, wanted in (
        (there.sums(x[0]), host.sums(x[1])),
        (there.largest(x[0]), host.largest(x[1])),
        (there.norms(x[0], p), host.norms(x[1], p)),
    ):
        np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=tolerance)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("columns", [None, 3, 11])
@pytest.mark.parametrize("sliced", [False, True])
def test_sums_maxima_and_norms_are_those_of_the_host(place, monkeypatch, weighted, dtype, columns, sliced):
    monkeypatch.setattr(device_links, "LONGEST", 5)  # three levels of pieces
    monkeypatch.setattr(device_links, "PACKED_AT_ONCE", 1000)
    if place == "cpu":
        monkeypatch.setattr(device_links, "SLICE", 16)
    arrays = random_links(weighted)
    moved = [None if each is None else torch.from_numpy(each).to(place) for each in arrays]
    there = DeviceLinks(*moved, dtype=getattr(torch, dtype), sliced=sliced)
    assert len(there.levels) == (4 if sliced else 0)
    rng = np.random.default_rng(1)
    x = rng.random(150 if columns is None else (150, columns)).astype(dtype)
    x[3] = 0.0
    assert_alike(there, InLinks(*arrays), (torch.from_numpy(x).to(place), x.astype(float)), dtype)


def test_powers_of_weights(place):
    indptr, indices, weights = random_links(True)
    moved = [torch.from_numpy(each).to(place) for each in (indptr, indices, weights)]
    there = DeviceLinks(*moved, dtype=torch.float64, sliced=True)
    host = InLinks(indptr, indices, weights)
    x = np.random.default_rng(2).random(150)
    found = there.sums(torch.from_numpy(x).to(place), power=3.0)
    wanted = InLinks(indptr, indices, weights**3).sums(x)
    np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=1e-12)
    np.testing.assert_allclose(host.sums(x, power=3.0), wanted, rtol=1e-12)
    assert there.weight_range == host.weight_range


def test_graphs_without_links(place):
    none = torch.zeros(0, dtype=torch.int32, device=place)
    links = DeviceLinks(
        torch.zeros(4, dtype=torch.int64, device=place), none, None, torch.float64, sliced=True
    )
    assert links.sums(torch.ones(3, dtype=torch.float64, device=place)).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("shape", [(1,), (7,), (1000,), (101, 3)])
def test_sums_in_blocks(shape):
    x = np.random.default_rng(0).random(shape).astype(np.float32)
    found = blocked_sum(torch.from_numpy(x))
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found.numpy(), x.sum(axis=0, dtype=float), rtol=1e-7)
