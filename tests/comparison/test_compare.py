import numpy as np
import polars as pl
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from apexrank.comparison import (
    Candidate,
    Curves,
    LinearPush,
    Logistic,
    Trees,
    compare_rankers,
    compare_table,
)
from apexrank.comparison.candidates import default_candidates, model_size
from apexrank.comparison.compare import MOST_ROWS, drawn_rows
from apexrank.errors import InputError
from apexrank.io import Recipe, Table, TableRanker
from apexrank.io.table_ranker import fit_table
from apexrank.problem.blocks import ArrayBlocks
from apexrank.rankers.logistic import LogisticRanker

FEW_TREES = Trees(rounds=60)


def circle(n=1200, seed=0):
    """Positives inside a circle, which no linear score can separate."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, (X[:, 0] ** 2 + X[:, 1] ** 2) < 0.4


def line(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X @ [1.0, 0.5, 0.0] + rng.logistic(size=n) > 1


def test_trees_are_recommended_where_no_line_helps():
    found = compare_rankers(*circle(), candidates=[Logistic(), FEW_TREES], repeats=2)
    assert found.verdict.kind == "better"
    assert found.names[found.recommended] == "boosted trees"
    assert found.difference(1, 0).low > 0.2
    assert "with logistic regression" in found.verdict.text


def test_an_additive_ranker_is_taken_before_trees_where_both_help():
    X, y = circle()  # a sum of functions of the columns
    candidates = [Logistic(), Curves(), FEW_TREES]
    found = compare_rankers(X, y, candidates=candidates, repeats=1)
    assert found.names[found.recommended] == "curves"
    assert found.difference(1, 0).low > 0.2
    parts = found.first.parts
    assert parts.shape[1] == 3
    assert np.abs(parts[:, 2]).max() < np.abs(parts[:, :2]).max() / 3  # the third column is noise
    # contributions are exact: with one added constant they are the scores
    gap = found.model.decision_function(X[found.rows[found.first.rows]]) - parts.sum(axis=1)
    assert np.ptp(gap) < 1e-12


def test_the_most_readable_candidates_come_first():
    names = [candidate.name for candidate in default_candidates()]
    assert names == ["logistic regression", "linear push", "curves", "curves and trees", "boosted trees"]


def test_numbers_in_a_model():
    X, y = line()
    fits = {c.name: c.fit(X, y, None, c.settings[0]) for c in (Logistic(), Curves(), FEW_TREES)}
    curves = fits["curves"]
    assert model_size(fits["logistic regression"]) == 3
    values = [part.values for part in (*curves.shapes_, *curves.pairs_)]
    assert model_size(curves) == sum(map(np.count_nonzero, values))
    assert model_size(fits["boosted trees"]) == len(fits["boosted trees"].forest_.value)
    assert model_size(GaussianNB().fit(X, y)) is None


def test_the_simplest_is_recommended_where_nothing_is_clearly_better():
    found = compare_rankers(*line(), candidates=[Logistic(), LinearPush(ps=(1, 4)), FEW_TREES], repeats=1)
    assert found.verdict.kind == "no difference"
    assert found.recommended == 0


def test_the_model_is_fitted_on_all_rows_with_the_chosen_setting():
    X, y = line()
    found = compare_rankers(X, y, candidates=[Logistic()], repeats=1)
    scaled = (X - X.mean(0)) / X.std(0)
    model = LogisticRanker(**found.settings[0]).fit(scaled, y)
    np.testing.assert_allclose(found.model.decision_function(X), model.decision_function(scaled), rtol=1e-6)


def test_too_few_positives_are_told_before_the_work_starts():
    said = []

    class Late(Logistic):
        def scores(self, X, y, weight, X_test):
            said.append("fit")
            return super().scores(X, y, weight, X_test)

    X, _ = line(200)
    found = compare_rankers(X, np.arange(200) < 8, candidates=[Late()], repeats=1, tell=said.append)
    assert said[0].startswith("too few to tell")
    assert said[1] == "fit"
    assert found.verdict.kind == "too few to tell"


@pytest.mark.parametrize(
    ("weight", "points"),
    [(None, 27), (np.full(600, 1000), 27), (np.repeat([1e6, 1.0], [100, 500]), 66)],
    ids=["none", "constant", "unequal"],
)
def test_what_can_be_told_depends_on_the_rows_and_not_on_the_size_of_their_weights(weight, points):
    """Half the interval of a share of 1/2 among 12 (or 2) rows in each of five folds: 2.776·√((1/5 + 1/4)/4/12)."""
    said = []
    options = {"candidates": [Logistic()], "repeats": 1, "folds": 5, "top": "10%", "tell": said.append}
    compare_rankers(*line(), sample_weight=weight, **options)
    assert said == [
        f"differences of up to about {points} points at the top can be due to chance; the intervals will tell"
    ]


def test_any_classifier_can_be_a_candidate():
    X, y = line()
    candidates = [LogisticRegression(), DummyClassifier()]
    found = compare_rankers(X, y, candidates=candidates, repeats=1)
    assert found.names == ["LogisticRegression", "DummyClassifier"]
    assert found.verdict.kind == "no difference"  # to the first, which is the best
    assert found.difference(0, 1).low > 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"candidates": [Logistic(), Logistic()]}, "different names"),
        ({"candidates": [3]}, "classifier"),
        ({"top": "most"}, "`top` must be"),
        ({"folds": 1}, "folds"),
        ({"confidence": 2}, "confidence"),
        ({"random_state": -1}, "random_state"),
        ({"top": 10, "fpr": 0.1}, "are alternatives"),
    ],
)
def test_bad_options_are_refused_in_one_line(options, words):
    with pytest.raises(InputError, match=words) as error:
        compare_rankers(*line(60), **options)
    assert "\n" not in str(error.value)


def test_a_test_set_of_its_own_has_bootstrap_intervals():
    X, y = circle(1500)
    found = compare_rankers(
        X[:700], y[:700], X_test=X[700:], y_test=y[700:], candidates=[Logistic(), FEW_TREES]
    )
    assert len(found.y) == 800
    assert found.draws.shape[0] == 2
    gap = found.difference(1, 0)
    assert gap.low < gap.value < gap.high
    assert found.verdict.kind == "better"


def test_many_rows_are_drawn_from():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(MOST_ROWS + 500, 1))
    y = X[:, 0] + rng.logistic(size=len(X)) > 2
    found = compare_rankers(X, y, candidates=[Logistic(alphas=(0.1,))], repeats=1)
    assert len(found.y) == MOST_ROWS
    assert found.notes[0].startswith(f"compared on {MOST_ROWS:,} of")


def people(n=600, seed=0):
    """A table with a row counter, an id, text, dates, missing values and a target in words."""
    rng = np.random.default_rng(seed)
    age, job = rng.normal(40, 12, n).round(), rng.choice(["cook", "clerk", "driver"], n)
    bought = 0.05 * age + (job == "cook") + rng.logistic(size=n) > 3.5
    frame = pl.DataFrame(
        {
            "rownames": np.arange(1, n + 1),
            "age": age,
            "job": job,
            "since": np.datetime64("2020-01-01") + rng.integers(0, 900, n),
            "customer": rng.integers(0, n // 4, n),
            "bought": np.where(bought, "yes", "no"),
        }
    )
    return Table(frame.with_columns(age=pl.when(pl.col("age") < 25).then(None).otherwise(pl.col("age"))))


def test_the_model_of_a_table_is_the_one_that_fit_gives():
    table, recipe = people(), Recipe(target="bought")
    found = compare_table(table, recipe, candidates=[Logistic(), LinearPush(ps=(1, 4))], repeats=1)
    best = found.candidates[found.recommended]
    again, _ = fit_table(table, recipe, best.estimator(found.settings[found.recommended]))
    np.testing.assert_array_equal(found.model.score(table), again.score(table))


def test_frames_and_paths_are_tables_too(tmp_path):
    table, recipe = people(), Recipe(target="bought")
    table.frame.write_parquet(tmp_path / "people.parquet")
    options = {"candidates": [Logistic()], "repeats": 1}
    expected = compare_table(table, recipe, **options).model.coef
    for data in (table.frame, table.frame.to_pandas(), tmp_path / "people.parquet"):
        found = compare_table(data, recipe, test_table=data, **options)
        np.testing.assert_allclose(found.model.coef, expected, rtol=1e-12)
    fitted = [
        TableRanker.fit(data, recipe, LogisticRanker()).coef for data in (table, table.frame.to_pandas())
    ]
    np.testing.assert_allclose(*fitted, rtol=1e-12)
    with pytest.raises(InputError, match="a data frame or the path of a file, not ndarray"):
        compare_table(np.zeros((3, 2)), recipe)


def test_a_row_counter_is_left_out_with_its_reason():
    found = compare_table(people(), Recipe(target="bought"), candidates=[Logistic()], repeats=1)
    assert "rownames" in dict(found.left_out)
    assert not any("rownames" in name for name in found.feature_names)
    assert "age missing" in " ".join(found.feature_names)


def test_a_column_that_gives_the_target_away_is_named_first():
    table = people()
    leaky = Table(table.frame.with_columns(paid=pl.col("bought") == "yes"))
    found = compare_table(leaky, Recipe(target="bought"), candidates=[Logistic()], repeats=1)
    assert "'paid'" in found.notes[0]
    assert "'paid'" in found.verdict.caveats[0]


def test_customers_and_times_split_the_rows_and_are_no_features():
    options = {"candidates": [Logistic()], "repeats": 1}
    table, recipe = people(), Recipe(target="bought")
    grouped = compare_table(table, recipe, group_split="customer", **options)
    assert not any("customer" in name for name in grouped.feature_names)
    later = compare_table(table, recipe, time="since", **options)
    assert later.how.startswith("trained on the past")
    assert len(later.y) < len(table)
    assert f"evaluated on {round(len(later.y) / later.values.shape[1])} each time" in later.measured
    assert not any("since" in name for name in later.feature_names)


def test_a_test_table_needs_the_columns_that_are_used():
    table, recipe = people(), Recipe(target="bought")
    other = people(200, seed=1)
    found = compare_table(table, recipe, test_table=other, candidates=[Logistic()])
    assert len(found.y) == 200
    with pytest.raises(InputError, match="no column 'job'"):
        compare_table(table, recipe, test_table=Table(other.frame.drop("job")), candidates=[Logistic()])
    same = compare_table(table, recipe, test_table=table, candidates=[Logistic()])
    assert "test rows are training rows" in same.verdict.caveats[-1]


@pytest.mark.slow
def test_false_claims_are_rare_where_all_rankers_are_equal():
    """Rankers on exchangeable features perform equally well in the long run, so any claim is false."""

    class Block(Candidate):
        def scores(self, X, y, weight, X_test):
            own = slice(3 * int(self.name), 3 * int(self.name) + 3)
            return LogisticRanker(alpha=1e-3).fit(X[:, own], y).decision_function(X_test[:, own])[None]

        def estimator(self, setting):
            return LogisticRanker()

    claims, draws = 0, 70
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(400, 12))
        y = X.sum(axis=1) / 3 + rng.logistic(size=400) > 1.5
        found = compare_rankers(X, y, candidates=[Block(str(b)) for b in range(4)], random_state=seed)
        claims += found.difference(found.best, 0).low > 0
    # at a rate of 5 %, more than 9 have a probability of 0.3 %
    assert claims <= 9


def test_copies_of_rows_are_on_one_side_of_a_split():
    rng = np.random.default_rng(0)
    noise = pl.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300), "y": rng.integers(0, 2, 300)})
    table = Table(pl.concat([noise] * 3))
    found = compare_table(table, Recipe(target="y"), candidates=[FEW_TREES], repeats=1)
    assert found.value(0, "auc").value < 0.6
    assert found.notes[-1] == "rows that repeat others are kept on one side of every split"


def test_times_are_read_as_features_are():
    table = people()
    written = Table(table.frame.with_columns(since=pl.col("since").dt.strftime("%d.%m.%Y")))
    one, other = (
        compare_table(each, Recipe(target="bought"), time="since", candidates=[Logistic()])
        for each in (table, written)
    )
    np.testing.assert_array_equal(one.values, other.values)


def test_rows_are_named_by_their_place_in_the_file():
    table = people(200)
    gaps = pl.when(pl.int_range(200) < 10).then(None).otherwise(pl.col("bought"))
    found = compare_table(
        Table(table.frame.with_columns(bought=gaps)),
        Recipe(target="bought"),
        candidates=[Logistic()],
        repeats=1,
    )
    assert found.row_names[0] == "row 11"
    assert found.positive == "bought = yes"


def test_a_classifier_of_probabilities_can_be_the_model_of_a_table():
    table = people()
    found = compare_table(
        table, Recipe(target="bought"), candidates=[DummyClassifier(), GaussianNB()], repeats=1
    )
    probability = found.model.score(table)
    assert ((probability >= 0) & (probability <= 1)).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"X_test": np.zeros((4, 3))}, "belong together"),
        ({"X_test": np.zeros((4, 3)), "y_test": [1, 2, 1, 2]}, "give the same two"),
        ({"X_test": np.zeros((4, 2)), "y_test": [0, 1, 0, 1]}, "needs the 3 columns"),
        ({"X_test": np.zeros((4, 3)), "y_test": [0, 1, 0]}, "a label for each row"),
        ({"sample_weight": np.ones(3)}, "sample_weight needs one value for each of the 60 rows"),
        ({"groups": np.ones(3)}, "groups needs one value"),
        ({"time": np.ones(3)}, "time needs one value"),
        ({"row_names": ["a"]}, "`row_names` needs 60 names"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arguments, words):
    X, y = line(60)
    with pytest.raises(InputError, match=words):
        compare_rankers(X, y.astype(int), candidates=[Logistic()], **arguments)


def test_the_result_does_not_depend_on_the_number_of_threads(monkeypatch):
    X, y = line()
    candidates = [Logistic(), LinearPush(), Curves(), FEW_TREES]
    found, told = [], []
    for n in (1, 3):
        monkeypatch.setattr("apexrank.comparison.compare.n_threads", lambda n=n: n)
        told.append([])
        found.append(
            compare_rankers(
                X, y, candidates=candidates, repeats=1, progress=lambda *said: told[-1].append(said)
            )
        )
    one, several = found
    np.testing.assert_array_equal(one.values, several.values)
    np.testing.assert_array_equal(one.scores, several.scores)
    for said in told:
        assert [done for done, _, _ in said] == list(range(20))
        assert sorted(name for _, _, name in said) == sorted([c.name for c in candidates] * 5)


def test_blocks_and_tensors_are_compared_on_as_rows_in_memory_are():
    X, y = line()
    weight = np.arange(len(y)) % 3
    options = {"candidates": [Logistic()], "repeats": 1}
    expected = compare_rankers(X, y, sample_weight=weight, **options)
    blocks = ArrayBlocks(X, y, weight, rows=70)
    for found in (
        compare_rankers(blocks, None, **options),
        compare_rankers(collection(X), collection(y), sample_weight=collection(weight), **options),
        compare_rankers(tensor(X), y, sample_weight=weight, **options),
    ):
        np.testing.assert_array_equal(found.values, expected.values)
        assert found.row_names == expected.row_names
        assert found.notes == []


def test_rows_are_drawn_where_there_are_too_many(monkeypatch):
    X, y = line()
    monkeypatch.setattr("apexrank.comparison.compare.MOST_ROWS", 400)
    options = {"candidates": [Logistic()], "repeats": 1, "X_test": X, "y_test": y}
    for given, labels in ((ArrayBlocks(X, y, rows=70), None), (tensor(X), y)):
        found = compare_rankers(given, labels, **options)
        assert found.notes == [
            "compared on 400 of the 600 rows, drawn at random; the model learns from these"
        ]
        assert found.row_names[:2] == ["row 601", "row 602"]  # test rows follow all training rows
    drawn = drawn_rows(ArrayBlocks(X, y, rows=70), None)
    assert len(np.unique(drawn.places)) == 400 < drawn.total == 600
    np.testing.assert_array_equal(drawn.X, X[drawn.places])
    np.testing.assert_array_equal(drawn.y, y[drawn.places])


def test_rows_elsewhere_have_no_times_or_names():
    X, y = line()
    for options in ({"time": y}, {"row_names": y}):
        with pytest.raises(InputError, match="`time` and `row_names` are for rows in memory"):
            compare_rankers(ArrayBlocks(X, y), None, candidates=[Logistic()], **options)


def collection(array):
    return pytest.importorskip("dask.array").from_array(array, chunks=(70, *array.shape[1:]))


def tensor(array):
    return pytest.importorskip("torch").tensor(array)
