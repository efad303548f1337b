"""Synthetic web crawls of any size, and link farms planted into any graph."""

from __future__ import annotations

from inspect import cleandoc
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import Bunch, check_random_state

from apexrank.errors import InputError
from apexrank.kernels.jit import kernel
from apexrank.validation import check_count

DANGLING = 1 / 3
LOCALITY = 0.75
_OUT_TAIL, _HOST_TAIL = 1.7, 1.2
_BOOSTERS = 200
_PAGES_PER_HOST = 200


def make_crawl(
    n: int = 10_000,
    *,
    mean_degree: float = 10.0,
    hosts: int | None = None,
    spam_share: float = 0.0,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Generate a web crawl: heavy-tailed degrees, links mostly within a host, a third of the pages without links.

    The pages of a host have consecutive numbers, and host sizes have a tail ``P(size > s) ∝ s^-1.2``. A random third of
    the pages is dangling. The out-degrees of the others are ``1 + ⌊s·x⌋`` with ``P(x > t) = (1 + t)^-1.7``, truncated
    at n/10, where s is chosen to match the mean. A link stays within the host with probability 3/4 (at most half the
    host is linked so) and otherwise leads anywhere; the k-th most popular of m pages is chosen with probability
    ``∝ (k + c)^-γ``, with γ = 2/3 and c = 1 within a host, where popularity follows the page numbers, and γ = 7/8 and
    c = 10 in the whole crawl. There are no duplicate links; a page may link to itself.

    The exponents are our choice. With n = 400,000 and mean_degree = 32.5, the size of the crawl in section 6.4 of the
    dissertation, which is not public, 57 % of the links stay within their host, and the 1,000 largest out- and
    in-degrees have tail indices (Hill's estimate) of 1.8 and 1.4; in the real crawl cnr-2000 they are 1.7 and 0.9: its
    in-degrees are more uneven.

    Parameters
    ----------
    n : int, default=10_000
        Number of pages, including spam; at least 20.
    mean_degree : float, default=10.0
        Mean out-degree of the honest pages, including dangling ones: from 1 to a twentieth of their number.
    hosts : int, optional
        Number of hosts; default: one per 200 pages.
    spam_share : float, default=0.0
        Share of the pages that belong to link farms of about 200 boosters each, as created by :func:`plant_farms`;
        below 1.
    random_state : int, RandomState or None, default=None
        Seed of the generator.

    Returns
    -------
    Bunch
        With ``adjacency`` (CSR, ``A[i, j] = 1`` for a link from i to j), ``host`` (host index of each page; a farm is
        its own host), ``spam``, ``farm`` and ``target_vertices`` as in :func:`plant_farms`, ``source`` and ``DESCR``.

    Examples
    --------
    >>> from apexrank.datasets.crawl import make_crawl
    >>> crawl = make_crawl(1000, mean_degree=8, spam_share=0.2, random_state=0)
    >>> crawl.adjacency.shape, int(crawl.spam.sum()), len(crawl.target_vertices)
    ((1000, 1000), 200, 1)
    >>> float((crawl.adjacency[~crawl.spam].sum(axis=1) == 0).mean())
    0.33375
    """
    check_count("n", n, 20)
    if not (isinstance(spam_share, Real) and 0 <= spam_share < 1):
        raise InputError(f"`spam_share` must be a number of at least 0 and below 1, got {spam_share!r}")
    farms, boosters = _farm_sizes(int(n), float(spam_share))
    honest = int(n) - farms * (boosters + 1)
    if not (isinstance(mean_degree, Real) and 1 <= mean_degree <= honest / 20):
        raise InputError(
            f"`mean_degree` must be from 1 to {honest / 20:g} (honest pages / 20), got {mean_degree!r}"
        )
    if honest * mean_degree >= 2**31:
        raise InputError(
            f"{honest} pages of degree {mean_degree} have over 2**31 links: lower n or `mean_degree`"
        )
    hosts = max(1, honest // _PAGES_PER_HOST) if hosts is None else hosts
    check_count("hosts", hosts, 1)
    if hosts > honest:
        raise InputError(f"`hosts` must be at most the number of honest pages {honest}, got {hosts}")
    rng = check_random_state(random_state)
    sizes = _host_sizes(honest, int(hosts), rng)
    adjacency = _links(sizes, _out_degrees(honest, mean_degree, rng), rng)
    host = np.repeat(np.arange(hosts, dtype=np.int32), sizes)
    bunch = Bunch(
        adjacency=adjacency,
        spam=np.zeros(honest, dtype=bool),
        farm=np.full(honest, -1, dtype=np.int32),
        target_vertices=np.empty(0, dtype=np.int32),
    )
    if farms:
        bunch = plant_farms(adjacency, farms=farms, boosters=boosters, random_state=rng)
        bunch.pop("hijacked_links")
        host = np.concatenate([host, np.int32(hosts) + bunch.farm[honest:]])
    bunch.update(host=host, source="synthetic", DESCR=cleandoc(make_crawl.__doc__ or ""))
    return bunch


def plant_farms(
    adjacency: Any,
    *,
    farms: int = 50,
    boosters: int = 200,
    return_links: bool = True,
    hijacked: int = 0,
    interlinked: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Add link farms to a graph: new target vertices, each linked to by its own new boosters.

    Farm f of m boosters has the vertices ``n + f·(m + 1)`` (its target) to ``n + f·(m + 1) + m``. A booster's only link
    leads to its target, and the target links back to its boosters: the rank that flows in flows back, which raises the
    target most (Gyöngyi and Garcia-Molina, "Link spam alliances", 2005). Without the two options below no other vertex
    links into a farm, and nothing is random. All new links have weight 1.

    On the crawl cnr-2000 with damping 0.85 and the defaults, PageRank gives the farms 4.26 % of the mass and the
    targets the positions 117 to 166 of 335,607 (all 50 tie); L_{2,2.4} gives 1.88 % and the positions 9,383 to 9,432.
    Without the links back PageRank gives 1.22 % and 608 to 657; L_{2,2.4} hardly changes (1.87 %, same positions).

    Parameters
    ----------
    adjacency : sparse matrix or array of shape (n, n), or Graph
        ``A[i, j]`` is the weight of the link from i to j.
    farms : int, default=50
        Number of targets.
    boosters : int, default=200
        Number of boosters per target.
    return_links : bool, default=True
        Whether targets link back to their boosters.
    hijacked : int, default=0
        Number of old vertices with links, drawn at random for each target, that are made to link to it (as by comment
        spam or bought domains): a stronger attack.
    interlinked : bool, default=False
        Whether the targets form an alliance: each links to the next one, the last to the first.
    random_state : int, RandomState or None, default=None
        Seed for drawing the hijacked vertices.

    Returns
    -------
    Bunch
        With ``adjacency`` (CSR, old vertices first), ``target_vertices``, ``spam`` (mask of the vertices of farms),
        ``farm`` (farm index, -1 for old vertices), ``hijacked_links`` (rows source, target) and ``DESCR``.

    Examples
    --------
    >>> import numpy as np
    >>> from apexrank.datasets.crawl import plant_farms
    >>> planted = plant_farms(np.array([[0, 1], [1, 0]]), farms=2, boosters=2)
    >>> planted.adjacency.toarray()[2:5]
    array([[0, 0, 0, 1, 1, 0, 0, 0],
           [0, 0, 1, 0, 0, 0, 0, 0],
           [0, 0, 1, 0, 0, 0, 0, 0]])
    >>> planted.target_vertices.tolist(), planted.farm.tolist()
    ([2, 5], [-1, -1, 0, 0, 0, 1, 1, 1])
    """
    old = _checked_graph(adjacency)
    n = old.shape[0]
    check_count("farms", farms, 1)
    check_count("boosters", boosters, 1)
    check_count("hijacked", hijacked, 0)
    if interlinked and farms < 2:
        raise InputError("interlinked farms need farms >= 2: one target has no other to link to")
    size = n + farms * (boosters + 1)
    if size >= 2**31:
        raise InputError(f"{size} vertices are more than 2**31: lower `farms` or `boosters`")
    vertices = np.arange(n, size, dtype=np.int32).reshape(farms, boosters + 1)
    targets, helpers = vertices[:, 0], vertices[:, 1:]
    stolen = _hijacked_links(old, targets, hijacked, check_random_state(random_state))
    pairs = [(helpers.ravel(), np.repeat(targets, boosters)), (stolen[:, 0], stolen[:, 1])]
    if return_links:
        pairs.append((np.repeat(targets, boosters), helpers.ravel()))
    if interlinked:
        pairs.append((targets, np.roll(targets, -1)))
    farm = np.full(size, -1, dtype=np.int32)
    farm[n:] = np.repeat(np.arange(farms, dtype=np.int32), boosters + 1)
    return Bunch(
        adjacency=_with_links(old, size, pairs),
        target_vertices=targets.copy(),
        spam=farm >= 0,
        farm=farm,
        hijacked_links=stolen,
        DESCR=cleandoc(plant_farms.__doc__ or ""),
    )


def _checked_graph(adjacency: Any) -> csr_array:
    if hasattr(adjacency, "to_scipy"):  # a Graph
        adjacency = adjacency.to_scipy()
    matrix = adjacency if issparse(adjacency) else np.asarray(adjacency)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        is_array = isinstance(adjacency, np.ndarray) or issparse(adjacency)
        got = f"shape {matrix.shape}" if is_array else repr(adjacency)
        raise InputError(
            f"`adjacency` must be a square matrix or a Graph, got {got}: read files and other graphs with "
            "apexrank.graph.as_graph first"
        )
    if matrix.dtype == bool:
        matrix = matrix.astype(np.int8)
    if not np.issubdtype(matrix.dtype, np.number):
        raise InputError(f"`adjacency` must hold numbers, got {matrix.dtype}")
    return csr_array(matrix)


def _hijacked_links(
    old: csr_array, targets: np.ndarray, hijacked: int, rng: np.random.RandomState
) -> np.ndarray:
    """Rows (old vertex, target); the vertices of one target are distinct."""
    if not hijacked:
        return np.empty((0, 2), dtype=np.int32)
    linking = np.flatnonzero(np.diff(old.indptr)).astype(np.int32)
    if len(linking) < hijacked:
        raise InputError(f"`hijacked={hijacked}` is more than the {len(linking)} vertices that have links")
    sources = [rng.choice(linking, hijacked, replace=False) for _ in targets]
    return np.column_stack([np.concatenate(sources), np.repeat(targets, hijacked)])


def _with_links(
    old: csr_array, size: int, pairs: list[tuple[np.ndarray, np.ndarray]], weight: float = 1
) -> csr_array:
    """Extend the old graph to ``size`` vertices and add links; the old arrays are not copied twice."""
    source, target = (np.concatenate(column) for column in zip(*pairs, strict=True))
    new = csr_array((np.full(len(source), weight, dtype=old.dtype), (source, target)), shape=(size, size))
    grown = csr_array(
        (old.data, old.indices, np.pad(old.indptr, (0, size - old.shape[0]), mode="edge")), shape=(size, size)
    )
    return _narrow(csr_array(grown + new))


def _narrow(matrix: csr_array) -> csr_array:
    """The same matrix with sorted int32 indices."""
    matrix.sort_indices()
    matrix.indices = matrix.indices.astype(np.int32, copy=False)
    if matrix.nnz < 2**31:
        matrix.indptr = matrix.indptr.astype(np.int32, copy=False)
    return matrix


def _farm_sizes(n: int, spam_share: float) -> tuple[int, int]:
    """Number of farms and of boosters per farm that give the requested share of all pages."""
    if not spam_share:
        return 0, 0
    spam = round(n * spam_share)
    farms = max(1, round(spam / (_BOOSTERS + 1)))
    if spam < 2 or n - spam < 20:
        raise InputError(
            f"`spam_share={spam_share}` makes {spam} of {n} pages spam: needs at least 2 of them, and 20 honest ones"
        )
    return farms, spam // farms - 1


def _host_sizes(n: int, hosts: int, rng: np.random.RandomState) -> np.ndarray:
    """Heavy-tailed sizes of at least 1 that sum to n."""
    ends = np.cumsum(rng.random_sample(hosts) ** (-1 / _HOST_TAIL))
    return 1 + np.diff(np.round(ends / ends[-1] * (n - hosts)).astype(np.int64), prepend=0)


def _out_degrees(n: int, mean_degree: float, rng: np.random.RandomState) -> np.ndarray:
    """Heavy-tailed out-degrees with the given mean; a third of them are 0."""
    live = rng.permutation(n)[round(DANGLING * n) :]
    tail = rng.random_sample(len(live)) ** (-1 / _OUT_TAIL) - 1
    low, high = 0.0, 2.0 * n
    # the sum increases with the scale, so bisection finds it; 40 steps determine every degree
    for _ in range(40):
        scale = (low + high) / 2
        total = np.minimum(1 + np.floor(scale * tail), n // 10).sum()
        low, high = (scale, high) if total < n * mean_degree else (low, scale)
    degrees = np.zeros(n, dtype=np.int32)
    degrees[live] = np.minimum(1 + np.floor(high * tail), n // 10)
    return degrees


def _links(sizes: np.ndarray, degrees: np.ndarray, rng: np.random.RandomState) -> csr_array:
    n = len(degrees)
    popular = rng.permutation(n).astype(np.int32)
    generator = np.random.default_rng(rng.randint(2**32, size=4, dtype=np.uint32))
    indptr = np.zeros(n + 1, dtype=np.int32)
    indices = np.empty(degrees.sum(dtype=np.int64), dtype=np.int32)
    _draw_links(sizes, degrees, popular, LOCALITY, generator, indptr, indices)
    indices = indices[: indptr[-1]]
    matrix = csr_array((np.ones(len(indices), dtype=np.int8), indices, indptr), shape=(n, n))
    matrix.sort_indices()
    return matrix


@kernel()
def _draw_links(sizes, degrees, popular, locality, generator, indptr, indices):
    """Fill the rows of a CSR matrix with distinct targets for every page, in its host or anywhere."""
    n = len(degrees)
    last_source = np.full(n, -1, dtype=np.int32)
    first, filled = 0, 0
    # inverse distribution function of (k + c)^-γ on [0, m): ((1-u)·c^d + u·(m+c)^d)^(1/d) - c with d = 1 - γ
    out_low, out_high = 10.0**0.125, (n + 10.0) ** 0.125
    for size in sizes:
        in_high = (size + 1.0) ** (1 / 3)
        for page in range(first, first + size):
            inside, missing = 0, degrees[page]
            # redraw if the target is already linked; a page may end up with fewer links than requested
            for _ in range(8 * missing + 50):
                if missing == 0:
                    break
                local = generator.random() < locality and 2 * inside < size
                u = generator.random()
                if local:
                    root = 1.0 + u * (in_high - 1.0)
                    target = first + min(int(root * root * root - 1.0), size - 1)
                else:
                    root = out_low + u * (out_high - out_low)
                    target = popular[min(int(root**8 - 10.0), n - 1)]
                if last_source[target] != page:
                    last_source[target] = page
                    indices[filled] = target
                    filled += 1
                    missing -= 1
                    inside += local
            indptr[page + 1] = filled
        first += size
