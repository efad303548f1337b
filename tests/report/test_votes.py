"""The report on merged votes: its numbers equal those of the aggregation, and its verdict agrees with them."""

import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from apexrank.aggregation.pairwise import pairwise_counts
from apexrank.aggregation.rank_aggregation import aggregate
from apexrank.errors import InputError
from apexrank.report import summarise_votes
from apexrank.report.charts import FONT, width_of
from apexrank.report.page import number as number_text
from apexrank.report.page import percent
from apexrank.report.votes import methods as votes_methods
from apexrank.report.votes import page as votes_page
from apexrank.report.votes import voters as votes_voters
from apexrank.report.votes.methods import SUMS, comparable
from apexrank.report.votes.page import page
from apexrank.report.votes.summary import METHODS
from apexrank.report.votes.voters import count_majorities, find_camps, smith_set

NAMES = ["tea", "rum", "ale", "gin", "milk"]


def poll(seed=0, voters=60, gaps=0.0, **options):
    rng = np.random.default_rng(seed)
    scores = rng.normal(np.array([1.0, 0.8, 0.2, 0.1, 0.0]), size=(voters, 5))
    scores[rng.random(scores.shape) < gaps] = np.nan
    scores[np.isnan(scores).all(axis=1)] = 0.0
    return aggregate(scores, items=NAMES, **options), scores


def orders(text, weights, **options):
    """Ballots such as "abc bca", each cast the given number of times."""
    return aggregate([list(order) for order in text.split()], weights, kind="orders", **options)


def kind_of(result, **options):
    return summarise_votes(result, bootstrap=200, clusters=None, **options).verdict


class TestNumbers:
    @pytest.mark.parametrize("gaps", [0.0, 0.2])
    @pytest.mark.parametrize("own", METHODS)
    def test_ranks_are_those_of_each_method(self, own, gaps):
        result, scores = poll(gaps=gaps, method=own)
        summary = summarise_votes(result, bootstrap=20, clusters=None)
        assert next(iter(summary.methods)) == own
        assert set(summary.methods) == set(METHODS)
        for name, each in summary.methods.items():
            expected = aggregate(scores, items=NAMES, method=name)
            assert each.ranks.tolist() == expected.ranks.tolist()
            np.testing.assert_allclose(each.scores, expected.scores)

    def test_options_of_the_result_are_kept(self):
        _, scores = poll(gaps=0.3)
        scores *= np.geomspace(1, 100, 60)[:, None]
        scores[:50, 0] = np.nan
        options = {"missing": "last", "normalize": "minmax", "k": 3.0, "min_support": 700}
        result = aggregate(scores, range(60), method="borda", **options)
        assert result.low_support.any()
        summary = summarise_votes(result, bootstrap=0)
        assert set(summary.methods) == set(METHODS)
        for name, each in summary.methods.items():
            expected = aggregate(scores, range(60), method=name, **options)
            assert each.ranks.tolist() == expected.ranks.tolist()
            np.testing.assert_allclose(each.scores, expected.scores)

    def test_tau_between_methods(self):
        summary = summarise_votes(poll(4)[0], bootstrap=0)
        for i, first in enumerate(summary.methods.values()):
            for j, second in enumerate(summary.methods.values()):
                tau = kendalltau(first.ranks, second.ranks).statistic
                assert summary.taus[i, j] == pytest.approx(tau, abs=1e-12)
        pairs = summary.disagreements()
        names = list(summary.methods)
        assert {(a, b) for a, b, _ in pairs} == {
            (a, b)
            for a, b in itertools.combinations(names, 2)
            if summary.taus[names.index(a), names.index(b)] < 1
        }
        assert [tau for *_, tau in pairs] == sorted(tau for *_, tau in pairs)

    def test_draws_and_agreement_are_those_of_the_result(self):
        result, scores = poll(2)
        summary = summarise_votes(result, bootstrap=50, random_state=3)
        drawn = result.bootstrap(50, random_state=3)
        assert summary.drawn.ranks.tolist() == drawn.ranks.tolist()
        assert summarise_votes(result, bootstrap=drawn).drawn is drawn
        taus = [kendalltau(-result.ranks, row).statistic for row in scores]
        np.testing.assert_allclose(summary.voters.tau, taus)
        assert summary.voters.mean == pytest.approx(np.mean(taus))
        shares, ends = summary.voters.histogram(4)
        assert ends.tolist() == [-1, -0.5, 0, 0.5, 1]
        counts = [
            sum(ends[i] <= tau < ends[i + 1] or tau == 1 == ends[i + 1] for tau in taus) for i in range(4)
        ]
        np.testing.assert_allclose(shares, np.array(counts) / 60)
        most, least = summary.voters.extremes(3)
        np.testing.assert_allclose(summary.voters.tau[most], sorted(taus)[::-1][:3])
        np.testing.assert_allclose(summary.voters.tau[least], sorted(taus)[:3])
        assert summary.confidence == result.confidence

    def test_weights_are_repeated_ballots(self):
        texts, weights = "abcd bcda cabd dabc", [5, 4, 3, 2]
        repeated = [list(t) for t, w in zip(texts.split(), weights, strict=True) for _ in range(w)]
        one = summarise_votes(orders(texts, weights), bootstrap=0)
        many = summarise_votes(aggregate(repeated, kind="orders"), bootstrap=0)
        assert one.voters.mean == pytest.approx(many.voters.mean)
        np.testing.assert_allclose(one.majorities.shares, many.majorities.shares)
        np.testing.assert_allclose(one.voters.histogram()[0], many.voters.histogram()[0])
        assert one.verdict == many.verdict

    def test_ballots_that_say_nothing_are_counted(self):
        result = aggregate([[1, 1, 1], [3, 2, 1], [2, np.nan, 2], [0, 0, 0]], [1, 1, 1, 0])
        summary = summarise_votes(result, bootstrap=0)
        assert summary.voters.silent == 2
        assert "2 ballots rank no item above another." in summary.notes
        assert summarise_votes(aggregate([[2, 1], [1, 2]]), bootstrap=0).voters.silent == 0

    def test_methods_that_must_agree_are_shown_once(self):
        summary = summarise_votes(orders("abc bca cab", [3, 2, 2]), bootstrap=0)
        assert "borda" not in summary.methods
        assert "Borda is left out: here it is the same as Lovász–Bregman." in summary.notes
        assert "lovasz-bregman" not in summarise_votes(orders("abc bca", [3, 2], method="borda")).methods
        weighted = orders("abc bca cab", [3, 2, 2], points=[5, 1, 0])
        assert {"borda", "lovasz-bregman"} <= set(summarise_votes(weighted, bootstrap=0).methods)
        sums = summarise_votes(poll(method="combsum")[0], bootstrap=0)
        assert "lovasz-bregman" not in sums.methods
        assert "lovasz-bregman" in summarise_votes(poll(gaps=0.3, method="combsum")[0], bootstrap=0).methods

    @pytest.mark.parametrize("seed", range(6))
    def test_twins_do_agree(self, seed):
        rng = np.random.default_rng(seed)
        scores = rng.integers(0, 4, (7, 5)).astype(float)
        scores[rng.random(scores.shape) < 0.2] = np.nan
        scores[:, 0] = 1.0
        scores[0] = range(5)
        for options in ({"kind": "ranks"}, {"kind": "ranks", "missing": "last"}, {}, {"normalize": "borda"}):
            shifted = scores + (options.get("kind") == "ranks")
            results = {
                name: aggregate(shifted, method=name, **options) for name in (*METHODS, "combsum", "combmnz")
            }
            for first, second in itertools.combinations(results, 2):
                essences = [votes_methods._essence(results[first], name) for name in (first, second)]
                if essences[0] == essences[1]:
                    assert results[first].ranks.tolist() == results[second].ranks.tolist(), (
                        first,
                        second,
                        options,
                    )

    def test_plain_types(self):
        import json

        summary = summarise_votes(poll(gaps=0.1)[0], bootstrap=20, top=2)
        found = json.loads(json.dumps(summary.to_dict()))
        assert found["ranks"]["borda"] == {
            NAMES[i]: int(summary.methods["borda"].ranks[i]) for i in summary.shown
        }
        assert found["bootstrap"]["ranks"]["tea"]["first"] == summary.drawn.first[0]
        assert found["majorities"]["condorcet_winner"] == summary.result.condorcet_winner
        assert found["verdict"]["text"] == summary.verdict.text
        assert set(found["seconds"]) == {
            "methods",
            "bootstrap",
            "majorities",
            "agreement",
            "camps",
            "confidence",
        }

    def test_first_items_of_every_method_are_shown(self):
        rng = np.random.default_rng(0)
        result = aggregate(rng.standard_cauchy((30, 40)))
        summary = summarise_votes(result, bootstrap=0, top=3)
        order = np.argsort(result.ranks, kind="stable")
        assert summary.shown[:3].tolist() == order[:3].tolist()
        for each in summary.methods.values():
            assert set(np.argsort(each.ranks, kind="stable")[:3]) <= set(summary.shown.tolist())
        assert (np.diff(result.ranks[summary.shown]) >= 0).all()


class TestMajorities:
    @pytest.mark.parametrize("missing", ["ignore", "last"])
    def test_shares(self, missing):
        result, scores = poll(gaps=0.4, missing=missing)
        found = count_majorities(result, most=3)
        filled = np.where(np.isnan(scores), -np.inf if missing == "last" else np.nan, scores)[:, found.items]
        expected = (filled[:, :, None] > filled[:, None, :]).mean(axis=0)
        np.testing.assert_allclose(found.shares, expected)
        assert found.items.tolist() == np.argsort(result.ranks, kind="stable")[:3].tolist()

    @settings(max_examples=60, deadline=None)
    @given(
        st.integers(2, 6).flatmap(
            lambda n: st.lists(st.lists(st.integers(0, 3), min_size=n, max_size=n), min_size=1, max_size=6)
        )
    )
    def test_smith_set_is_the_smallest_that_beats_the_rest(self, table):
        result = aggregate(table)
        counts = pairwise_counts(result.ballots)
        n = len(counts)
        dominant = [
            set(group)
            for k in range(1, n + 1)
            for group in itertools.combinations(range(n), k)
            if all(counts[i, j] > counts[j, i] for i in group for j in set(range(n)) - set(group))
        ]
        assert set(smith_set(counts, result.ballots.total).tolist()) == dominant[0]
        found = count_majorities(result)
        assert set(found.smith.tolist()) == dominant[0]
        assert (found.winner is not None) == (len(dominant[0]) == 1)
        circles = any(
            counts[a, b] > counts[b, a] and counts[b, c] > counts[c, b] and counts[c, a] > counts[a, c]
            for a, b, c in itertools.permutations(range(n), 3)
        )
        if found.winner is None:
            assert (found.circle is not None) == circles
        if found.circle is not None:
            a, b, c = found.circle
            assert counts[a, b] > counts[b, a]
            assert counts[b, c] > counts[c, b]
            assert counts[c, a] > counts[a, c]

    def test_voters_without_a_word_on_the_first_items(self):
        scores = [[9, 8, np.nan, np.nan], [np.nan, np.nan, 1, 2], [8, 9, 1, np.nan]]
        found = count_majorities(aggregate(scores), most=2)
        np.testing.assert_allclose(found.shares, [[0, 1 / 3], [1 / 3, 0]])


def tau_with_support(method, *, signed=False, missing="ignore"):
    """Mean rank correlation of an item's place with its number of scores, for random scores."""
    taus = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=(60, 8)) if signed else rng.integers(1, 6, (60, 8)).astype(float)
        scores[rng.random(scores.shape) > rng.permutation(np.linspace(0.15, 1, 8))] = np.nan
        result = aggregate(scores[~np.isnan(scores).all(axis=1)], method=method, missing=missing)
        taus.append(kendalltau(result.support, -result.ranks).statistic)
    return float(np.mean(taus))


class TestGaps:
    """Few voters have seen this film:

    Some methods penalise it for that, so their orders are not comparable with the others.
    """

    many, few = "seen by all", "seen by few"

    def films(self, **options):
        """All twelve voters give one film 3 and another 2; a third film has two voters, who like it best."""
        scores = np.array([[3.0, 2.0, np.nan]] * 10 + [[3.0, 2.0, 5.0]] * 2)
        return aggregate(scores, items=[self.many, "worse", self.few], **options)

    @pytest.mark.parametrize("method", [*METHODS, "combsum", "combmnz"])
    def test_sums_favour_what_many_scored_and_no_other_method_does(self, method):
        tau = tau_with_support(method)
        assert (tau > 0.8) if method in SUMS else (abs(tau) < 0.2)
        assert tau_with_support(method, missing="last") > 0.5  # nobody's opinion is everybody's last place

    @pytest.mark.parametrize("method", ["combsum", "combmnz"])
    def test_sums_of_scores_on_both_sides_of_zero_favour_nobody(self, method):
        assert abs(tau_with_support(method, signed=True)) < 0.2

    def test_sums_are_no_second_opinion(self):
        summary = summarise_votes(self.films(), bootstrap=0, methods=["borda", "copeland", "rrf", "combmnz"])
        firsts = {name: each.order[0] for name, each in summary.methods.items()}
        assert firsts == {
            "lovasz-bregman": self.few,
            "borda": self.few,
            "copeland": self.few,
            "rrf": self.many,
            "combmnz": self.many,
        }
        assert summary.verdict.kind == "agreed"
        assert summary.verdict.text == f"{self.few} wins by all three comparable methods."
        assert (
            "Reciprocal rank fusion and CombMNZ sum over the voters, which favours items that many scored: they are "
            "shown, but left out of the verdict."
        ) in summary.notes
        assert "for all methods" not in " ".join(summary.notes)
        html = page(summary)
        assert "Reciprocal rank fusion" in html

    def test_a_sum_is_judged_among_sums(self):
        summary = summarise_votes(self.films(method="rrf"), bootstrap=0, methods=["borda", "combmnz"])
        assert summary.verdict.text == f"{self.many} wins by both comparable methods."
        assert (
            "Reciprocal rank fusion and CombMNZ sum over the voters, which favours items that many scored: the "
            "other methods are shown, but left out of the verdict."
        ) in summary.notes
        alone = summarise_votes(self.films(method="rrf"), bootstrap=0, methods=[])
        assert alone.verdict.text == f"{self.many} wins by Reciprocal rank fusion."
        assert (
            "Reciprocal rank fusion sums over the voters, which favours items that many scored."
            in alone.notes
        )

    def test_without_gaps_all_methods_count(self):
        for result in (self.films(missing="last"), poll()[0]):
            summary = summarise_votes(result, bootstrap=0)
            assert "rrf" in summary.methods
            assert not any("sum" in note and "over the voters" in note for note in summary.notes)
        assert comparable(summary.methods) == summary.methods

    def test_methods_that_still_differ_are_told(self):
        close = [[1.9, 2, np.nan], [1.8, 2, np.nan], [1.95, 2, 0], [2, 1, 0], [2.5, 1.2, 0]]
        verdict = kind_of(aggregate(close, items=["tea", "rum", "ale"]), methods=["borda", "kemeny", "rrf"])
        assert verdict.kind == "method"
        assert "Reciprocal" not in verdict.text


class TestVerdict:
    def test_clear_winner(self):
        verdict = kind_of(aggregate([[3, 2, 1]] * 40 + [[2, 3, 1]] * 5, items=NAMES[:3]))
        assert verdict.kind == "settled"
        assert (
            verdict.text
            == "tea wins by all six methods and is first in 100% of 200 bootstrap samples of the voters."
        )
        assert "A majority prefers tea to every other item (Condorcet winner)." in verdict.details

    def test_without_draws_the_methods_agree(self):
        summary = summarise_votes(
            aggregate([[3, 2, 1]] * 40, items=NAMES[:3]), bootstrap=0, methods=["borda"]
        )
        assert summary.verdict.kind == "agreed"
        assert summary.verdict.text == "tea wins by both methods."

    def test_winner_depends_on_the_method(self):
        close = [[1.9, 2], [1.8, 2], [1.95, 2], [2, 1], [2.5, 1.2]]
        verdict = kind_of(aggregate(close, items=["tea", "rum"]), methods=["borda", "kemeny"])
        assert verdict.kind == "method"
        assert verdict.text == (
            "The winner depends on the method: rum by Borda and Kemeny, tea by Lovász–Bregman."
        )
        assert (
            "A majority prefers rum to every other item, although it is not first here (Condorcet winner)."
            in (verdict.details)
        )

    def test_first_place_is_not_settled(self):
        result = aggregate([[3, 2, 1]] * 11 + [[2, 3, 1]] * 9, items=NAMES[:3])
        verdict = kind_of(result)
        first = result.bootstrap(200).first
        assert verdict.kind == "unsettled"
        assert f"tea leads, but is first in only {first[0]:.0%} of 200 bootstrap samples" in verdict.text
        assert verdict.text.endswith(f"rum in {first[1]:.0%}.")
        assert first[0] < 0.95

    def test_condorcet_circle(self):
        verdict = kind_of(orders("abcd bcad cabd", [30, 25, 20]), methods=["kemeny"])
        told = verdict.details[-1]
        assert told == (
            "No item is preferred to every other one by a majority (no Condorcet winner): majorities form a cycle, "
            "a over b, b over c and c over a; a, b and c are preferred to all others."
        )

    def test_tie(self):
        verdict = kind_of(orders("abc bac", [5, 5]))
        assert verdict.kind == "tie"
        assert verdict.text == "a and b share the first place by Lovász–Bregman."

    def test_a_shared_first_place_is_no_win(self):
        verdict = kind_of(orders("abc bca cab", [30, 20, 20]), methods=["copeland", "kemeny"])
        assert "By Copeland, a, b and c share the first place." in verdict.details
        summary = summarise_votes(
            orders("abc bca cab", [30, 20, 20]), bootstrap=0, methods=["copeland", "kemeny"]
        )
        assert (
            summary.verdict.text == "a wins by two of three methods and shares the first place by the other."
        )

    def test_everything_tied(self):
        verdict = kind_of(orders("abc cba", [5, 5]))
        assert verdict.kind == "no order"
        assert "All 3 items are tied" in verdict.text

    @pytest.mark.parametrize("weights", [None, [7], [2, 0]])
    def test_one_ballot(self, weights):
        n = 1 if weights is None else len(weights)
        summary = summarise_votes(aggregate([[1, 3, 2]] * n, weights, items=NAMES[:3]))
        assert summary.verdict.kind == "one ballot"
        assert summary.verdict.text == "There is only one ballot, and this is its order: rum is first."
        assert summary.drawn is None
        assert "Voters were not resampled: there is only one ballot." in summary.notes
        html = page(summary)
        assert "rum is first" in html
        assert summary.confidence is None
        assert summary.to_dict()["agreement"]["mean"] is None
        assert "confidence" not in re.search('class="subtitle">(.*?)</p>', html)[1]
        assert 'id="voters"' not in html
        assert "Kendall's tau with the result" not in html


class TestVoters:
    def two_camps(self, noise=0.3, **options):
        rng = np.random.default_rng(1)
        scores = rng.normal(size=(100, 6)) * noise + np.linspace(2, 0, 6)
        scores[60:] = scores[60:, ::-1]
        return aggregate(scores, **options)

    def test_two_camps_are_found(self):
        notes = []
        camps = find_camps(self.two_camps(), 0, notes)
        assert camps.clear
        assert not notes
        assert camps.shares.tolist() == [0.6, 0.4]
        assert camps.labels.tolist() == [0] * 60 + [1] * 40
        assert camps.orders.tolist() == [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0]]
        assert camps.tau == -1

    def test_chance_is_that_of_repeated_ballots(self):
        ballots, weights = [list("abcde"), ["a"], ["b"]], [96, 2, 2]
        repeated = [order for order, w in zip(ballots, weights, strict=True) for _ in range(w)]
        one = find_camps(aggregate(ballots, weights, kind="orders"), 0, [])
        many = find_camps(aggregate(repeated, kind="orders"), 0, [])
        assert one.chance == pytest.approx(many.chance, abs=0.06)
        assert one.silhouette == pytest.approx(many.silhouette)

    @pytest.mark.parametrize("seed", range(8))
    @pytest.mark.parametrize("spread", [0.0, 1.0, 4.0])
    @pytest.mark.slow
    def test_one_crowd_has_no_camps(self, spread, seed):
        rng = np.random.default_rng(seed)
        for n in (3, 6, 12):
            notes = []
            camps = find_camps(aggregate(rng.normal(size=(80, n)) + spread * np.linspace(1, 0, n)), 0, notes)
            assert not camps.clear
            assert f"silhouette of {camps.silhouette:.2f}" in notes[-1]
            assert f"from {camps.threshold:.2f}" in notes[-1]

    def test_a_few_dissenters_are_no_camp(self):
        camps = find_camps(orders("abcde edcba", [95, 5]), 0, [])
        assert not camps.clear
        assert camps.silhouette == 1

    @pytest.mark.parametrize(
        ("result", "told"),
        [
            (aggregate([[3, 2, 1]] * 19), "at least 20 voters"),
            (aggregate([[2, 1]] * 30 + [[1, 2]] * 30), "and three items"),
            (aggregate([[3, 2, 1]] * 30), "all voters examined have nearly the same order"),
        ],
        ids=["few voters", "two items", "one order"],
    )
    def test_where_camps_say_nothing(self, result, told):
        notes = []
        assert find_camps(result, 0, notes) is None
        assert told in notes[0]

    def test_large_tables_are_sampled_and_said_so(self, monkeypatch):
        monkeypatch.setattr(votes_voters, "_MOST_SCORES", 100)
        monkeypatch.setattr(votes_voters, "_MOST_CLUSTERED", 150)
        result, scores = poll(1)
        summary = summarise_votes(result, bootstrap=0)
        assert len(summary.voters.rows) == 20
        taus = [kendalltau(-result.ranks, scores[row]).statistic for row in summary.voters.rows]
        np.testing.assert_allclose(summary.voters.tau, taus)
        assert "Agreement is that of 20 voters, drawn at random from 60." in summary.notes
        assert "The search for camps used 30 voters, drawn at random." in summary.notes
        assert "drawn at random" in page(summary)
        again = summarise_votes(result, bootstrap=0)
        assert again.voters.rows.tolist() == summary.voters.rows.tolist()

    def test_voters_with_gaps_are_sampled_earlier(self, monkeypatch):
        monkeypatch.setattr(votes_voters, "_MOST_WITH_GAPS", 10)
        assert len(summarise_votes(poll(gaps=0.2)[0], bootstrap=0).voters.rows) == 10
        assert len(summarise_votes(poll()[0], bootstrap=0).voters.rows) == 60

    def test_scales_of_their_own(self):
        told = "and the widest weigh most"
        generous = [[80, 20, 50], [1, 3, 2], [2, 3, 1]]
        assert any(told in note for note in summarise_votes(aggregate(generous), bootstrap=0).notes)
        for options in ({"normalize": "minmax"}, {"method": "borda"}):
            notes = summarise_votes(aggregate(generous, **options), bootstrap=0).notes
            assert not any(told in note for note in notes)


class TestLimits:
    def test_methods_that_take_long_are_left_out(self, monkeypatch):
        for name, most in (("MOST_PAIRS", 60 * 25 - 1), ("MOST_CHEAP", 299), ("_MOST_SCORES", 10**9)):
            monkeypatch.setattr(votes_methods, name, most)
        summary = summarise_votes(poll()[0], bootstrap=0)
        assert list(summary.methods) == ["lovasz-bregman", "borda", "rrf"]
        told = " ".join(summary.notes)
        assert (
            "Copeland is left out: it compares all pairs of items, too many for 60 ballots of 5 items."
            in told
        )
        assert "Median rank is left out: it takes too long on 60 ballots of 5 items." in told
        monkeypatch.setattr(votes_methods, "_MOST_SEARCHED", 4)
        assert "Kemeny is left out: its order is searched only up to 4 items" in " ".join(
            summarise_votes(poll()[0], bootstrap=0).notes
        )

    @pytest.mark.parametrize(
        ("method", "kind", "steps"),
        [("borda", "linear", 300), ("median", "median", 300), ("kemeny", "pairs", 1500)],
    )
    def test_draws_are_as_many_as_there_is_time_for(self, monkeypatch, method, kind, steps):
        result = poll(method=method)[0]
        monkeypatch.setitem(votes_methods._DRAWN, kind, 120 * steps)
        summary = summarise_votes(result, bootstrap=200, methods=[])
        assert len(summary.drawn.ranks) == 120
        assert (
            "Voters were resampled 120 times instead of 200 because of the size of the table."
            in summary.notes
        )
        monkeypatch.setitem(votes_methods._DRAWN, kind, 99 * steps)
        summary = summarise_votes(result, bootstrap=200, methods=[])
        assert summary.drawn is None
        assert "ranks have no intervals" in " ".join(summary.notes)
        assert "No intervals" in page(summary)

    def test_unproven_order_is_said(self):
        rng = np.random.default_rng(3)
        result = aggregate(rng.normal(size=(5, 25)), method="kemeny", max_exact=0)
        assert not result.optimal
        notes = summarise_votes(result, bootstrap=0).notes
        assert any(
            note.startswith(f"Kemeny's order is not proven best: it contradicts {result.cost:g}")
            for note in notes
        )

    def test_a_method_that_cannot_is_a_note(self):
        result = aggregate([[3, 2, np.nan], [1, 2, np.nan]], items=["a", "b", "c"], method="combsum")
        summary = summarise_votes(result, methods=["borda", "median"], bootstrap=0, clusters=None)
        assert list(summary.methods) == ["combsum"]
        assert sum("no voter has a score for 'c'" in note for note in summary.notes) == 2

    def test_missing_scores_and_support_are_said(self):
        result = aggregate([[3, 2, np.nan], [1, 2, 3], [1, 2, np.nan]], items=["a", "b", "c"], min_support=2)
        summary = summarise_votes(result, bootstrap=0)
        told = " ".join(summary.notes)
        assert "counts as no opinion; c has the fewest: 1 of 3 voters." in told
        assert "1 item ranks last because its support is below 2." in told
        assert summary.confidence is None

    def test_parts_are_told(self):
        told = []
        summarise_votes(poll()[0], bootstrap=2, methods=["borda"], progress=told.append)
        assert told == [
            "methods",
            "merging by borda",
            "bootstrap",
            "majorities",
            "agreement",
            "camps",
            "confidence",
        ]


BAD = {
    "result": (lambda r: summarise_votes([1, 2]), "`result` must be the result of aggregate(), got list"),
    "string": (lambda r: summarise_votes(r, methods="borda"), "`methods` must be a list of names"),
    "method": (lambda r: summarise_votes(r, methods=["best"]), "unknown `method` 'best'"),
    "one draw": (
        lambda r: summarise_votes(r, bootstrap=1),
        "`bootstrap` must be a number of draws, 2 or more",
    ),
    "half a draw": (lambda r: summarise_votes(r, bootstrap=2.5), "`bootstrap` must be a number of draws"),
    "clusters": (lambda r: summarise_votes(r, clusters=3), "`clusters` must be 2 or None, got 3"),
    "top": (lambda r: summarise_votes(r, top=0), "`top` must be a whole number of at least 1, got 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(case):
    call, message = BAD[case]
    with pytest.raises(InputError) as caught:
        call(poll()[0])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


class Outline(HTMLParser):
    """Tags, ids, and text outside scripts and styles."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.ids, self.frames, self.text, self._inside = [], [], [], "", ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append(tag)
        self._inside = tag
        if "id" in given:
            self.ids.append(given["id"])
        if "data-frame" in given:
            self.frames.append((tag, int(given["data-frame"]), "on" in given["class"].split()))

    def handle_data(self, data):
        self.text += "" if self._inside in ("script", "style") else data


@pytest.fixture(scope="module")
def camps_page():
    summary = summarise_votes(
        TestVoters().two_camps(items=["<script>alert(1)</script>", "b&b", *"cdef"]), bootstrap=50
    )
    return summary, page(summary)


class TestPage:
    def test_all_parts(self, camps_page):
        summary, html = camps_page
        outline = Outline(html)
        parts = ["bump", "order", "sure", "methods", "majorities", "voters", "camps", "about"]
        assert [part for part in outline.ids if part in parts] == parts
        assert summary.verdict.text in outline.text
        for note in summary.notes:
            assert note in outline.text
        assert "Kendall's tau" in outline.text
        assert f"{summary.camps.silhouette:.2g}" in outline.text

    def test_names_are_escaped(self, camps_page):
        _, html = camps_page
        assert "<script>alert" not in html
        assert Outline(html).tags.count("script") == 1
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
        assert "b&amp;b" in html

    def test_nothing_is_loaded(self, camps_page):
        _, html = camps_page
        assert not re.search(r"https?://|\bsrc=|@import|url\(", html)

    def test_one_frame_for_each_method(self, camps_page):
        summary, html = camps_page
        frames = Outline(html).frames
        numbers = {number for _, number, _ in frames}
        assert numbers == set(range(len(summary.methods)))
        assert all(on == (number == 0) for _, number, on in frames)
        assert [number for tag, number, _ in frames if tag == "div"] == list(range(len(summary.methods)))
        assert f'max="{len(summary.methods) - 1}"' in html

    def test_rows_are_the_orders(self):
        result, _ = poll(4)
        summary = summarise_votes(result, bootstrap=20, top=5)
        for number, each in enumerate(summary.methods.values()):
            table = re.findall(r"<table.*?</table>", page(summary), re.DOTALL)[number]
            assert re.findall(r'<th scope="row"[^>]*><bdi>(\w+)</bdi></th>', table) == each.order
            for row, label in zip(re.findall(r"<tr>.*?</tr>", table, re.DOTALL)[1:], each.order, strict=True):
                item = NAMES.index(label)
                place, score, *others = re.findall(r'<td class="num">([^<]*)</td>', row)
                assert place.removesuffix(" =") == str(each.ranks[item])
                assert score == number_text(each.scores[item], 4)
                if number == 0:
                    low, high, first = (
                        column[item]
                        for column in (summary.drawn.low, summary.drawn.high, summary.drawn.first)
                    )
                    assert others == [f"{low} to {high}", percent(first)]
                    continue
                assert others == [str(result.ranks[item])]
                change = result.ranks[item] - each.ranks[item]
                words = f"up {change}" if change > 0 else f"down {-change}" if change else "same place"
                assert f'<span class="hidden">{words}</span>' in row

    def test_heat_table_says_in_words_who_wins(self):
        result = orders("abc bca cab", [30, 20, 20])
        html = page(summarise_votes(result, bootstrap=0))
        table = next(
            part for part in re.findall(r"<table.*?</table>", html, re.DOTALL) if "The first 3 items" in part
        )
        cells = re.findall(r"<td[^>]*>(.*?)</td>", table.split("<tbody>")[1])
        wins = 100 * result.pairwise / 70
        expected = [
            "–"
            if i == j
            else f"<strong>{wins[i, j]:.0f} %</strong>"
            if wins[i, j] > 50
            else f"{wins[i, j]:.0f} %"
            for i in range(3)
            for j in range(3)
        ]
        assert cells == expected
        assert "= 50 %" in page(summarise_votes(orders("abc bac", [5, 5]), bootstrap=0))

    def test_one_method_has_no_slider(self):
        html = page(summarise_votes(poll()[0], methods=[], bootstrap=0, clusters=None))
        assert 'id="frames"' not in html
        assert 'id="methods"' not in html

    def test_support_is_shown_where_scores_are_missing(self):
        assert "voters who scored it" in page(summarise_votes(poll(gaps=0.2)[0], bootstrap=0))
        assert "voters who scored it" not in page(summarise_votes(poll()[0], bootstrap=0))

    def test_everything_tied_has_a_page(self):
        html = page(summarise_votes(orders("abc cba", [5, 5]), bootstrap=20))
        assert "There is no order to agree with." in html

    def test_long_lists_are_cut(self, monkeypatch):
        monkeypatch.setattr(votes_page, "_MOST_LISTED", 20)
        result = aggregate(np.random.default_rng(0).normal(size=(12, 30)))
        assert "The first 20 of 30 items" in page(summarise_votes(result, top=30, bootstrap=0, clusters=None))

    @pytest.mark.slow
    def test_many_items_and_long_names_stay_small(self):
        rng = np.random.default_rng(0)
        items = [f"{number} {'x' * 500}" for number in range(700)]
        result = aggregate(rng.normal(size=(12, 700)), items=items)
        html = page(summarise_votes(result, top=700, bootstrap=100))
        assert len(html) < 6e6
        assert "The first 500 of 700 items" in html

    def test_long_names_are_shortened_in_sentences(self):
        names = ["x" * 200, "y" * 200]
        summary = summarise_votes(aggregate([[2, 1], [1, 2], [2, 1], [2, np.nan]], items=names), bootstrap=0)
        for text in (*summary.notes, summary.verdict.text, *summary.verdict.details):
            assert max(map(len, text.split())) <= 48

    def test_names_fit_beside_the_charts(self):
        summary = summarise_votes(poll()[0], bootstrap=0)
        items = ["W" * 80, "東京" * 30, "m" * 23, "an item with a long name of many words", "tea"]
        named = replace(summary, result=replace(summary.result, items=items))
        for chart in (votes_page._bump(named)[0], votes_page._intervals(named)):
            pieces = re.findall(
                r'<text class="(?:label|tick)" x="([\d.]+)"[^>]*"(start|end)">([^<]*)<', chart.render()
            )
            assert sum("…" in text for *_, text in pieces) >= 4
            for x, anchor, text in pieces:
                assert FONT * width_of(text) <= (float(x) if anchor == "end" else chart.width - float(x))
