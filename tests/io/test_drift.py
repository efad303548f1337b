"""New rows unlike the training rows: the notes, and the population stability index against its formula."""

import numpy as np
import polars as pl
import pytest

import apexrank
from apexrank import PNormPush
from apexrank.io import Recipe, Table, TableRanker
from apexrank.io.drift import LITTLE, Profile, psi
from apexrank.io.stream import fit_table_blocks
from apexrank.rankers import ListwiseRanker


def frame(n, seed=0, **changed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    columns = {
        "x": x,
        "gap": pl.Series(np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)), nan_to_null=True),
        "city": rng.choice(["Oslo", "Rome", "Lima"], n),
        "flag": (np.arange(n) % 50 == 0).astype(int),
        "day": pl.Series(np.datetime64("2024-01-01") + rng.integers(0, 300, n)).cast(pl.Date),
        "y": np.where(x + rng.normal(size=n) > 0.5, "yes", "no"),
    }
    return pl.DataFrame({**columns, **changed}, strict=False)


@pytest.fixture(scope="module")
def ranker():
    return TableRanker.fit(Table(frame(400)), Recipe("y"), PNormPush(alpha=0.1))


def notes(ranker, **changed):
    n = len(next(iter(changed.values()))) if changed else 200
    return [note for note in ranker.check(Table(frame(n, seed=1, **changed))) if "does not know" not in note]


def test_rows_like_those_of_training_need_no_note(ranker):
    assert notes(ranker) == []
    assert ranker.check(Table(frame(400))) == []
    assert ranker.check(Table(frame(1, seed=3))) == []  # one row has one value in every column


def test_values_far_outside_the_training_range(ranker):
    low, high = ranker.encoder.profiles[0].edges[[0, -1]]
    x = np.linspace(low, high, 50)
    x[:3] = high + 0.9 * (high - low), low - 0.9 * (high - low), high
    assert notes(ranker, x=x) == []
    x[:3] = high + 1.1 * (high - low), low - 1.1 * (high - low), 1e9
    (note,) = notes(ranker, x=x)
    assert note.startswith("column 'x': 3 of 50 values are far outside the training range")
    (note,) = notes(ranker, day=pl.Series(["2031-05-01"] * 5 + ["2024-03-01"] * 20).str.to_date())
    assert "5 of 25 values are far outside the training range 2024-01-01 to 2024-10-" in note
    assert "such as 2031-05-01" in note


def test_values_that_training_never_had(ranker):
    (note,) = notes(ranker, city=["Oslo"] * 10 + ["Rome", "Lima"] * 5 + ["Bern", "Kyiv"])
    assert note.startswith("column 'city': 2 of 22 values")
    assert note.endswith("9% instead of 0%: 'Bern', 'Kyiv'")


def test_rare_values_are_expected_where_training_had_some():
    rare = ["Oslo"] * 150 + ["Rome"] * 40 + [f"town {i}" for i in range(10)]
    ranker = TableRanker.fit(Table(frame(200, city=rare)), Recipe("y"), PNormPush(alpha=0.1))
    assert notes(ranker, city=["Oslo"] * 15 + ["Rome"] * 4 + ["Bern"]) == []
    (note,) = notes(ranker, city=["Oslo"] * 60 + ["Bern"] * 20)
    assert note.startswith("column 'city': 20 of 80 values")
    assert note.endswith("25% instead of 5%: 'Bern'")


def test_more_missing_values_than_in_training(ranker):
    assert notes(ranker, gap=[None] * 2 + [0.1, 0.2] * 4) == []
    (note,) = notes(ranker, gap=[None] * 30 + [0.1, 0.2] * 10)
    assert note.startswith("column 'gap': 30 of 50 values are missing, 60% instead of ")
    (note,) = notes(ranker, x=[None] + [0.1, 0.2] * 10)
    assert "has 1 missing value, but training had few or none" in note


def test_constant_columns(ranker):
    (note,) = notes(ranker, x=[0.25] * 40)
    assert note == "column 'x' has one value in all 40 rows, 0.25, but several in training"
    (note,) = notes(ranker, city=["Oslo"] * 40)
    assert note == "column 'city' has one value in all 40 rows, Oslo, but several in training"
    assert notes(ranker, flag=[0] * 40) == []  # as may happen with 40 training rows
    assert len(notes(ranker, flag=[1] * 40)) == 1


def test_index_is_that_of_the_formula():
    """Shares e of training and a of new rows in bins: Σ (a − e)·ln(a/e)."""
    rng = np.random.default_rng(0)
    train, new = rng.normal(size=1000), rng.normal(0.5, 1.2, size=500)
    new[:20] = np.nan
    profile = Profile.of_numbers(train, np.ones(1000), 0.0)
    edges = np.array([-np.inf, *profile.edges[1:-1], np.inf])
    np.testing.assert_allclose(profile.edges[1:-1], np.quantile(train, np.arange(1, 10) / 10), atol=0.02)
    above, to = edges[:-1, None], edges[1:, None]
    e, a = ([*((part > above) & (part <= to)).mean(1), np.isnan(part).mean()] for part in (train, new))
    e, a = np.maximum(e, LITTLE), np.maximum(a, LITTLE)
    assert psi(profile, profile.counts(new)) == pytest.approx(np.sum((a - e) * np.log(a / e)), rel=1e-9)
    assert psi(profile, profile.counts(train)) == pytest.approx(0, abs=1e-12)


def test_index_of_rows_drawn_from_training_is_what_chance_gives():
    """Its mean over samples is about (bins - 1)(1/n + 1/N)."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(200):
        profile = Profile.of_numbers(rng.normal(size=2000), np.ones(2000), 0.0)
        found.append(psi(profile, profile.counts(rng.normal(size=1000))))
    assert np.mean(found) == pytest.approx(9 * (1 / 1000 + 1 / 2000), rel=0.2)  # 0.2: the mean of 200 draws


@pytest.mark.parametrize("seed", range(5))
def test_weights_are_repetitions(seed):
    rng = np.random.default_rng(seed)
    values, weights = np.round(rng.normal(size=60), 1), rng.integers(0, 4, 60)
    plain = Profile.of_numbers(np.repeat(values, weights), np.ones(weights.sum()), 3.0)
    weighted = Profile.of_numbers(values[weights > 0], weights[weights > 0], 3.0)
    for one, other in zip(plain, weighted, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("values", [[], [2.0], [2.0, 2.0], [0.0] * 95 + [1.0] * 5, [np.pi, -1e300, 1e300]])
def test_profiles_of_few_values(values):
    profile = Profile.of_numbers(np.array(values), np.ones(len(values)), 1.0)
    assert profile.shares.sum() == pytest.approx(1)
    given = profile.counts(np.array([*values, np.nan]))
    assert given.sum() == len(values) + 1
    assert psi(profile, given) == pytest.approx(0, abs=1e-9)


def test_files_keep_the_profiles(tmp_path, ranker):
    apexrank.save(ranker, tmp_path / "m.apex")
    again, new = apexrank.load(tmp_path / "m.apex"), Table(frame(300, seed=2, city=["Rome"] * 300))
    assert again.drift(new, again.score(new)) == ranker.drift(new, ranker.score(new))
    assert again.check(new) == ranker.check(new) != []
    assert next(iter(again.drift(new, again.score(new)))) == "score"
    assert [*again.drift(new, again.score(new))][1] == "city"


def test_blocks_give_the_profile_of_the_table(tmp_path):
    rows = frame(600).with_columns(pl.col("gap").fill_null(0.5))
    rows.write_parquet(tmp_path / "t.parquet")
    whole = TableRanker.fit(Table(rows), Recipe("y"), PNormPush(alpha=0.1))
    parts, _ = fit_table_blocks(tmp_path / "t.parquet", Recipe("y"), PNormPush(alpha=0.1), rows=100)
    for one, other in zip(whole.encoder.profiles, parts.encoder.profiles, strict=True):
        np.testing.assert_allclose(one.edges, other.edges)
        np.testing.assert_allclose(one.shares, other.shares, atol=1e-12)


def test_grades_have_profiles_without_a_sample_of_all_values():
    rows = pl.DataFrame({"a": np.arange(200.0) % 37, "rel": np.arange(200) % 3})
    rows = rows.with_columns(q=pl.Series(np.arange(200) // 20))
    recipe = Recipe("rel", graded=True, groups="q")
    ranker = TableRanker.fit(Table(rows), recipe, ListwiseRanker(alpha=1.0))
    (profile,) = ranker.encoder.profiles
    assert len(profile.edges) > 5
    assert psi(profile, profile.counts(rows["a"].to_numpy())) < 1e-9
