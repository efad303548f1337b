"""The command line on graded relevance: LETOR files, tables with groups, TREC runs."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.model_selection import GroupKFold
from typer.testing import CliRunner

import apexrank
from apexrank.aggregation import LovaszAggregator
from apexrank.cli.app import app
from apexrank.cli.fit import ALPHAS
from apexrank.datasets import make_letor_example, read_letor, write_letor
from apexrank.errors import InputError
from apexrank.io import (
    Recipe,
    TableRanker,
    read_qrels,
    read_run,
    read_table,
    write_qrels,
    write_table,
)
from apexrank.io.table_ranker import Thresholds
from apexrank.preprocessing import QueryNormalizer
from tests.cli.test_verbs import run

MODELS = (
    "pairs --alpha 0.01",
    "retarget",
    "retarget --divergence kl --alpha 0.1",
    "retarget --bounds=-1,3",
    "listwise --loss listnet",
    "letor",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, seed in (("train.txt", 0), ("test.txt.gz", 1)):
        made = make_letor_example(n_queries=30, random_state=seed)
        write_letor(name, made.data, made.target, made.groups, made.docids)
    return tmp_path


@pytest.fixture(params=MODELS)
def model(request, folder):
    run(f"fit train.txt --model {request.param}")
    return folder / "model.apex"


def test_feature_numbers_above_a_million_are_refused(folder):
    Path("wide.txt").write_text("1 qid:1 1:0.5 3000000:1\n0 qid:1 1:.2\n2 qid:1 2:.3\n")
    Path("parts").mkdir()
    Path("parts/a.txt").write_text(Path("wide.txt").read_text())
    for path in ("wide.txt", "parts"):
        refused = run(f"fit {path} --model retarget", code=2).stderr
        assert len(refused.splitlines()) == 1
        assert "3,000,000" in refused


def test_fit_and_evaluate(model):
    train, test = read_letor("train.txt"), read_letor("test.txt.gz")
    ranker = apexrank.load(model)
    scores = ranker.score(read_table("test.txt.gz"))
    center, scale = train.data.mean(0), train.data.std(0)
    estimator = ranker.estimator.__class__(**ranker.estimator.get_params())
    estimator.fit((train.data - center) / scale, train.target, groups=train.groups)
    np.testing.assert_allclose(
        scores, estimator.predict((test.data - center) / scale), rtol=1e-12, atol=1e-12
    )
    answer = json.loads(run("evaluate model.apex test.txt.gz --json").stdout)
    assert answer["groups"] == len(np.unique(test.groups))
    expected = apexrank.metrics.ndcg(test.target, scores, groups=test.groups)
    assert answer["measures"]["ndcg"] == pytest.approx(expected)
    assert expected > 0.8


def test_runs_keep_the_document_ids(model):
    run("rank model.apex test.txt.gz --format trec -o run.txt")
    test = read_letor("test.txt.gz")
    write_qrels((test.groups, test.docids, test.target), "qrels.txt")
    found = read_run("run.txt")
    assert sorted(found.select("query", "document").rows()) == sorted(
        zip(test.groups.tolist(), test.docids.tolist(), strict=True)
    )
    assert found["tag"].unique().to_list() == ["model"]
    assert len(read_qrels("qrels.txt")) == len(test.target)
    options = "--measures ndcg,map --ties average --json"  # trees give equal scores, which runs break as trec_eval does
    of_run = json.loads(run(f"evaluate run.txt --qrels qrels.txt {options}").stdout)
    of_model = json.loads(run(f"evaluate model.apex test.txt.gz {options}").stdout)
    assert of_run["measures"] == pytest.approx(of_model["measures"])
    assert run("rank model.apex test.txt.gz --format trec").stdout == Path("run.txt").read_text()


def test_a_table_with_groups_is_the_same(folder):
    train = read_table("train.txt").frame
    train.rename({"qid": "query", "relevance": "stars", "docid": "page"}).write_csv("train.csv")
    run("fit train.txt --model pairs --alpha 0.01 -o a.apex")
    run("fit train.csv --model pairs --alpha 0.01 --target stars --groups query --id page -o b.apex")
    np.testing.assert_array_equal(apexrank.load("a.apex").coef, apexrank.load("b.apex").coef)
    lines = run("rank b.apex train.csv --top 1 --explain").stdout.splitlines()
    assert lines[0] == "query,page,rank,score,why_1,why_2,why_3"
    assert len(lines) == 1 + train["qid"].n_unique()


def test_query_level_scaling(folder):
    run("fit train.txt --model pairs --alpha 0.01 --scale query")
    train, test = read_letor("train.txt"), read_letor("test.txt.gz")
    estimator = apexrank.CrucialPairsPush(alpha=0.01)
    scaler = QueryNormalizer()
    estimator.fit(scaler.fit_transform(train.data, groups=train.groups), train.target, groups=train.groups)
    scores = apexrank.load("model.apex").score(read_table("test.txt.gz"))
    X = scaler.transform(test.data, groups=test.groups)
    np.testing.assert_allclose(scores, estimator.predict(X), rtol=1e-10)
    assert "query scaling" in run("fit train.txt --model pairs --alpha 0.01 --scale query").stdout


def test_alpha_is_chosen_on_whole_queries(folder):
    result = run("fit train.txt --model retarget --cv --folds 3 --scoring ndcg@5")
    assert "alpha chosen by cross-validation: ndcg@5 0." in result.stdout
    report = json.loads(run("fit train.txt --model retarget --cv --folds 3 --json").stdout)
    train = read_letor("train.txt")
    X = (train.data - train.data.mean(0)) / train.data.std(0)
    means = {}
    for alpha in ALPHAS:
        values = []
        for fit, held_out in GroupKFold(3).split(X, train.target, train.groups):
            ranker = apexrank.MonotoneRetargeting(alpha=alpha)
            ranker.fit(X[fit], train.target[fit], groups=train.groups[fit])
            scores = ranker.predict(X[held_out])
            values.append(
                apexrank.metrics.ndcg(train.target[held_out], scores, groups=train.groups[held_out])
            )
        means[alpha] = np.mean(values)
    assert report["cv"]["score"] == pytest.approx(max(means.values()))
    assert report["params"]["alpha"] == max(means, key=means.get)


def test_models_of_two_classes_read_letor_files_too(folder):
    frame = read_table("train.txt").frame
    made = frame.with_columns((pl.col("relevance") > 0).cast(pl.Int64).alias("relevance"))
    features = made.drop("relevance", "qid", "docid").to_numpy()
    write_letor("binary.txt", features, made["relevance"], made["qid"], made["docid"])
    shown = run("fit binary.txt -p 4 --alpha 0.01").stdout
    assert "(relevance = 1)" in shown
    assert "NDCG" in run("evaluate model.apex binary.txt").stdout


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("fit train.txt --model retarget --positive 1", "takes grades of relevance: leave out --positive"),
        (
            "fit train.txt --model push",
            "but this ranker learns from two classes: use one of grades (fit --model retarget), or name the",
        ),
        ("aggregate train.txt --judged train.txt --kind orders", "--kind"),
        ("fit train.txt --model retarget -p 3", "--model retarget has no -p"),
        ("fit train.txt --model retarget --bounds 1", "--bounds takes two numbers such as 0,5"),
        ("fit train.txt --model retarget --bounds 3,1", "--bounds must be two numbers in order"),
        ("fit train.txt --model retarget --bounds 0,1", "leave no room for margins of 1.41"),
        ("fit train.txt --model retarget --bounds 0, --divergence kl", "use --divergence squared"),
        ("fit train.txt --model pairs --bounds 0,1", "--model pairs has no --bounds"),
        ("fit train.txt --model retarget --divergence cubic", "--divergence must be"),
        ("fit train.txt --model listwise --loss cubic", "--loss must be"),
        ("fit train.txt --model letor --cv", "not for letor: leave it out"),
        ("fit train.txt --model letor --alpha 1", "--model letor has no --alpha"),
        ("fit bad.txt --model retarget", "bad.txt line 2"),
        (
            "fit words.csv --target y --model pairs",
            "words.csv column 'y' holds text such as 'good'; grades of",
        ),
        ("fit negative.csv --target y --model pairs", "relevance must be a number of at least 0"),
        ("fit plain.csv --target y --model pairs --scale query", "--scale query scales inside each group"),
        ("fit train.txt --model retarget --cv --alpha 1", "--cv chooses alpha"),
        (
            "fit plain.csv --target y --model pairs --cv",
            "holds out whole groups: name their column with --groups",
        ),
        ("rank pairs.apex train.txt --fpr 0.1", "--fpr needs a model of two classes"),
        ("rank pairs.apex train.txt --format xml", "unknown --format 'xml': use one of table, trec"),
        ("evaluate pairs.apex bad.txt", "bad.txt line 2"),
    ],
)
def test_bad_input_is_one_line(folder, command, words):
    Path("bad.txt").write_text("1 qid:1 1:0.5\n1 1:0.5\n")
    Path("words.csv").write_text("x,y\n1,good\n2,bad\n")
    Path("negative.csv").write_text("x,y\n1,-1\n2,2\n3,0\n")
    Path("plain.csv").write_text("x,y\n1,1\n2,2\n3,0\n")
    run("fit train.txt --model pairs --alpha 0.01 -o pairs.apex")
    result = run(command, code=2)
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_model_of_grades_has_no_thresholds(folder):
    run("fit train.txt --model pairs --alpha 0.01")
    model = apexrank.load("model.apex")
    assert model.positive is model.thresholds is None
    thresholds = Thresholds.learn(np.arange(5.0))
    push = apexrank.PNormPush().fit([[0.0], [1.0]], [0, 1])
    for change in ({"positive": "1"}, {"thresholds": thresholds}, {"estimator": push}):
        with pytest.raises(InputError):
            apexrank.save(replace(model, **change), "wrong.apex")


# Runs ranked elsewhere, measured as trec_eval does


@pytest.fixture
def trec(tmp_path, monkeypatch):
    """Run with ties, with a judged query missing from it, and with grades 1 and 2 only."""
    monkeypatch.chdir(tmp_path)
    Path("run.txt").write_text(
        "1 Q0 a 1 3 x\n1 Q0 c 2 3 x\n1 Q0 b 3 2 x\n2 Q0 b 1 5 x\n2 Q0 a 2 1 x\n9 Q0 a 1 1 x\n"
    )
    Path("qrels.txt").write_text("1 0 a 1\n1 0 b 2\n1 0 d 1\n2 0 a 2\n2 0 b 1\n3 0 a 1\n")
    return tmp_path


def measures_of(*arguments, code=0):
    return json.loads(run(f"evaluate {' '.join(arguments)} --json", code=code).stdout)


def test_what_is_left_out_is_said(trec):
    result = run("evaluate run.txt --qrels qrels.txt --measures map")
    assert (
        "1 judged queries are not in the run and are left out; --complete counts them as 0" in result.stderr
    )
    assert "1 queries of the run are not judged and are left out" in result.stderr
    assert "5 rows, 5 positive, in 2 groups" in result.stdout
    two = measures_of("run.txt --qrels qrels.txt --measures map")["measures"]["map"]
    three = measures_of("run.txt --qrels qrels.txt --measures map --complete")["measures"]["map"]
    assert three == pytest.approx(two * 2 / 3)
    Path("other.txt").write_text("1 0 x 1\n2 0 y 2\n")
    assert (
        "are its document ids those of the qrels?"
        in run("evaluate run.txt --qrels other.txt --measures map").stderr
    )


def test_ties_may_be_chosen(trec):
    given = measures_of("run.txt --qrels qrels.txt --measures map")["measures"]
    worst = measures_of("run.txt --qrels qrels.txt --measures map --ties pessimistic")["measures"]
    best = measures_of("run.txt --qrels qrels.txt --measures map --ties optimistic")["measures"]
    assert worst["map"] == given["map"] < best["map"]  # ids in descending order put c before a


def test_default_measures_without_a_value_are_left_out(trec):
    Path("good.txt").write_text("2 Q0 b 1 5 x\n2 Q0 a 2 1 x\n")
    result = run("evaluate good.txt --qrels qrels.txt")
    assert "not defined on these rows and left out: auc" in result.stderr
    assert "NDCG" in result.stdout
    assert "ERR takes 2 for the highest grade" in result.stdout
    assert (
        "auc: the measure is not defined"
        in run("evaluate good.txt --qrels qrels.txt --measures auc", code=2).stderr
    )


def test_qrels_are_never_overwritten(trec):
    Path("qrels.txt").rename("qrels.csv")
    before = Path("qrels.csv").read_bytes()
    run("evaluate run.txt --qrels qrels.csv --per-query -o qrels.csv", code=2)
    assert Path("qrels.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("evaluate run.txt --qrels qrels.txt --groups q", "--qrels goes with a TREC run alone"),
        ("evaluate run.txt --qrels qrels.txt --per-query --confidence 0.9", "--confidence applies to means"),
        ("evaluate run.txt --qrels qrels.txt --positive 1 --relevant 1", "give one of them"),
        ("evaluate run.txt --qrels qrels.txt --measures ndcg@inf", "'ndcg@inf' needs a number of rows"),
        ("evaluate qrels.txt --qrels run.txt", "exchange the two files"),
        ("evaluate run.txt --qrels qrels.txt --roc a.png", "--roc draws one list"),
        ("evaluate run.txt --qrels qrels.txt --ties odd", "unknown --ties 'odd'"),
        ("evaluate run.txt --qrels qrels.txt --empty odd", "unknown --empty 'odd'"),
    ],
)
def test_faults_of_runs(trec, command, words):
    result = run(command, code=2)
    assert words in result.stderr
    assert result.stderr.strip().count("error: ") == 1
    assert not result.stdout


def test_a_measure_named_twice_is_shown_once(trec):
    assert run("evaluate run.txt --qrels qrels.txt --measures map,map").stdout.count("average precision") == 1


# Answers of models


def test_the_positive_value_goes_with_its_own_target(folder):
    frame = read_table("train.txt").frame
    frame = frame.with_columns((pl.col("relevance") > 0).cast(pl.Int64).alias("fraud"))
    frame.drop("docid").write_csv("both.csv")
    run("fit both.csv --target fraud --groups qid --drop relevance --alpha 0.01")
    graded = measures_of("model.apex both.csv --target relevance")
    assert graded["positives"] == (frame["relevance"] > 0).sum()
    assert graded["max_grade"] == frame["relevance"].max()
    twos = measures_of("model.apex both.csv --target relevance --relevant 2")
    assert twos["positives"] == (frame["relevance"] >= 2).sum()


def test_a_failed_command_leaves_no_picture(folder):
    frame = read_table("train.txt").frame.drop("docid", "qid")
    frame.write_csv("plain.csv")
    run("evaluate plain.csv --scores feature_1 --target relevance --roc a.png --measures nope", code=2)
    assert not Path("a.png").exists()
    run("evaluate plain.csv --scores feature_1 --target relevance --roc a.png")
    assert Path("a.png").exists()


def test_features_that_a_file_does_not_name_are_zero(folder):
    run("fit train.txt --model pairs --alpha 0.01")
    test = read_letor("test.txt.gz")
    short = test.data.copy()
    short[:, -1] = 0.0
    write_letor("short.txt", short[:, :-1], test.target, test.groups, test.docids)
    write_letor("zeros.txt", short, test.target, test.groups, test.docids)
    scores = [apexrank.load("model.apex").score(read_table(name)) for name in ("short.txt", "zeros.txt")]
    np.testing.assert_array_equal(*scores)


def test_runs_need_ids_of_documents(folder):
    read_table("train.txt").frame.drop("docid").write_csv("noid.csv")
    run("fit noid.csv --target relevance --groups qid --model pairs --alpha 0.01")
    assert "uses row numbers as document ids" in run("rank model.apex noid.csv --format trec --top 1").stderr
    assert "is the column of groups" in run("rank model.apex noid.csv --format trec --id qid", code=2).stderr
    assert "has no other columns" in run("rank model.apex noid.csv --format trec --keep", code=2).stderr


def test_answers_that_are_missing_are_not_negative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("gap.csv").write_text("s,y\n1,yes\n2,no\n3,NA\n")
    result = run("evaluate gap.csv --scores s --target y --positive yes", code=2)
    assert "line 4, column 'y': the target is missing" in result.stderr


def test_unusual_columns_of_parquet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame({"s": [1.0, 2.0], "y": [0, 1], "g": [b"\xff", b"a"]})
    frame.write_parquet("odd.parquet")
    result = run("evaluate odd.parquet --scores s --target y --groups g", code=2)
    assert "column 'g': Binary values cannot be used" in result.stderr


def test_lists_are_merged_by_weights_learnt_from_judged_ones(tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=400)
    scores = truth[:, None] * [3.0, 0.0, 0.5] + rng.normal(size=(400, 3))
    scores[rng.random((400, 3)) < 0.3] = np.nan
    groups, grades = np.repeat(np.arange(40)[::-1], 10), np.digitize(truth, [0.5, 1.5])
    for name, part in (("judged.txt", slice(0, 200)), ("lists.txt", slice(200, 400))):
        write_letor(tmp_path / name, scores[part], grades[part], groups[part])
    command = ["aggregate", str(tmp_path / "lists.txt"), "--judged", str(tmp_path / "judged.txt")]
    written = tmp_path / "merged.csv"
    result = CliRunner().invoke(app, [*command, "-o", str(written), "--json"])
    assert result.exit_code == 0, result.output
    model = LovaszAggregator("top", normalize="reciprocal", missing="indicator")
    model.fit(scores[:200], grades[:200], groups=groups[:200])
    expected = model.predict(scores[200:], groups=groups[200:])
    frame = pl.read_csv(written)
    assert frame.columns == ["qid", "docid", "score", "rank"]
    np.testing.assert_allclose(frame.sort("docid")["score"], expected, rtol=1e-9)
    assert frame["qid"].to_list() == groups[200:].tolist()
    for _, rows in frame.group_by("qid"):
        assert rows["rank"].to_list() == sorted(rows["rank"].to_list())
        assert rows["score"].to_list() == sorted(rows["score"].to_list(), reverse=True)
    told = json.loads(result.output)
    np.testing.assert_allclose(told["weights"], model.weights_)
    assert told["weights"][0] > told["weights"][1]
    top = CliRunner().invoke(app, [*command, "--top", "2"])
    assert len(top.output.splitlines()) >= 40
    for wrong in (["--method", "borda"], ["--bootstrap", "10"], ["--seed", "3"], ["--figure", "x.png"]):
        result = CliRunner().invoke(app, [*command, *wrong])
        assert result.exit_code == 2
        assert f"{wrong[0]} cannot be combined with --judged" in result.output


def test_missing_values_are_imputed_on_request(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(rng.normal(size=(300, 2)), schema=["a", "b"])
    frame = frame.with_columns(
        stars=(pl.col("a") + pl.col("b")).gt(0).cast(int), q=np.repeat(np.arange(30), 10)
    )
    frame = frame.with_columns(a=pl.when(pl.Series(rng.random(300) < 0.2)).then(None).otherwise(pl.col("a")))
    frame.write_csv("gaps.csv")
    command = "fit gaps.csv --target stars --groups q --model"
    assert "3 features" in run(f"{command} letor --impute median").stdout
    assert run("rank model.apex gaps.csv --top 1 --explain").stdout.count("\n") == 31
    for model in ("letor", "retarget"):
        assert "the value is missing" in run(f"{command} {model}", code=2).stderr


@pytest.mark.parametrize("model", ["retarget", "additive-retarget", "letor", "pairs", "listwise"])
def test_grades_that_all_exceed_0(tmp_path, monkeypatch, model):
    monkeypatch.chdir(tmp_path)
    X, y, groups = (
        np.array([[1, 0], [2, 1], [3, 0], [1, 0], [4, 1], [5, 1]]),
        [1, 2, 3] * 2,
        [1] * 3 + [2] * 3,
    )
    write_letor("rows.txt", X, y, groups)
    pl.DataFrame(X, schema=["a", "b"]).with_columns(q=pl.Series(groups), y=pl.Series(y)).write_csv("rows.csv")
    left = "not defined on these rows and left out: auc"
    for rows in ("rows.txt", "rows.csv --target y --groups q"):
        options = f"fit {rows} --model {model}" + " --alpha 0.1" * (model == "pairs")
        found = json.loads(run(f"{options} --json").stdout)
        assert left in found["notes"]
        expected = apexrank.metrics.ndcg(
            y, apexrank.load("model.apex").score(read_table(rows.split()[0])), groups=groups
        )
        assert found["measures"]["ndcg"] == pytest.approx(expected)
        assert f"note: {left}\n" in run(options).stderr


def test_grades_that_all_exceed_0_in_one_list(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"a": [1, 2, 3, 4], "y": [1, 1, 2, 2]}).write_csv("rows.csv")
    result = run("fit rows.csv --target y --model retarget")
    assert "on the training rows: NDCG 1.000" in result.stdout
    assert "left out: auc" in result.stderr


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(
    "rows", ["rows.csv", "rows.parquet", "rows.csv --engine blocks", "rows.parquet --strict"]
)
def test_row_numbers_of_graded_tables_are_left_out(tmp_path, monkeypatch, rows, first):
    monkeypatch.chdir(tmp_path)
    made = make_letor_example(n_queries=5, random_state=0)
    n = len(made.target)
    frame = pl.DataFrame({"rownames": np.arange(first, n + first), "x": made.data[:, 0], "y": made.target})
    frame = frame.with_columns(
        s=pl.Series(made.groups), shuffled=pl.Series(np.random.default_rng(0).permutation(n))
    )
    frame.write_csv("rows.csv")
    frame.write_parquet("rows.parquet")
    command, told = (
        f"fit {rows} --target y --groups s --model retarget",
        "left out: 'rownames' (counts the rows; ",
    )
    assert told in run(command, code=2 if "strict" in rows else 0).stderr
    if "strict" not in rows:
        assert apexrank.load("model.apex").encoder.features == ["x", "shuffled"]
    kept = json.loads(run(f"{command} --features all,rownames --json").stdout)
    assert not kept["notes"]
    assert list(kept["coefficients"]) == ["rownames", "x", "shuffled"]


@pytest.mark.parametrize("engine", ["", " --engine blocks"])
def test_row_numbers_of_letor_files_are_features(tmp_path, monkeypatch, engine):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    write_letor(
        "rows.txt", np.c_[np.arange(20), rng.normal(size=20)], np.arange(20) % 3, np.repeat([1, 2], 10)
    )
    assert (
        "feature_1" in json.loads(run(f"fit rows.txt --model retarget --json{engine}").stdout)["coefficients"]
    )


def test_groups_for_a_model_without(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = make_letor_example(n_queries=12, random_state=0)
    names = [f"x{j}" for j in range(made.data.shape[1])]
    frame = pl.DataFrame(made.data, schema=names).with_columns(
        y=pl.Series(made.target), s=pl.Series(made.groups)
    )
    frame.write_csv("rows.csv")
    Path("rows").mkdir()
    frame.write_parquet("rows/rows.parquet")
    recipe = Recipe(target="y", graded=True, groups="s")
    ranker = TableRanker.fit(frame, recipe, apexrank.MonotoneRetargeting())
    apexrank.save(ranker, "own.apex")
    apexrank.save(replace(ranker, groups=None), "bare.apex")
    one_list = "note: the model has no groups, so all rows are measured as one list: name their column with --groups\n"
    assert one_list in run("evaluate bare.apex rows.csv --target y").stderr
    own = run("evaluate own.apex rows.csv --json")
    for rows in ("rows.csv", "rows"):
        grouped = run(f"evaluate bare.apex {rows} --target y --groups s --json")
        assert json.loads(grouped.stdout)["measures"] == json.loads(own.stdout)["measures"]
        assert not grouped.stderr
    assert (
        run("rank bare.apex rows.csv --groups s --top 2").stdout
        == run("rank own.apex rows.csv --top 2").stdout
    )
    for command in ("evaluate own.apex rows.csv", "rank own.apex rows.csv"):
        assert (
            "the model already ranks within groups (column 's')"
            in run(f"{command} --groups x0", code=2).stderr
        )


@pytest.mark.parametrize("verb", ["rank", "evaluate", "export"])
def test_a_ranker_without_a_table_is_refused(folder, verb):
    ranker = apexrank.MonotoneRetargeting().fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    apexrank.save(ranker, "bare.apex")
    rest = "-o model.sql" if verb == "export" else "train.txt"
    result = run(f"{verb} bare.apex {rest}", code=2)
    assert "MonotoneRetargeting" in result.stderr
    assert "apexrank.load" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("engine", ["", "--engine blocks"])
def test_a_column_of_queries_is_found_by_its_name(folder, engine):
    write_table(read_table("train.txt").frame, "train.csv")
    command = f"fit train.csv --target relevance --id docid --json -o qid.apex {engine}"
    found = json.loads(run(f"{command} --model retarget").stdout)
    assert apexrank.load("qid.apex").groups == "qid"
    assert any("'qid'" in note for note in found["notes"])
    assert json.loads(run(f"{command} --model retarget --groups qid").stdout)["measures"] == found["measures"]
    run(f"{command} --model retarget --drop qid")
    assert apexrank.load("qid.apex").groups is None
