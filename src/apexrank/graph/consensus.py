"""Consensus ranks of graphs with several layers, with layer weights chosen for agreement among the vertices.

Orders may be imposed. A constraint that vertex i puts a at or above b, ``t̂_ia ≥ t̂_ib``, cuts its hull by a
half-space: the result is again a hull, of the remaining corners and new ones on the cut (`cut_hulls`). A vertex with
only such orders and no links has the hull of all distributions over the vertices in them. A constraint ``w_a ≥ w_b`` on
the ranks involves the whole walk and is enforced by the method of multipliers: an additional cost of the ranks
(`RankOrder`) whose prices move the vertices in the right direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from apexrank.divergences import Divergence
from apexrank.errors import InputError, warn
from apexrank.graph import agreement
from apexrank.graph.agreement import KINDS, Agreement, Choice, Consensus, divergence_of_ranks
from apexrank.graph.base import GraphRank, Teleport, teleport_vectors
from apexrank.graph.edges import Column, Edges
from apexrank.graph.graph import Graph, build
from apexrank.graph.layers import Layers, as_layers
from apexrank.graph.pagerank import PageRank
from apexrank.graph.power import Anderson, Progress
from apexrank.kernels.hulls import Hulls, gathered
from apexrank.parameters import above, between, checked, names, number, whole

Method = Literal["union", "mean", "median", "corroborate", "blend", "fixed-point", "brew"]
METHODS = get_args(Method)
ROUNDS, STEPS_A_ROUND = 100, 300  # rounds of the method of multipliers, and steps per round
INSIDE = 1e-3
# blend starts near the fixed point (gap, maximum number of steps), or at it if there are few candidates
NEAR, NEAR_STEPS, FEW = 1e-5, 20, 10_000
_LEAST = 1e-100  # smallest weight of a layer by age
KEPT = 1e-6  # tolerated violation of an order of ranks, in units of the mean rank
MOST_CORNERS = 500  # maximum number of corners of a hull after a cut
ROUNDING = 1e-13
# required reduction of the violation per round, rounds without it, and the factor by which stiffness then grows
GAIN, PATIENCE, STIFFER = 0.7, 5, 4.0

Order = Sequence[tuple[Any, Any]]
Pairs = Sequence[tuple[int, int]]


@dataclass(eq=False, repr=False)
class ConsensusRank(GraphRank):
    """Consensus rank of a graph with several layers (dissertation, chapter 5).

    Each vertex recommends others, differently in each layer: ``t_i^1 … t_i^m``. It may follow any mixture of them,
    ``t̂_i = α Σ_k λ_ik t_i^k + (1 − α)·teleport``. The ranks are the PageRank of the chosen mixtures, which are those
    that agree best with the resulting ranks.

    Parameters
    ----------
    method : {"union", "mean", "median", "corroborate", "blend", "fixed-point", "brew"}
        Consensus method:

        - ``"union"``: PageRank of all links together; every vertex weights its layers by the weight of its links there.
          Recommended unless there is a reason for another method.
        - ``"mean"``: PageRank of the mean of the layers' transitions, weighted by the prior.
        - ``"median"``: median of the layers' PageRanks, normalised. Colluding layers cannot move it far while they have
          less than half of the prior weight; no method withstands a majority. Not stationary: see ``stationarity_``.
        - ``"blend"``: stationary ranks w of the smallest disagreement ``V = Σ_i w_i D_φ(t̂_i‖w)``. V is not convex: the
          result is a local minimum, not above that of ``"fixed-point"`` by more than ``tol``.
        - ``"fixed-point"``: every vertex projects the ranks onto its hull, ``t̂_i = argmin D_φ(t‖w)``, and w is the
          PageRank of the result. Simpler, takes about half the time, and does not minimise V.
        - ``"corroborate"``: a vertex weights a layer by how well its other layers corroborate it, against the
          background of the ranks and relative to its information:
          ``λ_ik ∝ prior_k·exp(−D(t̂_i^k‖r_i^k)/(temperature·I_i^k))`` with
          ``r_i^k = α·(mix of the others) + (1 − α)·w`` and the information ``I = log n − entropy of t̂_i^k``. It is not
          in the dissertation and does not minimise V; it detects layers that are uninformative or random
          (``apexrank reproduce consensus-study``).
        - ``"brew"``: minimises ``Σ_i w_i D_φ(t̂_i‖ρ) + (1 − β)/β·D_φ(w‖ρ)``. Its ranks ρ are not stationary, and even
          with one layer they are not PageRank: see ``stationarity_``. It needs about 1/β times as many steps.
    divergence : {"kl", "squared", "itakura-saito", "logistic", "i-divergence"} or Divergence
        φ, a Bregman divergence of :mod:`apexrank.divergences`: Kullback–Leibler (disagreement in nats; "i-divergence"
        is the same for ranks), half the squared Euclidean distance, Itakura–Saito, which measures ratios and needs a
        teleport to every vertex, or binary entropy. An instance may have a weight for each vertex, such as
        ``Squared(weight=…)``. "shifted-i-divergence" is not supported, because it needs coordinates of at least 1.
    damping : float
        Probability α of following a link.
    half_life : float, optional
        For layers in chronological order, newest last: the prior weight of a layer halves with every ``half_life``
        layers of age. None: age does not matter. 0.5 did best on a network of ratings over time
        (``apexrank reproduce consensus-recency``).
    trim : float, optional
        Exclude layers that may collude: those whose PageRank is more than ``trim`` times as far (L1) from the median of
        the layers' PageRanks as the median layer is. At least 1; 1.5 did well
        (``apexrank reproduce consensus-collusion``). Layers with less than half of the prior weight cannot move the
        median out of the range of the others, and are excluded if they are further from it than ``trim`` times the
        furthest of the others; a majority can do both. Vertices with links only in excluded layers pass their rank to
        the teleport. With ``"median"`` it withstands weak and strong attacks alike. Layers must have most vertices in
        common. None: all layers count.
    pull : float
        Cost ``pull·Σ_i w_i KL(λ_i‖prior_i)`` of layer weights far from the prior. 0: no cost; ``inf``: the prior
        weights themselves, that is, PageRank of the mean of the layers.
    entropy : float
        Factor of φ(t̂_i) in V, from 0 to 1. Below 1, layers that spread evenly, and so agree with every other, count
        less; 0 requires a pull.
    temperature : float
        Temperature of ``"corroborate"``: near 0 only the best corroborated layer counts, ``inf`` gives the mean.
    beta : float
        Weight of stationarity in ``"brew"``, between 0 and 1.
    n_restarts : int
        Number of random initial layer weights in addition to the default start; the smallest V is kept.
    tol : float
        Tolerance on the first-order gap (``"brew"``: on the change of the vertex weights).
    max_iter : int
        Maximum number of steps.
    random_state : int, RandomState or None
        Seed of the restarts.
    verbose : int
        1 prints each step.
    callback : callable, optional
        Called with the number of each step and its gap.

    Attributes
    ----------
    scores_, names_, ranking_ : ndarray
        Ranks, summing to 1; names of the vertices; names from best to worst.
    layers_ : tuple of str
        Names of the layers.
    layer_weights_ : ndarray of shape (n_vertices, n_layers)
        The λ_ik: 0 if a vertex has no opinion; rows sum to 1, or to 0 for vertices without any opinion. For
        ``"median"`` the prior weights.
    layer_deviations_ : ndarray of shape (n_layers,)
        Only with ``trim``: distance of each layer's PageRank from the median, in units of that of the median layer;
        layers above ``trim`` were excluded.
    layer_shares_ : ndarray of shape (n_layers,)
        Influence of each layer: mean of the layer weights over the vertices with an opinion, weighted by rank. Sums to
        1; all 0 if no vertex has an opinion.
    disagreement_ : float
        ``Σ_i w_i D_φ(t̂_i‖w)``; for "kl" the mutual information of two steps of the walk, in nats.
    vertex_disagreement_ : ndarray
        ``D_φ(t̂_i‖w)`` of every vertex.
    objective_ : float
        Minimised cost, with pull and entropy.
    stationarity_ : float
        ``|Tw − w|₁`` of the ranks.
    first_order_gap_ : float
        ``Σ_i w_i (Σ_k λ_ik g_ik − min_k g_ik)`` with the derivatives g of each vertex's objective; 0 at a minimum. For
        "corroborate" ``Σ_i w_i·½|λ_i − next λ_i|₁``.
    vertex_gap_ : ndarray
        The same for each vertex, without w_i.
    error_bound_ : float
        Bound on the L1 distance between the ranks and the exact ones for these layer weights: PageRank of ``graph_``,
        or the median of the layers; nan for "brew".
    order_violation_ : float
        Largest violation of the orders ``keep``, in units of the mean rank; 0 without orders.
    converged_, n_iter_ : bool, int
    history_, objectives_ : ndarray
        Gap and cost of each step (fixed-point methods record no costs).
    graph_ : Graph
        Consensus graph: links weighted by the layer weights. Its PageRank gives the same ranks, except for "median" and
        "brew".

    Examples
    --------
    >>> layers = {"science": (["ann", "bob", "cy"], ["bob", "ann", "ann"]), "style": (["cy"], ["bob"])}
    >>> rank = ConsensusRank().fit(layers)
    >>> rank.ranking_.tolist(), rank.layers_
    (['ann', 'bob', 'cy'], ('science', 'style'))
    >>> rank.converged_, rank.stationarity_ < 1e-8
    (True, True)
    """

    _parameter_constraints: ClassVar[dict] = GraphRank._parameter_constraints | {
        "method": [names(Method)],
        "half_life": [None, above(0)],
        "trim": [None, number(1)],
        "divergence": [names(KINDS), Divergence],
        "pull": [between(0, np.inf)],
        "entropy": [between(0, 1)],
        "temperature": [between(0, np.inf, closed="right")],
        "beta": [between(0, 1, closed="neither")],
        "n_restarts": [whole(0)],
        "random_state": ["random_state"],
    }

    method: Method = "union"
    _: KW_ONLY
    half_life: float | None = None
    trim: float | None = None
    divergence: str | Divergence = "kl"
    damping: float = 0.85
    pull: float = 0.0
    entropy: float = 1.0
    temperature: float = 0.3
    beta: float = 0.1
    n_restarts: int = 0
    tol: float = 1e-8
    max_iter: int = 5000
    random_state: Any = None
    verbose: int = 0
    callback: Progress | None = None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # several graphs, which no scikit-learn tag describes
        tags.input_tags.two_d_array = tags.input_tags.pairwise = tags.input_tags.sparse = False
        return tags

    def _validate_params(self) -> None:
        super()._validate_params()
        atom = divergence_of_ranks(self.divergence)
        if self.entropy == self.pull == 0:
            raise InputError("`entropy` must be above 0 without a `pull`")
        if self.method not in ("blend", "fixed-point") and (self.pull != 0 or self.entropy != 1):
            raise InputError(
                f"`pull` and `entropy` need `method='blend'` or `method='fixed-point'`, got {self.method!r}"
            )
        if self.method == "corroborate" and atom.name != "kl":
            raise InputError("`method='corroborate'` measures information: leave `divergence='kl'`")

    @checked
    def fit(
        self,
        layers: Any,
        y: None = None,
        *,
        label: Column = None,
        layer_prior: ArrayLike | Mapping[str, float] | None = None,
        teleport: Teleport = None,
        keep: Order | None = None,
        keep_at: Mapping[Any, Order] | None = None,
    ) -> Self:
        """Rank the vertices.

        Parameters
        ----------
        layers : list of graphs, mapping of names to graphs, Layers, or one edge table with ``label``
            Any input of :func:`apexrank.graph.as_layers`. Vertices are matched by name; one without out-links in a
            layer has no opinion there, and one without any passes its rank to the teleport.
        y : None
            Ignored.
        label : str or int, optional
            Column of an edge table with the layer of each edge.
        layer_prior : array or mapping of layers' names to weights, optional
            Positive prior weight of each layer: the start of the search and the target of ``pull``. Equal by default.
        teleport : array, mapping of names to weights, or names
            As in :meth:`apexrank.PageRank.fit`.
        keep : list of pairs of names, optional
            Constraints (a, b) on the ranks: a must not rank below b. Only with method "blend".
        keep_at : mapping of names to lists of pairs, optional
            Constraints (a, b) on the recommendations of a vertex. If they exclude a part of its hull, the corners of
            the rest replace the layers, with equal prior weights. A vertex without links in any layer has only these
            constraints: it may follow any distribution over the vertices in them that satisfies them, and belongs to
            no layer in ``layer_weights_``.
        """
        read = as_layers(layers, label=label)
        bare = read.graphs[0]
        shares = teleport_vectors(bare, teleport)
        if shares.ndim > 1:
            raise InputError("a consensus takes one teleport: fit once for each")
        _check_fits(divergence_of_ranks(self.divergence), shares)
        layer_weights = _layer_weights(read, layer_prior, self.half_life)
        if self.trim is not None:
            self.layer_deviations_ = _deviations(read, layer_weights, self.damping, shares)
            layer_weights = np.where(self.layer_deviations_ <= self.trim, layer_weights, 0.0)
            read = _without(read, layer_weights == 0)
        hulls, corners = read.hulls, dict[int, np.ndarray]()
        if keep_at is not None and not isinstance(keep_at, Mapping):
            raise InputError("`keep_at` must be a mapping from a vertex to the pairs (a, b) it shall keep")
        if keep_at:
            numbered = {bare.number(at): _numbers(bare, pairs, "keep_at") for at, pairs in keep_at.items()}
            hulls, corners = cut_hulls(hulls, (1 - self.damping) * shares, self.damping, numbered, bare)
        prior = _prior(read, hulls, layer_weights, by_links=self.method == "union")
        order = RankOrder(_numbers(bare, keep, "keep"), read.n) if keep else None
        if keep_at and self.method in ("union", "median"):
            raise InputError(f"`method={self.method!r}` cannot keep orders of vertices: use `method='blend'`")
        if order is not None and (self.method != "blend" or not np.isfinite(self.pull)):
            raise InputError(
                "`keep` needs `method='blend'` with a finite `pull`: other methods keep no orders"
            )
        problem = Agreement(
            hulls,
            shares,
            self.damping,
            divergence=self.divergence,
            entropy=self.entropy,
            pull=self.pull if np.isfinite(self.pull) else 0.0,
            prior=prior,
            penalty=order,
        )
        with problem:
            answer = self._solve(problem, order, layer_weights)
            self._keep(read, problem, answer, corners, order)
        self._warn()
        return self

    def _solve(self, problem: Agreement, order: RankOrder | None, layer_weights: np.ndarray) -> Consensus:
        prior, start = problem.prior, np.full(problem.n, 1 / problem.n)
        limits = agreement.Limits(self.tol, self.max_iter, self._progress)
        if np.isinf(self.pull) or self.method in ("mean", "union", "median"):
            choice = problem.at(prior, start, 1e-3 * self.tol)
            if self.method == "median":
                choice = _median(problem, choice, layer_weights, 1e-3 * self.tol)
            return Consensus(choice, 0.0, np.zeros(problem.n), True, [choice.value], [0.0])
        if self.method == "brew":
            return agreement.brew(problem, prior, start, self.beta, limits)
        if self.method == "corroborate":
            return agreement.corroborated(problem, prior, start, self.temperature, limits)
        if self.method == "fixed-point":
            return agreement.fixed_point(problem, prior, start, limits)
        return self._least_disagreement(problem, start, order)

    def _least_disagreement(
        self, problem: Agreement, start: np.ndarray, order: RankOrder | None
    ) -> Consensus:
        """Return the best of several descents, repeated in rounds if ranks are constrained (method of multipliers)."""
        random = check_random_state(self.random_state)
        # normalised, they are Dirichlet-distributed with more weight near the corners
        drawn = (random.gamma(0.5, size=len(problem.prior)) + 1e-6 for _ in range(self.n_restarts))
        starts = [self._first_weights(problem, start), *map(problem.onto_simplices, drawn)]

        def best(most: int) -> Consensus:
            limits = agreement.Limits(self.tol, most, self._progress)
            ways = (self._descend(problem, each, start, limits) for each in starts)
            return min(ways, key=lambda way: way.choice.value)

        if order is None:
            return best(self.max_iter)
        for _ in range(ROUNDS):
            answer = best(min(self.max_iter, STEPS_A_ROUND))
            if order.is_settled(answer.choice.ranks, KEPT):
                break
            order.advance(answer.choice.ranks)
            starts[0] = answer.choice.weights
        return answer

    _descend = staticmethod(agreement.blend)

    def _first_weights(self, problem: Agreement, start: np.ndarray) -> np.ndarray:
        """Start near the solution of the fixed-point method, so that the descent ends below it."""
        few = len(problem.prior) <= FEW
        near, most = (self.tol, STEPS_A_ROUND) if few else (max(self.tol, NEAR), NEAR_STEPS)
        limits = agreement.Limits(near, min(self.max_iter, most), self._progress)
        begun = agreement.fixed_point(problem, problem.prior, start, limits)
        first = begun.choice.weights
        if (
            not problem.teleport.all()
        ):  # prices of vertices of rank 0 are unknown: start slightly inside the hulls
            first = (1 - INSIDE) * first + INSIDE * problem.prior
        return first

    def _keep(
        self,
        layers: Layers,
        problem: Agreement,
        answer: Consensus,
        corners: dict[int, np.ndarray],
        order: RankOrder | None,
    ) -> None:
        choice = answer.choice
        self.scores_, self.layers_ = choice.ranks, layers.names
        self.layer_weights_ = _of_layers(layers, problem.hulls, choice.weights, corners)
        shares = choice.ranks @ self.layer_weights_
        self.layer_shares_ = shares / (shares.sum() or 1.0)
        self.vertex_disagreement_ = problem.distances(choice.mixture, choice.ranks)
        self.disagreement_ = float((choice.ranks * self.vertex_disagreement_).sum())
        self.objective_ = choice.value
        self.stationarity_ = problem.stationarity(choice)
        self.first_order_gap_, self.vertex_gap_ = answer.gap, answer.gaps
        self.error_bound_ = np.nan if self.method == "brew" else choice.error
        self.order_violation_ = 0.0 if order is None else order.violation(choice.ranks)
        kept = self.order_violation_ <= KEPT
        self.converged_ = bool(answer.converged and kept and not self.error_bound_ > self.tol)
        self.n_iter_ = len(answer.history)
        self.history_, self.objectives_ = np.array(answer.history), np.array(answer.values)
        self.graph_ = _consensus_graph(layers, problem, choice.mixture)

    def _warn(self) -> None:
        if self.order_violation_ > KEPT:
            message = (
                f"the ranks break an order to keep by {self.order_violation_:.2g} of the mean rank: the layers may not "
                "allow it. Remove orders, raise `n_restarts`, or lower `damping`."
            )
        elif self.error_bound_ > self.tol:
            message = (
                f"not converged: the ranks may be {self.error_bound_:.1e} (L1) from those of the consensus graph. "
                "Raise `tol`, or lower `damping`."
            )
        elif not self.converged_:
            message = (
                f"not converged after {self.n_iter_} steps: the first-order gap is {self.first_order_gap_:.1e}. "
                "Raise `max_iter` or `tol`."
            )
        else:
            return
        warn(message, ConvergenceWarning)


def _check_fits(atom: Divergence, teleport: np.ndarray) -> None:
    """Raise InputError if a divergence has no finite value on walks with this teleport."""
    if atom.name == "itakura-saito" and not teleport.all():
        raise InputError(
            "itakura-saito is infinite where a vertex gets nothing: give every vertex a share of the teleport"
        )
    weight = getattr(atom, "weight", None)
    if weight is not None and len(weight) != len(teleport):
        raise InputError(
            f"the divergence has {len(weight)} weights for {len(teleport)} vertices: give one each"
        )


def _numbers(graph: Graph, pairs: Order, what: str) -> list[tuple[int, int]]:
    found = []
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise InputError(f"`{what}` must be pairs (a, b) of names, a not below b, got {pairs!r}")
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(f"`{what}` must be pairs (a, b) of names, a not below b, got {pair!r}")
        a, b = graph.numbers(list(pair), what=what).tolist()
        if a == b:
            raise InputError(f"`{what}`: a pair has {pair[0]!r} twice")
        found.append((a, b))
    return found


def _layer_weights(layers: Layers, given: Any, half_life: float | None) -> np.ndarray:
    """Return prior weights of the layers, halved with every half-life of age; the largest is 1."""
    if isinstance(given, Mapping):
        by_name = {str(name): weight for name, weight in given.items()}
        if by_name.keys() != set(layers.names):
            raise InputError(f"`layer_prior` must have a weight for each of {', '.join(layers.names)}")
        given = [by_name[name] for name in layers.names]
    try:
        weights = np.ones(len(layers)) if given is None else np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        weights = np.zeros(0)
    if weights.shape != (len(layers),) or not (np.isfinite(weights).all() and (weights > 0).all()):
        raise InputError(f"`layer_prior` must be one positive weight for each of the {len(layers)} layers")
    weights = weights / weights.max()
    if half_life is None:
        return weights
    # no weight may underflow to 0: a vertex may have no other layer
    return np.maximum(weights * 0.5 ** (np.arange(len(layers))[::-1] / half_life), _LEAST)


def _deviations(layers: Layers, weights: np.ndarray, damping: float, teleport: np.ndarray) -> np.ndarray:
    """Compute the distances of the layers' PageRanks from their median, divided by the median distance."""
    ranks = np.stack(
        [PageRank(damping, tol=1e-8).fit_predict(graph, teleport=teleport) for graph in layers.graphs], axis=1
    )
    middle = _weighted_median(ranks, weights)
    far = np.abs(ranks - middle[:, None] / middle.sum()).sum(axis=0)
    # ranks are accurate to 1e-8: layers closer than a millionth are considered equal
    return far / max(_weighted_median(far[None], weights)[0], 1e-6)


def _without(layers: Layers, left_out: np.ndarray) -> Layers:
    """Return the layers, with all links of the excluded ones removed."""
    empty = Graph.from_edges([], [], n=layers.n, names=layers.vertex_names)
    graphs = (empty if out else graph for graph, out in zip(layers.graphs, left_out.tolist(), strict=True))
    return replace(layers, graphs=tuple(graphs))


def _prior(layers: Layers, hulls: Hulls, weights: np.ndarray, by_links: bool) -> np.ndarray:
    """Return prior weights of all candidates, summing to 1 for each vertex; equal for the corners of a cut hull.

    With ``by_links`` they are multiplied by the weight of the vertex's links in the layer.
    """
    mine = np.where(hulls.layer >= 0, weights[hulls.layer], 1.0)
    vertex = np.repeat(np.arange(layers.n), np.diff(hulls.first))
    if by_links:
        mine *= np.stack([graph.out_weight for graph in layers.graphs])[hulls.layer, vertex]
    return mine / np.bincount(vertex, mine, layers.n)[vertex]


def _median(problem: Agreement, choice: Choice, weights: np.ndarray, tol: float) -> Choice:
    """Replace the ranks of a choice by the weighted median of the layers' ranks."""
    alone = [
        problem.ranks(problem.mix((problem.hulls.layer == k).astype(float)), choice.ranks, tol)
        for k in np.flatnonzero(weights)
    ]
    ranks = _weighted_median(np.stack([each for each, _ in alone], axis=1), weights[weights > 0])
    # the error of the median is at most the sum of the layers' errors, and normalisation at most doubles it
    error = 2 * sum(each for _, each in alone) / ranks.sum()
    ranks = ranks / ranks.sum()
    return choice._replace(ranks=ranks, error=error, value=problem.value(ranks, choice.costs))


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted median of each row, with a weight for each column; the midpoint of two if exactly half lies below.

    Examples
    --------
    >>> _weighted_median(np.array([[1.0, 5.0, 7.0]]), np.array([2.0, 1.0, 1.0])).tolist()
    [3.0]
    """
    order = np.argsort(values, axis=1)
    reached = np.cumsum(weights[order], axis=1)
    half = reached[:, -1:] / 2
    places = [np.argmax(reached > half * factor, axis=1) for factor in (1 - 1e-12, 1 + 1e-12)]
    found = [np.take_along_axis(values, order, axis=1)[np.arange(len(values)), at] for at in places]
    return (found[0] + found[1]) / 2


def _of_layers(
    layers: Layers, hulls: Hulls, weights: np.ndarray, corners: dict[int, np.ndarray]
) -> np.ndarray:
    found = np.zeros((layers.n, len(layers)))
    vertex = np.repeat(np.arange(layers.n), np.diff(hulls.first))
    plain = hulls.layer >= 0
    found[vertex[plain], hulls.layer[plain]] = weights[plain]
    for i, mixes in corners.items():
        mine = layers.hulls.layer[layers.hulls.first[i] : layers.hulls.first[i + 1]]
        if len(mine):
            found[i, mine] = weights[hulls.first[i] : hulls.first[i + 1]] @ mixes
    return found


def _consensus_graph(layers: Layers, problem: Agreement, mixture: np.ndarray) -> Graph:
    h = problem.hulls
    sources = np.repeat(np.arange(layers.n, dtype=h.indices.dtype), np.diff(h.indptr))
    return build(Edges(sources, h.indices, mixture, layers.n, layers.vertex_names), True, "sum", "keep")


def cut_hulls(
    hulls: Hulls, base: np.ndarray, damping: float, keep: Mapping[int, Pairs], graph: Graph
) -> tuple[Hulls, dict[int, np.ndarray]]:
    """Cut the hulls of some vertices by orders; also return the corners as weights of the layers' candidates.

    A hull that already satisfies its orders is unchanged and has no corners here.
    """
    corners = {i: _corners(hulls, base, damping, i, pairs, graph) for i, pairs in sorted(keep.items())}
    corners = {i: found for i, found in corners.items() if found.size}
    return (_recut(hulls, corners, keep) if corners else hulls), corners


def _corners(
    hulls: Hulls, base: np.ndarray, damping: float, i: int, pairs: Pairs, graph: Graph
) -> np.ndarray:
    columns, candidates = _row(hulls, i, pairs)
    shares, names = damping * candidates, columns.tolist()
    # a vertex with orders only is cut from the hull of all distributions, even if all satisfy the orders
    corners, is_cut = np.eye(len(shares)), hulls.first[i] == hulls.first[i + 1]
    for a, b in pairs:
        lead = np.full(len(shares), base[a] - base[b])
        for vertex, sign in ((a, 1.0), (b, -1.0)):
            if vertex in names:
                lead += sign * shares[:, names.index(vertex)]
        lead = corners @ lead
        is_cut |= bool((lead < -ROUNDING).any())
        corners = _cut(corners, lead)
        if not len(corners):
            raise InputError(
                f"no mix of its layers lets vertex {graph.label(i)!r} put {graph.label(a)!r} at or above "
                f"{graph.label(b)!r}: remove that order"
            )
        if len(corners) > MOST_CORNERS:
            raise InputError(f"vertex {graph.label(i)!r} has too many orders to keep at once: give fewer")
    return corners if is_cut else np.empty((0, 0))


def _cut(corners: np.ndarray, lead: np.ndarray) -> np.ndarray:
    """Return the corners with a lead of at least 0, up to rounding, and the points of lead 0 on edges to the others."""
    inside, outside = lead >= -ROUNDING, lead < -ROUNDING
    kept = [corners[inside]]
    for p in np.flatnonzero(lead > 0):
        share = lead[p] / (lead[p] - lead[outside])
        kept.append((1 - share)[:, None] * corners[p] + share[:, None] * corners[outside])
    return np.unique(np.concatenate(kept), axis=0)


def _row(hulls: Hulls, i: int, pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns and candidates of a row; without candidates, each vertex in its orders is one."""
    if hulls.first[i] < hulls.first[i + 1]:
        return hulls.indices[hulls.indptr[i] : hulls.indptr[i + 1]], row_shares(hulls, i)
    named = np.unique(np.array(pairs, dtype=hulls.indices.dtype))
    return named, np.eye(len(named))


def row_shares(hulls: Hulls, i: int) -> np.ndarray:
    """Return the candidates of a row over the columns of its union."""
    low, high = hulls.indptr[i], hulls.indptr[i + 1]
    found = np.zeros((hulls.first[i + 1] - hulls.first[i], high - low))
    for u in range(low, high):
        inside = slice(hulls.entries[u], hulls.entries[u + 1])
        found[hulls.candidate[inside], u - low] = hulls.share[inside]
    return found


def _recut(hulls: Hulls, corners: Mapping[int, np.ndarray], keep: Mapping[int, Pairs]) -> Hulls:
    """Replace some rows of the hulls by their corners, which belong to no layer (−1)."""
    n, cut = len(hulls.first) - 1, np.array(list(corners))
    place = np.repeat(np.arange(len(hulls.indices)), np.diff(hulls.entries))
    row = np.repeat(np.arange(n, dtype=hulls.indices.dtype), np.diff(hulls.indptr))[place]
    kept = ~np.isin(row, cut)
    parts = [(row[kept], hulls.indices[place[kept]], hulls.candidate[kept], hulls.share[kept])]
    for i, mixes in corners.items():
        names, candidates = _row(hulls, i, keep[i])
        shares = mixes @ candidates
        candidate, at = np.nonzero(shares)
        columns = names[at]
        parts.append((np.full_like(columns, i), columns, candidate, shares[candidate, at]))
    sizes, vertex = np.diff(hulls.first), np.repeat(np.arange(n), np.diff(hulls.first))
    sizes[cut] = [len(mixes) for mixes in corners.values()]
    layer = np.full(sizes.sum(), -1, dtype=hulls.layer.dtype)
    layer[~np.isin(np.repeat(np.arange(n), sizes), cut)] = hulls.layer[~np.isin(vertex, cut)]
    return gathered(parts, sizes, layer)


class RankOrder:
    """Penalty on violated orders: ``Σ (max(0, μ + ς·x)² − μ²)/(2ς)`` with the lead ``x = n·(w_b − w_a)`` of b over a.

    At convergence the multipliers μ are those of the constrained minimum. The stiffness ς is small at first, because a
    stiff penalty leads to short steps; Anderson extrapolation over several rounds compensates for it.

    Parameters
    ----------
    pairs : sequence of pairs
        Vertices a, b with the constraint ``w_a ≥ w_b``.
    n : int
        Number of vertices.

    Examples
    --------
    >>> cost = RankOrder([(0, 1)], 2)
    >>> value, slope = cost(np.array([0.25, 0.75]))
    >>> cost.violation(np.array([0.25, 0.75])), slope.tolist()
    (1.0, [-1.0, 1.0])
    """

    def __init__(self, pairs: Pairs, n: int) -> None:
        self.a, self.b = (np.array([pair[k] for pair in pairs]) for k in (0, 1))
        self.n, self.stiffness = n, 1.0 / n
        self.multipliers = np.zeros(len(pairs))
        self._guess, self._last, self._stuck = Anderson(), np.inf, 0

    def __call__(self, ranks: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the cost and its gradient."""
        force = self._forces(ranks)
        value = (force**2 - self.multipliers**2).sum() / (2 * self.stiffness)
        gradient = np.zeros(self.n)
        np.add.at(gradient, self.b, self.n * force)
        np.add.at(gradient, self.a, -self.n * force)
        return float(value), gradient

    def _leads(self, ranks: np.ndarray) -> np.ndarray:
        return self.n * (ranks[self.b] - ranks[self.a])

    def _forces(self, ranks: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, self.multipliers + self.stiffness * self._leads(ranks))

    def violation(self, ranks: np.ndarray) -> float:
        """Largest lead of a b over its a, in units of the mean rank 1/n; 0 if all orders hold."""
        return float(max(0.0, self._leads(ranks).max()))

    def is_settled(self, ranks: np.ndarray, tol: float) -> bool:
        """Return whether all orders hold within ``tol`` and inactive ones have no multiplier."""
        return bool(np.abs(self._forces(ranks) - self.multipliers).max() <= tol * self.stiffness)

    def advance(self, ranks: np.ndarray) -> None:
        """Update the multipliers; after several rounds with little progress, increase the stiffness."""
        broken = self.violation(ranks)
        self._stuck = self._stuck + 1 if broken > GAIN * self._last else 0
        self._last = broken
        if self._stuck >= PATIENCE:
            self.stiffness, self._stuck = STIFFER * self.stiffness, 0
            self._guess.forget()
        guessed = self._guess(self.multipliers, self._forces(ranks), np.ones(len(self.multipliers)))
        self.multipliers = np.maximum(guessed, 0.0)
