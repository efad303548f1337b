"""Display of an additive ranker: effects that add up to its scores, units, bands and artists."""

import datetime

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot as plt
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from apexrank.errors import InputError
from apexrank.io import Recipe, Table
from apexrank.io.table_ranker import TableRanker
from apexrank.plot import ShapeDisplay, additive_effects
from apexrank.plot.effects import Effects
from apexrank.rankers import AdditiveRanker, AdditiveRetargeting

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.exponential(size=n) ** 3, rng.integers(0, 2, n)])
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 2] + 0.5 * rng.normal(size=n) > 0.8
    return X, y.astype(int)


def table(n=600, seed=0):
    """Numbers, dates and texts, each with missing values, and a two-valued column."""
    rng = np.random.default_rng(seed)
    amount, flag = np.exp(rng.normal(3, 1, n)), rng.integers(0, 2, n)
    shop = rng.choice(["a", "b", "c"], n)
    day = rng.integers(0, 500, n)
    fraud = (np.log(amount) + flag + (shop == "b") + rng.normal(size=n) > 5).astype(int)
    start = datetime.date(2023, 1, 1)
    columns = {
        "amount": [None if k % 7 == 0 else float(v) for k, v in enumerate(amount)],
        "flag": flag,
        "shop": [None if k % 9 == 0 else str(v) for k, v in enumerate(shop)],
        "when": [None if k % 8 == 0 else start + datetime.timedelta(int(d)) for k, d in enumerate(day)],
    }
    return Table(pl.DataFrame({**columns, "fraud": fraud}))


def ranker_of(data, **options):
    return TableRanker.fit(data, Recipe(target="fraud"), AdditiveRanker(alpha=1e-2, **options))


def at(effect, values):
    """Effect of each value in the units of the table; None is a missing value."""
    if effect.levels:
        known = dict(zip(effect.levels, effect.effect[0], strict=True))
        return [effect.missing[0] if value is None else known[str(value)] for value in values]
    missing = np.nan if effect.missing is None else effect.missing[0]
    given = [np.nan if value is None else value for value in values]
    return np.where(np.isnan(given), missing, np.interp(given, effect.x, effect.effect[0]))


def test_effects_of_the_columns_of_a_table_add_up_to_its_scores():
    data = table()
    ranker = ranker_of(data)
    effects = {effect.name: effect for effect in additive_effects(ranker).columns}
    assert set(effects) == {"amount", "flag", "shop", "when"}
    given = data.frame
    dates = given["when"].to_list()
    days = [None if date is None else (date - datetime.date(1970, 1, 1)).days for date in dates]
    score = ranker.estimator.intercept_[0] + sum(
        at(effects[name], given[name]) for name in ("amount", "flag")
    )
    score = score + at(effects["shop"], given["shop"]) + at(effects["when"], days)
    assert [effect.is_date for effect in effects.values()].count(True) == effects["when"].is_date == 1
    assert score == pytest.approx(ranker.score(data))


def test_counts_of_a_table_leave_missing_values_to_their_own_place():
    data = table()
    effects = {effect.name: effect for effect in additive_effects(ranker_of(data)).columns}
    given = data.frame
    for name in ("amount", "shop"):
        assert effects[name].missing_count == pytest.approx(given[name].null_count())
        assert effects[name].counts.sum() + effects[name].missing_count == pytest.approx(len(given))
    levels = dict(zip(effects["shop"].levels, effects["shop"].counts, strict=True))
    assert levels == pytest.approx(dict(given["shop"].drop_nulls().value_counts().iter_rows()))
    assert effects["flag"].counts == pytest.approx([(given["flag"] == 0).sum(), (given["flag"] == 1).sum()])
    edges = effects["amount"].edges
    assert effects["amount"].counts == pytest.approx(np.histogram(given["amount"].drop_nulls(), edges)[0])


def test_weights_of_a_table_are_repetitions():
    weight = np.arange(600) % 3
    data = table().frame.with_columns(weight=weight)
    again = data[np.repeat(np.arange(600), weight)]
    recipes = Recipe(target="fraud", weight="weight"), Recipe(target="fraud", drop=["weight"])
    one, other = (
        additive_effects(TableRanker.fit(Table(frame), recipe, AdditiveRanker(alpha=1e-2))).columns
        for frame, recipe in zip((data, again), recipes, strict=True)
    )
    for a, b in zip(one, other, strict=True):
        assert (a.name, a.levels) == (b.name, b.levels)
        assert a.edges == pytest.approx(b.edges)
        assert a.counts == pytest.approx(b.counts)
        assert a.missing_count == pytest.approx(b.missing_count)
        assert a.effect[0] == pytest.approx(b.effect[0], abs=1e-5)


def test_features_scaled_inside_queries_are_shown_as_the_ranker_sees_them():
    rng = np.random.default_rng(0)
    query, x = np.repeat(np.arange(12), 20), rng.exponential(50, 240)
    columns = {"query": query, "x": x, "shop": rng.choice(["a", "b"], 240), "grade": rng.integers(0, 3, 240)}
    recipe = Recipe(target="grade", groups="query", scale="query", graded=True, categorical=["shop"])
    data = Table(pl.DataFrame(columns))
    ranker = TableRanker.fit(data, recipe, AdditiveRetargeting(alpha=1e-2))
    found = additive_effects(ranker)
    effects = {effect.name: effect for effect in found.columns}
    assert effects["x"].x[[0, -1]].tolist() == [0.0, 1.0]
    assert effects["shop"].levels == ("a", "b")
    assert all(np.isfinite(effect.effect[0]).all() for effect in found.columns)


def test_a_scaler_leaves_the_units_alone():
    X, y = rows()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    ranker = AdditiveRanker(alpha=1e-2, n_pairs=2)
    plain = additive_effects(clone(ranker).fit(frame, y))
    scaled = additive_effects(make_pipeline(StandardScaler(), ranker).fit(frame, y))
    assert [effect.name for effect in plain.columns] == [effect.name for effect in scaled.columns]
    for one, other in zip(plain.columns, scaled.columns, strict=True):
        assert one.levels == other.levels
        assert one.x == pytest.approx(other.x)
        assert one.effect[0] == pytest.approx(other.effect[0], abs=1e-5)
        assert one.counts == pytest.approx(other.counts)
    assert [pair.names for pair in plain.pairs] == [pair.names for pair in scaled.pairs]
    assert plain.pairs[0].texts == scaled.pairs[0].texts


def test_other_steps_give_the_names_of_their_features():
    X, y = rows()
    pipe = make_pipeline(PolynomialFeatures(2, include_bias=False), AdditiveRanker(alpha=1e-2)).fit(
        X[:, :2], y
    )
    assert {effect.name for effect in additive_effects(pipe).columns} == {"x0", "x1", "x0^2", "x0 x1", "x1^2"}


def test_text_and_missing_values_of_a_frame():
    X, y = rows()
    word = np.array(["low", "high"])[(X[:, 2] > 0).astype(int)].astype(object)
    word[::10] = None
    number = np.where(np.arange(len(y)) % 6 == 0, np.nan, X[:, 0])
    frame = pd.DataFrame({"number": number, "word": word})
    ranker = AdditiveRanker(alpha=1e-2).fit(frame, y)
    effects = {effect.name: effect for effect in additive_effects(ranker).columns}
    assert effects["word"].levels == ("high", "low")
    score = ranker.intercept_[0] + at(effects["number"], number) + np.array(at(effects["word"], word))
    assert score == pytest.approx(ranker.decision_function(frame))


def test_a_band_is_that_of_the_shape():
    X, y = rows()
    ranker = AdditiveRanker().fit(X, y)
    for simultaneous in (True, False):
        found = additive_effects(ranker, confidence=0.5, simultaneous=simultaneous)
        for effect in found.columns:
            shape = ranker.shapes_[int(effect.name[1:])]
            at = shape.knots if effect.levels else effect.x
            assert effect.effect[0] == pytest.approx(shape(at))
            assert effect.effect[1:] == pytest.approx(shape.band(at, 0.5, simultaneous=simultaneous))


def test_panels_share_a_scale_and_come_by_importance():
    X, y = rows()
    ranker = AdditiveRanker(n_pairs=0).fit(X, y)
    display = ShapeDisplay.from_estimator(ranker)
    spread = ranker.contributions(X).std(axis=0)
    assert [ax.get_title() for ax in display.axes_] == [f"x{j}" for j in np.argsort(-spread)]
    assert [effect.spread for effect in display.effects.columns] == pytest.approx(
        np.sort(spread)[::-1], rel=0.15
    )
    assert len({ax.get_ylim() for ax in display.axes_}) == 1
    low, high = display.axes_[0].get_ylim()
    for effect in display.effects.columns:
        assert low < effect.effect.min() <= effect.effect.max() < high
    assert display.pair_axes_ == []
    assert display.axes_[0].figure is display.figure_


def test_the_curve_is_drawn_in_the_units_of_the_table_with_its_band():
    data = table()
    ranker = ranker_of(data)
    display = ShapeDisplay.from_estimator(ranker, columns=["amount", "shop"])
    curve, levels = display.axes_
    amount, shop = display.effects.columns
    x, height = curve.lines[1].get_data()  # after the line at 0
    known = data.frame["amount"].drop_nulls()
    assert x[0] == pytest.approx(known.min())
    assert height == pytest.approx(np.interp(x, amount.x, amount.effect[0]))
    assert [text.get_text() for text in curve.texts].count("missing") == 1
    assert sorted(text.get_text() for text in levels.get_xticklabels()) == ["a", "b", "c", "missing"]
    dots = np.concatenate([line.get_ydata() for line in levels.lines[1:]])
    assert dots == pytest.approx([*np.sort(shop.effect[0]), shop.missing[0]])


def test_a_long_tail_is_cut_and_told():
    X, y = rows()
    ranker = AdditiveRanker(alpha=1e-2).fit(X, y)
    display = ShapeDisplay.from_estimator(ranker, columns=["x1"])
    (effect,), (ax,) = display.effects.columns, display.axes_
    assert ax.get_xlim()[1] < X[:, 1].max() / 1.5
    (told,) = (text.get_text().strip() for text in ax.texts)
    assert told == f"to {X[:, 1].max():.4g}: {effect.effect[0, -1]:+.2g}"


def test_with_one_strength_for_all_curves_there_is_no_band():
    X, y = rows()
    (effect, *_) = ShapeDisplay.from_estimator(AdditiveRanker(alpha=1e-2).fit(X, y)).effects.columns
    assert np.isnan(effect.effect[1:]).all()
    assert np.isfinite(effect.effect[0]).all()


def test_heat_maps_have_one_scale_around_zero():
    X, y = rows()
    ranker = AdditiveRanker(alpha=1e-2, n_pairs=3).fit(X, y)
    display = ShapeDisplay.from_estimator(ranker, max_pairs=2)
    assert len(display.pair_axes_) == 2
    meshes = [ax.collections[0] for ax in display.pair_axes_]
    joint = max(np.abs(pair.values).max() for pair in display.effects.pairs)
    own = max(np.abs(effect.effect[0]).max() for effect in display.effects.columns)
    largest = max(joint, own / 4)  # small joint effects are pale
    assert {mesh.get_clim() for mesh in meshes} == {(-largest, largest)}
    pair = display.effects.pairs[0]
    shape = next(p for p in ranker.pairs_ if np.array_equal(p.values, pair.values))
    assert pair.names == tuple(f"x{j}" for j in shape.features)
    # the middle of a cell between two knots is the middle of the function there
    (across, up), values = pair.cells(1)
    if not any(pair.are_levels):
        middle = [(knots[:-1] + knots[1:]) / 2 for knots in shape.knots]
        x, z = np.meshgrid(*middle, indexing="ij")
        assert values.ravel() == pytest.approx(shape(x.ravel(), z.ravel()))
    assert values.shape == (len(across) - 1, len(up) - 1)


def test_columns_without_an_effect_are_left_out():
    X, y = rows()
    ranker = AdditiveRanker(alpha=1e-2).fit(np.column_stack([X, np.ones(len(y))]), y)
    ranker.shapes_[2] = ranker.shapes_[2]._replace(values=np.zeros(2))  # as a group lasso leaves it
    assert {effect.name for effect in additive_effects(ranker).columns} == {"x0", "x1"}


def test_pairs_are_those_of_drawn_columns():
    X, y = rows()
    ranker = AdditiveRanker(alpha=1e-2, n_pairs=3).fit(X, y)
    names = [pair.names for pair in ShapeDisplay.from_estimator(ranker, columns=["x0", "x1"]).effects.pairs]
    assert names == [("x0", "x1")]


def test_at_most_as_many_panels_as_asked_for():
    X, y = rows()
    ranker = AdditiveRanker(alpha=1e-2).fit(X, y)
    assert len(ShapeDisplay.from_estimator(ranker, max_columns=2).axes_) == 2
    own = plt.subplots(1, 3)[1]
    assert ShapeDisplay.from_estimator(ranker, axes=own).axes_ == list(own)


def test_errors_say_what_to_do():
    X, y = rows()
    ranker = AdditiveRanker(alpha=1e-2).fit(X, y)
    with pytest.raises(
        InputError, match="LogisticRegression has no functions of columns: give a fitted AdditiveRanker"
    ):
        ShapeDisplay.from_estimator(LogisticRegression().fit(X, y))
    with pytest.raises(InputError, match="no column 'x9' with an effect: the most important ones are x"):
        ShapeDisplay.from_estimator(ranker, columns=["x9"])
    with pytest.raises(InputError, match="`confidence` must be between 0 and 1, got 90"):
        ShapeDisplay.from_estimator(ranker, confidence=90)
    with pytest.raises(InputError, match="no column has an effect"):
        ShapeDisplay(Effects([], []))
