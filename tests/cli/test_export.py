"""``apexrank export``: options, output and errors."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import onnxruntime
import polars as pl
import pytest

import apexrank
from apexrank.io import read_table
from tests.cli.running import run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Folder with training and test tables of payments, and a model fitted on the former."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    n = 300
    amount, night = rng.normal(100, 30, n).round(1), rng.integers(0, 2, n)
    city = rng.choice(["Oslo", "Rome", "Bern"], n)
    fraud = ((amount - 100) / 30 + night + 2 * (city == "Oslo") + rng.normal(size=n) > 2).astype(int)
    columns = {"case": [f"{i:03d}" for i in range(n)], "amount": amount, "night": night, "city": city}
    frame = pl.DataFrame({**columns, "fraud": fraud})
    frame[:200].write_csv("train.csv")
    frame[200:].write_csv("new.csv")
    run("fit train.csv --target fraud --id case --categorical city -p 4 --alpha 0.01")
    return tmp_path


class TestOnnx:
    def test_scores_of_the_file(self, folder):
        result = run("export model.apex -o model.onnx")
        assert result.stdout == "written: model.onnx, inputs amount, night, city, outputs label, score\n"
        session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
        table = read_table("new.csv")
        numbers = {
            name: table.frame[name].cast(pl.Float64).to_numpy()[:, None] for name in ("amount", "night")
        }
        words = np.array(table.frame["city"].to_list(), object)[:, None]
        scores = session.run(["score"], {**numbers, "city": words})[0]
        np.testing.assert_allclose(scores, apexrank.load("model.apex").score(table), rtol=1e-9)

    def test_json(self, folder):
        report = json.loads(run("export model.apex --format onnx -o graph.bin --json").stdout)
        assert report == {
            "model": "model.apex",
            "format": "onnx",
            "output": "graph.bin",
            "positive": "1",
            "inputs": ["amount", "night", "city"],
            "outputs": ["label", "score"],
        }

    def test_columns_called_like_outputs(self, folder):
        pl.read_csv("train.csv").rename({"amount": "score"}).write_csv("renamed.csv")
        run("fit renamed.csv --target fraud --id case --categorical city -o renamed.apex --alpha 0.01")
        result = run("export renamed.apex -o model.onnx")
        assert "inputs score_input, night, city, outputs label, score" in result.stdout
        assert (
            "note: column 'score' is the input 'score_input': its own name is that of an output"
            in result.stderr
        )


class TestSql:
    def scores(self, sql):
        frame = read_table("new.csv").frame
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute('CREATE TABLE payments ("case" TEXT, amount REAL, night INTEGER, city TEXT)')
            rows = frame.select("case", "amount", "night", "city").rows()
            connection.executemany("INSERT INTO payments VALUES (?, ?, ?, ?)", rows)
            found = connection.execute(sql).fetchall()
        connection.close()
        return found

    def test_goes_to_the_screen(self, folder):
        sql = run("export model.apex").stdout
        found = np.ravel(self.scores(f"SELECT {sql} FROM payments"))
        np.testing.assert_allclose(found, apexrank.load("model.apex").score(read_table("new.csv")), rtol=1e-9)

    @pytest.mark.parametrize("dialect", ["", "--dialect sqlite"])
    def test_a_statement_in_a_file(self, folder, dialect):
        result = run(f"export model.apex -o score.sql --table payments {dialect}")
        assert result.stdout == "written: score.sql, a SELECT of payments\n"
        text = (folder / "score.sql").read_text()
        assert text.endswith(";\n")
        found = self.scores(text)
        wanted = apexrank.load("model.apex").score(read_table("new.csv"))
        np.testing.assert_allclose([row[1] for row in found], np.sort(wanted)[::-1], rtol=1e-9)
        assert found[0][0] == f"{200 + int(wanted.argmax()):03d}"

    def test_names_of_score_and_id(self, folder):
        sql = run("export model.apex --table payments --score points --id city").stdout
        assert sql.startswith('SELECT r."city", ')
        assert 'AS "points"' in sql
        assert {row[0] for row in self.scores(sql)} == {"Oslo", "Rome", "Bern"}

    def test_json(self, folder):
        report = json.loads(run("export model.apex --table payments --json").stdout)
        assert report["sql"].startswith('SELECT r."case"')
        assert report["output"] is None


class TestScorecard:
    def test_card_and_loss(self, folder):
        result = run("export model.apex -o card.csv --data train.csv --test new.csv --max-points 5")
        for words in (
            "Add up the points",
            "of amount",
            "if city is Oslo",
            "what rounding costs on new.csv",
            "auc",
        ):
            assert words in result.stdout
        card = pl.read_csv("card.csv")
        assert card.columns == ["feature", "points", "unit", "rule"]
        assert card["points"].abs().max() <= 5
        assert result.stdout.rstrip().endswith(f"written: card.csv, {len(card)} features of 5")

    def test_markdown_and_the_rows_of_rounding(self, folder):
        result = run("export model.apex -o card.md --data train.csv")
        assert "train.csv, on which it was rounded" in result.stdout
        assert (folder / "card.md").read_text().startswith("| points | |")

    def test_on_the_screen_as_json(self, folder):
        result = run("export model.apex --format scorecard --data train.csv --test new.csv --json")
        report = json.loads(result.stdout)
        assert report["objective"]["card"] <= report["objective"]["naive"]
        assert report["measured_on"] == "new.csv"
        assert {row["feature"] for row in report["points"]} >= {"amount", "city=Oslo"}
        assert report["loss"][0]["measure"] == "auc"
        assert sorted(path.name for path in folder.iterdir()) == ["model.apex", "new.csv", "train.csv"]

    def test_odd_values_are_noted(self, folder):
        text = (folder / "new.csv").read_text().replace("Rome", "Paris")
        (folder / "new.csv").write_text(text)
        result = run("export model.apex --format scorecard --data train.csv --test new.csv")
        assert "note: column 'city': 40 of 100 values" in result.stderr
        assert "'Paris'" in result.stderr

    def test_fractional_weights_of_groups(self, folder):
        frame = pl.read_csv("train.csv")
        row = pl.int_range(pl.len())
        frame.with_columns(times=row % 3 + 0.5, query=row // 20).write_csv("train.csv")
        run(
            "fit train.csv --target fraud --id case --categorical city --model retarget --groups query --weight times"
        )
        result = run("export model.apex -o card.csv --data train.csv --json")
        # NDCG and average precision depend on ranks and need integer weights
        measures = [row["measure"] for row in json.loads(result.stdout)["loss"]]
        assert measures == ["auc", "precision_at_10"]
        assert pl.read_csv("card.csv")["points"].dtype == pl.Int64

    @pytest.mark.slow
    def test_weights(self, folder):
        for name in ("train", "new"):
            frame = pl.read_csv(f"{name}.csv")
            frame.with_columns(times=pl.int_range(pl.len()) % 3 + 1).write_csv(f"{name}.csv")
        run("fit train.csv --target fraud --id case --categorical city -p 4 --alpha 0.01 --weight times")
        command = "export model.apex --format scorecard --data train.csv --test new.csv --json"
        of_training, given = run(command), run(f"{command} --weight times")
        assert of_training.stderr == given.stderr == ""
        assert of_training.stdout == given.stdout
        found = json.loads(given.stdout)["objective"]["model"]
        assert found == pytest.approx(apexrank.load("model.apex").training["objective"], rel=1e-9)
        for name in ("train", "new"):
            pl.read_csv(f"{name}.csv").with_columns(other=pl.int_range(pl.len()) % 5 + 1).write_csv(
                f"{name}.csv"
            )
        other = run(f"{command} --weight other")
        losses = [json.loads(result.stdout)["loss"][0]["model"] for result in (other, given)]
        assert losses[0] != losses[1]


class TestAdditive:
    """The same commands for an additive model."""

    @pytest.fixture
    def additive(self, folder):
        run("fit train.csv --target fraud --id case --categorical city --model curves --alpha 0.01")
        return folder

    def test_sql_of_the_model(self, additive):
        run("export model.apex --dialect sqlite -o model.sql")
        frame = read_table("new.csv").frame
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("CREATE TABLE t (n INTEGER, amount REAL, night INTEGER, city TEXT)")
            rows = frame.with_row_index("n").select("n", "amount", "night", "city").rows()
            connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
            sql = (additive / "model.sql").read_text()
            found = connection.execute(f"SELECT {sql} FROM t ORDER BY n").fetchall()
        connection.close()
        np.testing.assert_allclose(
            np.ravel(found), apexrank.load("model.apex").score(read_table("new.csv")), atol=1e-9
        )

    def test_cards_of_all_formats(self, additive):
        command = "export model.apex --format scorecard --data train.csv --test new.csv --bins 3"
        result = run(f"{command} -o card.csv")
        assert result.stderr.count("\n") == 1  # the objective on the training rows equals the stored one
        card = pl.read_csv("card.csv")
        assert card.columns == ["feature", "bin", "points", "low", "high", "share", "rule"]
        assert card.filter(feature="amount").height <= 3
        assert result.stdout.rstrip().endswith(f"written: card.csv, {len(card)} lines for 3 columns")
        assert "what rounding costs on new.csv" in result.stdout
        for suffix in ("parquet", "md", "html", "onnx"):
            run(f"{command} -o card.{suffix}")
        run(f"{command} -o card.sql --table payments --dialect duckdb")
        assert pl.read_parquet("card.parquet").equals(card)
        assert (additive / "card.html").read_text().startswith("<!doctype html>")
        assert "new.csv" in (additive / "card.html").read_text()
        assert 'FROM "payments" AS r' in (additive / "card.sql").read_text()
        assert [one.name for one in onnxruntime.InferenceSession("card.onnx").get_outputs()] == ["score"]

    def test_pairs_make_no_card(self, additive):
        run("fit train.csv --target fraud --id case --categorical city --model curves --alpha 0.01 --pairs 2")
        result = run("export model.apex --format scorecard --data train.csv -o card.csv", code=2)
        assert "fit it without pairs" in result.stderr
        assert len(result.stderr.splitlines()) == 1
        assert not (additive / "card.csv").exists()


class TestFaults:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ("-o model.txt", "cannot tell the format of 'model.txt' by its name: use one of .onnx, .sql"),
            ("--format pickle", "unknown --format 'pickle': use one of onnx, sql, scorecard"),
            ("--format onnx", "an ONNX graph goes to a file"),
            ("--format scorecard", "give them with --data train.csv"),
            (
                "--format scorecard --data train.csv -o card.txt",
                "use one of .onnx, .sql, .csv, .parquet, .md, .html",
            ),
            ("-o m.onnx --table payments", "--table is for --format sql, not onnx"),
            ("-o m.onnx --score points", "--score is for --format sql, not onnx"),
            ("--score points", "--score is for a whole SELECT: name the table with --table"),
            ("--id case", "--id is for a whole SELECT: name the table with --table"),
            ("--table t --id Score", "has a column 'score' already"),
            ("--weight times", "--weight is for --format scorecard, not sql"),
            ("--format scorecard --data train.csv --weight times", "has no column 'times'"),
            ("--max-points 3", "--max-points is for --format scorecard, not sql"),
            (
                "--format scorecard --data train.csv --bins 3",
                "--bins is for additive models, but this one is linear",
            ),
            ("--format sql -o m.csv --bins 3", "--bins is for --format scorecard, not sql"),
            ("--dialect cobol", "unknown --dialect 'cobol'"),
            ("-o missing/model.onnx", "there is no folder"),
            ("-o train.csv --data train.csv", "is also an input"),
            ("-o card.csv --data none.csv", "cannot read 'none.csv'"),
            ("-o card.csv --data train.csv --max-points 0", "max-points"),
        ],
    )
    def test_one_line(self, folder, options, words):
        result = run(f"export model.apex {options}", code=2)
        assert result.stderr.startswith("error: ")
        assert words in result.stderr
        assert len(result.stderr.splitlines()) == 1

    def test_rows_without_the_target(self, folder):
        pl.read_csv("new.csv").drop("fraud").write_csv("bare.csv")
        result = run("export model.apex --format scorecard --data bare.csv", code=2)
        assert "bare.csv has no column 'fraud'" in result.stderr

    def test_no_model_file(self, folder):
        assert "'train.csv' is not" in run("export train.csv", code=2).stderr
