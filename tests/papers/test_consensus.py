"""The consensus experiments at small scale: data, study, stories, snapshots."""

from itertools import pairwise

import networkx as nx
import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array
from scipy.special import softmax
from scipy.stats import kendalltau
from sklearn.utils import Bunch

from apexrank.divergences import KL, Squared
from apexrank.errors import InputError
from apexrank.graph import ConsensusRank
from apexrank_papers.consensus import collusion, data, recency, snapshots, stories, study, theorems
from apexrank_papers.consensus.polytope import PolytopeDivergence
from apexrank_papers.record import recorded
from apexrank_papers.result import ANSWERS

WORDS = set(ANSWERS.values())
SMALL = {"n": 60, "groups": ("junk layers", "colluding junk"), "draws": 3, "n_jobs": 1}
DAYS = {"n": 50, "days": 4, "window": 3, "draws": 4, "n_jobs": 1}


@pytest.fixture(scope="module")
def small_study():
    return study.consensus_study(**SMALL)


@pytest.fixture(scope="module")
def brewed():
    return stories.consensus_brew(n=12, degree=4, draws=2)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def links(rng):
    return data.true_graph(100, rng).links


def named_mean(layers):
    """Mean of the layers' transition matrices as a networkx graph."""
    found = nx.DiGraph()
    opinions = {}
    for sources, targets, marks in layers:
        for reviewer in dict.fromkeys(sources):
            mine = {b: m for a, b, m in zip(sources, targets, marks, strict=True) if a == reviewer}
            opinions.setdefault(reviewer, []).append({b: m / sum(mine.values()) for b, m in mine.items()})
    for reviewer, given in opinions.items():
        for target in given[0]:
            found.add_edge(reviewer, target, weight=sum(each[target] for each in given) / len(given))
    return found


class TestData:
    def test_links_prefer_the_own_community_and_popular_vertices(self, rng):
        truth = data.true_graph(300, rng)
        same = truth.community[:, None] == truth.community[None, :]
        assert 0.6 < (truth.links * same).sum() / truth.links.sum() < 0.8
        assert kendalltau(truth.links.sum(axis=0), truth.popularity)[0] > 0.3

    def test_chances(self):
        found = data.chances(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 0, 1, 1]), 0)
        np.testing.assert_allclose(found, [0, 0.7, 0.3 * 3 / 7, 0.3 * 4 / 7])

    def test_noise_loses_half_and_moves_half(self, links, rng):
        kept, all_links = [], []
        for _ in range(30):
            view = data.noisy(links, 0.4, rng)
            kept.append((view * links).sum() / links.sum())
            all_links.append(view.sum() / links.sum())
        assert abs(np.mean(kept) - 0.6) < 0.03
        assert abs(np.mean(all_links) - 0.8) < 0.03
        np.testing.assert_array_equal(data.noisy(links, 0.0, rng), links)

    def test_junk(self, links, rng):
        np.testing.assert_array_equal(data.even_junk(links, rng).sum(axis=1), 99)
        np.testing.assert_array_equal(data.wide_junk(links, rng).sum(axis=1), data.WIDE)
        np.testing.assert_array_equal(data.random_junk(links, rng).sum(axis=1), links.sum(axis=1))
        np.testing.assert_array_equal(data.narrow_junk(links, rng).sum(axis=1), 2)
        same = data.same_junk(links, rng)
        assert np.count_nonzero(same.any(axis=0)) == data.SAME
        assert same.sum() == 100 * data.SAME
        assert data.random_junk(links, rng).diagonal().sum() == 0

    def test_layers_of_junk(self, links, rng):
        drawn = data.junk_layers(data.same_junk)(links, rng)
        colluding = data.junk_layers(data.same_junk, colluding=True)(links, rng)
        assert len(drawn) == len(colluding) == 5
        assert (drawn[3] != drawn[4]).any()
        np.testing.assert_array_equal(colluding[3], colluding[4])
        bad = [(view == 1 - np.eye(100)).all(axis=1) for view in data.junk_rows(data.even_junk)(links, rng)]
        assert all(20 < each.sum() < 60 for each in bad)
        topics = np.array([(view.sum(axis=1) < 50) for view in data.topic_layers(data.even_junk)(links, rng)])
        np.testing.assert_array_equal(topics.sum(axis=0), 1)

    def test_pagerank_beside_networkx(self, links):
        links[3] = 0.0
        graph = nx.from_numpy_array(links, create_using=nx.DiGraph)
        expected = nx.pagerank(graph, alpha=data.DAMPING, tol=1e-12, max_iter=1000)
        np.testing.assert_allclose(data.pagerank(data.shares(links)), list(expected.values()), atol=1e-9)

    def test_people(self, rng):
        people = data.draw_people(24, 16, rng)
        assert people.roles.count("musician") == 16
        work, music = (people.networks[name].any(axis=1) for name in ("work", "music"))
        assert work[:24].all()
        assert music[24:].mean() > 0.9  # noise may take the last link
        assert not work.all()
        sources, targets = people.contacts("music")
        assert len(sources) == len(targets) == people.networks["music"].sum()
        assert people.networks["music"][people.names.index(sources[0]), people.names.index(targets[0])] == 1


class TestCorroborated:
    @pytest.mark.parametrize("normalised", [False, True], ids=["plain", "normalised"])
    def test_fixed_point(self, rng, normalised):
        views = [data.noisy(data.true_graph(20, rng).links, 0.3, rng) for _ in range(3)]
        views[0][5] = views[1][5] = views[2][5] = 0.0  # no opinion at all
        views[0][6] = views[1][6] = 0.0  # one
        views[2][7] = 0.0
        w, found = data.corroborated(views, normalised=normalised, tol=1e-10)
        t = [data.shares(view) for view in views]
        for i in range(20):
            spoken = [k for k in range(3) if t[k][i].any()]
            if len(spoken) < 2:
                assert found[i].tolist() == [float(k in spoken) for k in range(3)]
                continue
            exponents = []
            for k in spoken:
                rest = [j for j in spoken if j != k]
                others = sum(found[i, j] * t[j][i] for j in rest) / sum(found[i, j] for j in rest)
                hat, reference = 0.85 * t[k][i] + 0.15 / 20, 0.85 * others + 0.15 * w
                gain = (hat * np.log(20 * reference)).sum()
                exponents.append(gain / (0.3 * (hat * np.log(20 * hat)).sum()) if normalised else gain)
            np.testing.assert_allclose(found[i, spoken], softmax(exponents), atol=1e-8)
        mix = sum(found[:, k, None] * t[k] for k in range(3))
        np.testing.assert_allclose(w, data.pagerank(mix), atol=1e-12)

    @pytest.mark.parametrize("junk", [data.even_junk, data.same_junk], ids=["even", "concentrated"])
    def test_beside_the_estimator(self, links, rng, junk):
        views = data.junk_layers(junk)(links, rng)
        views[0][5] = 0.0
        w, weights = data.corroborated(views, tol=1e-10)
        rank = ConsensusRank("corroborate", tol=1e-10).fit(data.layers_of(views))
        np.testing.assert_allclose(rank.scores_, w, atol=1e-8)
        np.testing.assert_allclose(rank.layer_weights_, weights, atol=1e-6)

    def test_equal_layers_have_equal_weights(self, links):
        ranks, weights = data.corroborated([links, links])
        np.testing.assert_allclose(weights, 0.5)
        np.testing.assert_allclose(ranks, data.pagerank(data.shares(links)), atol=1e-12)


class TestStudy:
    def test_tables(self, small_study):
        settings = [*study.GROUPS["junk layers"], *study.GROUPS["colluding junk"]]
        cells = len(settings) * len(study.METHODS) * len(study.MEASURES)
        assert small_study.table.height == cells
        assert small_study.view["setting"].to_list() == settings * len(study.MEASURES)
        assert small_study.view.columns[2:] == [study.MEAN, *study.SHOWN]
        assert {verdict.word for verdict in small_study.verdicts} <= WORDS
        assert len(small_study.verdicts) == len(study.JUDGED) * 2 * 2
        assert len(small_study.figure.axes) == 2

    def test_baseline_is_beside_itself(self, small_study):
        base = small_study.table.filter(method=study.MEAN)
        assert (base["difference"] == 0).all()
        assert (base["difference_noise"] == 0).all()

    def test_same_seeds_same_numbers_whatever_else_is_run(self, small_study):
        again = study.consensus_study(**SMALL | {"groups": ("colluding junk",)})
        settings = list(study.GROUPS["colluding junk"])
        assert again.table.equals(small_study.table.filter(pl.col("setting").is_in(settings)))

    def test_what_holds_in_any_size(self, small_study):
        means = {
            (setting, method): mean
            for setting, method, mean in small_study.table.filter(measure="L1 distance")
            .select("setting", "method", "mean")
            .rows()
        }
        for setting in study.GROUPS["junk layers"]:
            for method in (study.PLAIN, study.CORROBORATE):
                assert means[setting, method] < 0.8 * means[setting, study.MEAN]
        # a layer that spreads evenly agrees with everybody
        even = "junk layers, even"
        assert means[even, study.BLEND] > 1.3 * means[even, study.MEAN]
        # two identical junk layers support each other
        colluding = "junk layers, 2 of 5 colluding"
        assert means[colluding, study.CORROBORATE] > means[colluding, study.MEAN]
        # the median withstands a minority, and nothing withstands a majority
        for bad in (1, 2):
            setting = f"junk layers, {bad} of 5 colluding"
            assert means[setting, study.MEDIAN] < 0.8 * means[setting, study.UNION]
        majority = [means["junk layers, 3 of 5 colluding", method] for method in study.CONSENSUS]
        assert min(majority) > 2 * means["junk layers, 1 of 5 colluding", study.MEDIAN]

    def test_oracle_is_the_best_single_layer(self, small_study):
        for measure, sign in study.MEASURES.items():
            part = small_study.table.filter(measure=measure)
            best, average = (part.filter(method=method)["mean"] for method in (study.BEST, study.AVERAGE))
            assert (sign * (best - average) >= 0).all()

    def test_measures(self, rng):
        ranks, truth = rng.random(120), rng.random(120)
        top = [set(np.argsort(each)[-50:]) for each in (ranks, truth)]
        expected = [np.abs(ranks - truth).sum(), kendalltau(ranks, truth)[0], len(top[0] & top[1]) / 50]
        np.testing.assert_allclose(study.measures(ranks, truth)[[0, 1, 3]], expected)

    @pytest.mark.parametrize(
        ("gaps", "word"),
        [((-0.1, -0.1), "yes"), ((-0.1, 0.0), "cannot tell"), ((-0.1, 0.1), "no")],
        ids=["better", "one unclear", "one worse"],
    )
    def test_verdicts(self, rng, gaps, word):
        values = np.zeros((6, 2, len(study.METHODS), len(study.MEASURES)))
        noise = np.array([-1, 1, -1, 1, -1, 1]) * 1e-3
        values[:, :, study.METHODS.index("blend"), 0] = np.array(gaps) + noise[:, None]
        verdict = study._better(values, "blend", "junk vertices", "L1 distance")
        assert verdict.word == word

    def test_bad_input(self):
        with pytest.raises(InputError, match="`groups` must be some of link noise"):
            study.consensus_study(groups=["noise"])
        with pytest.raises(InputError, match="at least 2"):
            study.consensus_study(draws=1)


class TestStories:
    def test_reviewers(self):
        result = stories.consensus_reviewers()
        assert [verdict.word for verdict in result.verdicts] == ["yes"] * 3
        weights = result.table.select(pl.sum_horizontal(pl.col("^weight of .*$")))
        np.testing.assert_allclose(weights.to_series(), 1.0)
        equal = result.table.filter(way=stories.EQUAL)
        marks = [stories._marks(given) for given in stories.REVIEWS.values()]
        expected = nx.pagerank(named_mean(marks), alpha=0.85, tol=1e-12)
        for name, rank in equal.select("reviewer", "rank").rows():
            assert abs(rank - expected[name]) < 1e-6

    def test_networks(self):
        result = stories.consensus_networks(draws=3)
        assert result.table["way"].to_list() == list(stories.JOINED)
        shares = result.table.select(pl.sum_horizontal(pl.col("^share of .*$"))).to_series()
        np.testing.assert_allclose(shares, 1.0, atol=1e-6)
        union, corroborated = (
            result.table.filter(way=way)["share of friends"][0]
            for way in (stories.UNION, stories.CORROBORATE)
        )
        assert corroborated < union
        assert stories.consensus_networks(draws=3).table.equals(result.table)

    def test_who_is_not_in_a_network_has_no_weight_there(self, rng):
        people = data.draw_people(12, 8, rng)
        rank = ConsensusRank(tol=1e-6).fit({name: people.contacts(name) for name in data.NETWORKS})
        for k, network in enumerate(rank.layers_):
            absent = [
                name
                for name, row in zip(people.names, people.networks[network], strict=True)
                if not row.any()
            ]
            assert absent
            assert (rank.layer_weights_[np.isin(rank.names_, absent), k] == 0).all()

    def test_brew(self, brewed):
        assert [verdict.word for verdict in brewed.verdicts] == ["differs", "yes", "yes"]
        assert brewed.table.shape == (2 * len(stories.BETAS), 7)
        last = brewed.table.filter(beta=stories.BETAS[-1])
        # the identity is not trivial: both sides are far from 0
        assert (last[stories.RESIDUAL] < 0.05 * last["stationarity"]).all()
        assert (last["L1 from PageRank"] > 0.05).all()


class TestSnapshots:
    def test_tables(self):
        result = snapshots.consensus_snapshots(**DAYS)
        assert result.view["method"].to_list() == list(snapshots.METHODS)
        changes, levels = 2 * (DAYS["days"] - 1), 2 * DAYS["days"]
        assert result.table.height == len(snapshots.METHODS) * (changes + levels)
        assert {verdict.word for verdict in result.verdicts} <= WORDS
        steady = [v.word for v in result.verdicts if v.row.endswith("change than the day")]
        assert steady == ["yes", "yes"]
        assert snapshots.consensus_snapshots(**DAYS).table.equals(result.table)

    def test_without_noise_and_drift_all_is_the_truth(self):
        found = snapshots._measure_draw(30, 2, 2, 0.0, 0.0, seed=0)
        np.testing.assert_allclose(found[:, 1, :3], 0.0, atol=1e-5)
        assert np.isnan(found[:, 0, :2]).all()
        assert (found[:, :, 3] > 0.99).all()

    def test_history_drifts(self, rng):
        days = snapshots.history(100, 10, 0.5, 0.05, rng)
        first = days[0][0]
        left = [(first * links).sum() / first.sum() for links, _ in days]
        assert left == sorted(left, reverse=True)
        assert 0.3 < left[-1] < 0.8
        assert all(links.sum() == first.sum() for links, _ in days)

    def test_bad_input(self):
        with pytest.raises(InputError, match="`days` and `window` must be at least 2, got 1 and 7"):
            snapshots.consensus_snapshots(days=1)


class TestRecency:
    def test_slices_of_made_up_ratings(self, monkeypatch):
        rng = np.random.default_rng(0)
        A = csr_array(rng.integers(-3, 10, (60, 60)) * (rng.random((60, 60)) < 0.4))
        made = Bunch(adjacency=A, times=rng.permutation(A.nnz).astype(float))
        monkeypatch.setattr(recency, "load_bitcoin_otc", lambda: made)
        result = recency.consensus_recency(slices=4, half_lives=(1.0, 2.0))
        assert result.view.shape == (7, 4)
        assert len(result.verdicts) == 2
        # the layers of both halves are all positive ratings, in the order of time
        layers = [*recency._slices(1, 4), *recency._slices(2, 4)]
        assert (sum(layers) != A.multiply(A > 0)).nnz == 0
        when = csr_array((made.times + 1, A.indices, A.indptr), shape=A.shape)
        ends = [(float(t.data.min()), float(t.data.max())) for t in (when.multiply(x != 0) for x in layers)]
        assert all(before[1] < after[0] for before, after in pairwise(ends))
        with pytest.raises(InputError, match="`half` must be 1 or 2"):
            recency.consensus_recency(half=3)

    def test_measures(self, monkeypatch):
        monkeypatch.setattr(recency, "TOP", 2)
        scores, received, seen = np.array([4.0, 3, 2, 1]), np.array([0, 5, 4, 1]), np.array([1, 1, 1, 0]) > 0
        common, share, order = recency._foretold(scores, received, seen)
        assert (common, share, order) == pytest.approx((0.5, 0.5, -0.5))


class TestPolytope:
    @pytest.fixture
    def atom(self, rng):
        return PolytopeDivergence(rng.dirichlet(np.ones(4), size=7))

    @staticmethod
    def inside(atom, rng, count):
        return rng.dirichlet(np.full(len(atom.corners), 3.0), size=count) @ atom.corners

    def test_corners_of_the_simplex_give_kl(self, rng):
        atom = PolytopeDivergence(np.eye(5))
        x, y = rng.dirichlet(np.full(5, 2.0), size=(2, 20))
        np.testing.assert_allclose(atom.divergence(x, y), KL().divergence(x, y), atol=1e-9)
        np.testing.assert_allclose(atom.grad_inv(atom.grad(x)), x, atol=1e-11)

    def test_conjugacy_and_strong_convexity(self, atom, rng):
        x, y = self.inside(atom, rng, 12), self.inside(atom, rng, 12)
        theta = atom.grad(x)
        np.testing.assert_allclose(atom.grad_inv(theta), x, atol=1e-11)
        # φ(x) is a maximum over θ: no other θ gives more
        other = theta + rng.normal(size=theta.shape)
        assert ((other * x).sum(axis=1) - atom.conjugate(other) <= atom.phi(x) + 1e-12).all()
        way = y - x
        step = 1e-5
        slopes = (atom.phi(x + step * way) - atom.phi(x - step * way)) / (2 * step)
        np.testing.assert_allclose(slopes, (theta * way).sum(axis=1), atol=1e-7)
        assert (atom.divergence(x, y) >= atom.modulus / 2 * (way**2).sum(axis=1) - 1e-12).all()

    def test_derivatives_of_the_disagreement(self, atom, rng):
        """``∂V/∂t_i = w_i(∇φ(t_i) − s)`` with Poisson's prices s, for a divergence that is not separable."""
        T = self.inside(atom, rng, 4)

        def cost(T):
            w = theorems.stationary(T)
            return float(w @ atom.divergence(T, w))

        w = theorems.stationary(T)
        right = atom.grad(w) - atom.phi(T)
        s = np.linalg.lstsq(np.eye(4) - T, right - w @ right, rcond=None)[0]
        for i in range(4):
            way = np.zeros_like(T)
            way[i] = self.inside(atom, rng, 1)[0] - T[i]
            slope = (cost(T + 1e-5 * way) - cost(T - 1e-5 * way)) / 2e-5
            assert slope == pytest.approx(w[i] * (atom.grad(T[i]) - s) @ way[i], abs=1e-7)

    def test_refused(self, atom):
        with pytest.raises(InputError, match="inside the hull"):
            atom.grad(np.array([1.0, 0.0, 0.0, 0.0]))
        with pytest.raises(InputError, match="unknown `divergence` Polytope"):
            ConsensusRank("blend", divergence=atom).fit([np.eye(4)])


class TestTheorems:
    def test_verdicts(self):
        found = {verdict.row: verdict.word for verdict in theorems.consensus_theorems(draws=80).verdicts}
        assert found == {row: each.word for row, each in recorded()["consensus-theorems"].items()}

    @pytest.mark.parametrize("least", [0.0, 0.05, 0.2])
    def test_bounded_weights(self, rng, least):
        for _ in range(5):
            rho, d, c = rng.dirichlet(np.ones(5)), 5 * rng.random(5), float(rng.choice([0.3, 2.0, 20.0]))
            w = theorems.bounded_weights(rho, d, c, least)
            assert w.sum() == pytest.approx(1)
            assert w.min() >= least - 1e-15
            # first-order conditions: equal derivatives where w is free, no smaller ones where it is bounded
            slopes = d + c * np.log(w / rho)
            free = w > least + 1e-12
            if free.any():
                assert np.ptp(slopes[free]) < 1e-9
                assert (slopes[~free] >= slopes[free].max() - 1e-9).all()
        with pytest.raises(InputError, match="`least` must be"):
            theorems.bounded_weights(rho, d, c, 0.3)

    def test_minimum_of_the_surrogate(self, rng):
        T, rho = theorems.recommendations(5, rng), rng.dirichlet(np.ones(5))
        for atom in (KL(), Squared()):
            own, lower, d = theorems.surrogate(atom, T, rho, 3.0)
            assert own == pytest.approx(rho @ atom.divergence(T, rho))
            tried = rng.dirichlet(np.ones(5), size=500)
            assert (tried @ d + 3.0 * atom.divergence(tried, rho)).min() >= lower - 1e-12
        # J of KL is reached at w ∝ ρ·exp(−d/c)
        d = KL().divergence(T, rho)
        w = softmax(np.log(rho) - d / 3.0)
        assert w @ d + 3.0 * KL().divergence(w, rho) == pytest.approx(
            theorems.surrogate(KL(), T, rho, 3.0)[1]
        )

    def test_saddle(self, rng):
        """The value is V of the walk, and the prices make PageRank the best answer (5.35)."""
        T = theorems.recommendations(6, rng)
        w = theorems.stationary(T)
        cost, prices = theorems.saddle(T)
        assert cost == pytest.approx(w @ KL().divergence(T, w))
        np.testing.assert_allclose(softmax((T * np.log(T)).sum(axis=1) + prices - T @ prices), w, atol=1e-10)


class TestCollusion:
    def test_tables(self, monkeypatch):
        monkeypatch.setattr(collusion, "STRENGTHS", (0.1, 1.0))
        monkeypatch.setattr(collusion, "COLLUDING", (0, 2, 5))
        result = collusion.consensus_collusion(graphs=["synthetic"], n=60, draws=2, n_jobs=1)
        assert result.table.height == 3 * 2 * len(collusion.METHODS) * 2
        assert result.view.height == 2 * 3
        worst = {
            (measure, bad, method): mean
            for _, measure, bad, method, mean in collusion.worst_case(result.table).rows()
        }
        for method in (collusion.TRIMMED, collusion.BOTH):
            assert worst[collusion.PLACE, 2, method] < worst[collusion.PLACE, 2, collusion.UNION]
        assert len(result.figure.axes) == 2

    def test_pushed(self, rng):
        view = csr_array(data.true_graph(40, rng).links)
        attacked = collusion.pushed(view, 3, 0.5, rng).toarray()
        changed = (attacked != view.toarray()).any(axis=1)
        assert 10 < changed.sum() < 30
        assert not changed[3]
        assert (attacked[changed].sum(axis=1) == attacked[changed, 3]).all()
        assert collusion._judged(np.array([0.1, 0.7, 0.2]), np.array([0.2, 0.6, 0.2]), 1) == (
            1.0,
            pytest.approx(0.2),
        )

    def test_bad_input(self):
        with pytest.raises(InputError, match="`graphs` must be some of synthetic"):
            collusion.consensus_collusion(graphs=["web"])
