"""The command line: options, output and errors of every verb."""

import gzip
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import apexrank
from apexrank.cli.app import app
from apexrank.io import read_table
from apexrank.io.judge import ONE_LIST, TOP_OF_ONE_LIST
from apexrank.metrics.evaluation import Measure

HEADER = "case,amount,hour,city,fraud\n"
GOOD = "1,5.0,1,Oslo,1\n2,1.0,2,Rome,0\n3,4.0,3,Oslo,1\n4,2.0,5,Rome,0\n5,3.0,2,Rome,0\n6,3.5,1,Oslo,0\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Working folder with a table of payments to train on and one to rank."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3)).round(4)
    y = (X @ [1.0, 0.6, 0.0] + rng.normal(size=300) > 1.2).astype(int)
    columns = {"case": [f"{i:03d}" for i in range(300)], "amount": X[:, 0], "hour": X[:, 1], "noise": X[:, 2]}
    frame = pl.DataFrame({**columns, "note": "x", "query": np.arange(300) // 30, "fraud": y})
    frame[:200].write_csv("train.csv")
    frame[200:].write_csv("new.csv")
    return tmp_path


def run(*args, code=0):
    result = CliRunner().invoke(app, shlex.split(args[0]) if len(args) == 1 else list(map(str, args)))
    assert result.exit_code == code, result.output
    return result


FIT = "fit train.csv --target fraud --id case --drop note,query"


@pytest.fixture
def model(folder):
    run(f"{FIT} -p 8")
    return folder / "model.apex"


class TestFit:
    def test_writes_a_model_and_says_what_it_is(self, folder):
        result = run(f"{FIT} -p 8 --alpha 0.001 -o m.apex")
        for words in ("train.csv: 200 rows", "(fraud = 1)", "3 features", "PNormPush(p=8, alpha=0.001)"):
            assert words in result.stdout
        for words in ("converged after", "duality gap", "precision at 10", "amount", "written: m.apex\n"):
            assert words in result.stdout
        assert result.stdout.endswith("apexrank evaluate m.apex NEW.csv\n")
        assert apexrank.load("m.apex").id == "case"
        assert sorted(path.name for path in folder.iterdir()) == ["m.apex", "new.csv", "train.csv"]

    def test_json(self, folder):
        report = json.loads(run(f"{FIT} --alpha 0 --json").stdout)
        assert report["rows"] == 200
        assert report["dual_gap"] is None
        assert list(report["coefficients"]) == ["amount", "hour", "noise"]

    @pytest.mark.parametrize(
        ("options", "estimator", "scale"),
        [
            ("--model ir", "IRPush", "standard"),
            ("--model rankboost --max-iter 5", "RankBoost", "minmax"),
            ("--model rankboost --scale none", "RankBoost", "none"),
            ("--price exponential --side bottom --alpha 0.1", "PNormPush", "standard"),
            ("--cv --folds 3 --scoring precision_at_10", "PNormPush", "standard"),
        ],
    )
    def test_models(self, folder, options, estimator, scale):
        report = json.loads(run(f"{FIT} --json {options}").stdout)
        assert (report["estimator"], report["scale"]) == (estimator, scale)
        assert report["measures"]["auc"] > 0.7

    @pytest.mark.parametrize(
        ("command", "names"), [(FIT, TOP_OF_ONE_LIST), ("evaluate model.apex new.csv", ONE_LIST)]
    )
    def test_each_measure_is_computed_once(self, folder, monkeypatch, command, names):
        run(FIT)
        computed, values = [], Measure.values
        monkeypatch.setattr(
            Measure, "values", lambda measure, *rows: computed.append(measure.name) or values(measure, *rows)
        )
        assert list(json.loads(run(f"{command} --json").stdout)["measures"]) == computed == list(names)

    @pytest.mark.parametrize(
        ("options", "shown"),
        [
            ("--alpha auto", "PNormPush(p=4, alpha=0.1016)"),
            ("--loss logistic", "PNormPush(p=4, alpha=0.1016, loss=logistic)"),
            ("--side both --alpha 0.1", "PNormPush(p=4, alpha=0.1, side=both)"),
            ("--l1-ratio 0.5 --alpha 0.1", "PNormPush(p=4, alpha=0.1, l1_ratio=0.5)"),
            ("--loss exponential --side top --l1-ratio 0", "PNormPush(p=4, alpha=0.1016)"),
            ("--model listwise --loss listnet --groups query", "ListwiseRanker(loss=listnet, alpha=0.001)"),
            ("--model logistic --alpha 0.1", "LogisticRanker(alpha=0.1): converged after "),
            ("--model trees --rounds 5 --folds 3 --extra", "TreeRanker(leaves=16, rounds=5)"),
            ("--model curves-and-trees --rounds 5", "of the variance of the scores"),
        ],
    )
    def test_the_summary_has_what_is_not_usual(self, folder, options, shown):
        drop = "note" if "query" in options else "note,query"
        assert shown in run(f"fit train.csv --target fraud --id case --drop {drop} {options}").stdout

    def test_cross_validation_says_what_it_chose(self, folder):
        assert "chosen by cross-validation: partial_auc 0." in run(f"{FIT} --cv").stdout

    def test_columns_by_name(self, folder):
        run("fit train.csv --target fraud --features amount,hour --weight query")
        ranker = apexrank.load("model.apex")
        assert ranker.encoder.features == ["amount", "hour"]

    def test_positive_and_categories_and_gaps(self, folder):
        Path("t.csv").write_text("x,city,kind\n1,Oslo,a\n2,,b\n,Rome,c\n3,Rome,a\n5,Rome,b\n0,Oslo,a\n")
        result = run("fit t.csv --target kind --positive b --categorical all --impute median --alpha 0.1")
        assert "2 of them positive (kind = b)" in result.stdout
        assert apexrank.load("model.apex").encoder.features == [
            *("x", "x missing", "city=Oslo", "city=Rome", "city missing")
        ]
        assert apexrank.load("model.apex").encoder.columns[0].fill == (2.0,)

    def test_not_converging_is_a_note(self, folder):
        result = run(f"{FIT} --max-iter 1")
        assert "note: not converged after 1 iterations" in result.stderr
        assert "stopped after 1 iteration," in result.stdout

    def test_parquet_gives_the_same_model(self, folder):
        run(f"{FIT} -o csv.apex")
        pl.read_csv("train.csv").write_parquet("train.parquet")
        run(f"{FIT} -o parquet.apex".replace("train.csv", "train.parquet"))
        assert Path("csv.apex").read_bytes() == Path("parquet.apex").read_bytes()

    def test_the_first_hour_with_a_table_of_your_own(self, folder):
        """A pandas frame with prices, marks, dates and rows without a target is fitted, ranked and evaluated."""
        lines = ["", "price", "job", "when", "churn"]
        rows = [
            [
                k,
                f'"${1000 + 7 * k % 900:,}"',
                "?" if k % 20 == 3 else "abc"[k % 3],
                f"2024-{k % 12 + 1:02d}-03",
            ]
            for k in range(120)
        ]
        answers = ["" if k % 30 == 5 else "yes" if 7 * k % 900 > 600 else "no" for k in range(120)]
        table = [",".join(map(str, [*row, answer])) for row, answer in zip(rows, answers, strict=True)]
        Path("t.csv").write_text("\n".join([",".join(lines), *table]) + "\n")
        result = run("fit t.csv --target churn --alpha 0.01")
        assert (
            "note: left out: 4 of 120 rows of t.csv, because the target 'churn' is missing" in result.stderr
        )
        assert "note: column 'price' alone ranks the rows almost perfectly (AUC 1.000)" in result.stderr
        assert "note: dates: 'when'" in result.stderr
        features = ["price", "job=?", "job=a", "job=b", "job=c", "when day", "when month", "when weekday"]
        assert apexrank.load("model.apex").encoder.features == features
        assert run("rank model.apex t.csv --top 1").stdout.startswith("index,rank,score")
        result = run("evaluate model.apex t.csv --json")
        assert json.loads(result.stdout)["measures"]["auc"] > 0.99
        assert "note: left out: 4 of 120 rows" in result.stderr


class TestRank:
    def test_csv_for_programs(self, model):
        lines = run("rank model.apex new.csv --top 3").stdout.splitlines()
        assert lines[0] == "case,rank,score"
        assert len(lines) == 4
        assert lines[1].split(",")[1] == "1"

    def test_ids_ranks_and_scores_are_right(self, model):
        run("rank model.apex new.csv -o top.csv")
        top, new = pl.read_csv("top.csv", schema_overrides={"case": pl.String}), read_table("new.csv")
        scores = apexrank.load(model).score(new)
        order = np.argsort(-scores, kind="stable")
        assert top["case"].to_list() == new.frame["case"].gather(order).to_list()
        assert top["score"].to_list() == scores[order].tolist()
        assert top["rank"].to_list() == list(range(1, 101))

    def test_explain_and_keep_to_parquet(self, model):
        result = run("rank model.apex new.csv --top 5 --explain --keep -o top.parquet")
        assert result.stdout == "written: top.parquet, 5 of 100 rows, best first (fraud = 1)\n"
        top = pl.read_parquet("top.parquet")
        assert top.columns[:6] == ["case", "rank", "score", "why_1", "why_2", "why_3"]
        assert set(top.columns[6:]) == {"amount", "hour", "noise", "note", "query", "fraud"}
        assert top["why_1"][0].startswith(("amount=+", "hour=+"))

    def test_budget_by_false_positive_rate(self, model):
        lines = run("rank model.apex train.csv --fpr 0.02 --keep").stdout.splitlines()
        fraud = lines[0].split(",").index("fraud")
        false = sum(line.split(",")[fraud] == "0" for line in lines[1:])
        negatives = (pl.read_csv("train.csv")["fraud"] == 0).sum()
        assert false == int(0.02 * negatives)

    def test_json(self, model):
        answer = json.loads(run("rank model.apex new.csv --top 2 --explain --json").stdout)
        assert answer["rows"] == 2
        assert set(answer["ranking"][0]) == {"case", "rank", "score", "why_1", "why_2", "why_3"}
        assert json.loads(run("rank model.apex new.csv --json -o t.csv").stdout) == {
            "rows": 100,
            "output": "t.csv",
            "positive": "1",
        }

    def test_whole_numbers_are_numbers_in_json(self, model):
        pl.read_csv("new.csv").with_columns(case=pl.int_range(1000, 1100), price=pl.lit("1.50")).write_csv(
            "n.csv"
        )
        (row,) = json.loads(run("rank model.apex n.csv --top 1 --keep --json").stdout)["ranking"]
        assert (type(row["case"]), type(row["fraud"]), row["price"]) == (int, int, "1.50")
        (row,) = json.loads(run("rank model.apex train.csv --top 1 --json").stdout)["ranking"]
        assert isinstance(row["case"], str)  # such as 007
        pl.read_csv("n.csv").with_columns(pl.col("case").cast(pl.String)).write_parquet("n.parquet")
        (row,) = json.loads(run("rank model.apex n.parquet --top 1 --json").stdout)["ranking"]
        assert isinstance(row["case"], str)  # as the file says

    def test_packed_tables(self, model):
        run("rank model.apex new.csv -o plain.csv")
        run("rank model.apex new.csv -o packed.csv.gz")
        packed = Path("packed.csv.gz").read_bytes()
        assert gzip.decompress(packed) == Path("plain.csv").read_bytes()
        run("rank model.apex new.csv -o packed.csv.gz")
        assert Path("packed.csv.gz").read_bytes() == packed
        assert len(read_table("packed.csv.gz")) == 100

    def test_extra_column_and_missing_ids_are_notes(self, model):
        pl.read_csv("new.csv").drop("case").with_columns(extra=1).write_csv("odd.csv")
        result = run("rank model.apex odd.csv --top 1")
        assert result.stdout.startswith("row,rank,score\n")
        notes = result.stderr.splitlines()
        assert len(notes) == 3
        assert "does not know, ignored: 'extra'" in notes[0]
        assert "has no id column 'case'" in notes[1]
        assert run("rank model.apex new.csv --id noise").stderr == "note: best first (fraud = 1)\n"

    def test_inside_groups(self, folder):
        run("fit train.csv --target fraud --id case --groups query --drop note")
        lines = run("rank model.apex new.csv --top 1").stdout.splitlines()
        assert lines[0] == "query,case,rank,score"
        assert [line.split(",")[2] for line in lines[1:]] == ["1"] * 4
        assert "AUC" in run("evaluate model.apex new.csv").stdout

    def test_person_sees_twenty_rows(self, model, monkeypatch):
        monkeypatch.setattr("apexrank.cli.output.is_terminal", lambda: True)
        shown = run("rank model.apex new.csv").stdout
        assert "20 of 100 rows, 3 of 3 columns; write them all with -o FILE.csv" in shown
        assert len(shown.splitlines()) < 30


class TestEvaluate:
    def test_table_agrees_with_the_measures(self, model):
        answer = json.loads(run("evaluate model.apex new.csv --json").stdout)
        new = read_table("new.csv")
        y = new.frame["fraud"].cast(int).to_numpy()
        scores = apexrank.load(model).score(new)
        assert answer["positives"] == y.sum()
        assert answer["measures"]["auc"] == apexrank.metrics.auc(y, scores)
        assert answer["measures"]["precision_at_50"] == apexrank.metrics.precision_at(y, scores, 50)
        shown = run("evaluate model.apex new.csv").stdout
        for words in ("100 rows", "AUC", "partial AUC (FPR <= 1%)", "TPR at 1% FPR", "R_max", "AveR", "DCG"):
            assert words in shown

    def test_other_target(self, model):
        pl.read_csv("new.csv").rename({"fraud": "truth"}).write_csv("other.csv")
        result = run("evaluate model.apex other.csv --target truth")
        assert not result.stderr

    def test_chosen_measures_with_intervals(self, model):
        shown = run("evaluate model.apex new.csv --measures auc,p@5 --confidence 0.9").stdout
        assert "precision at 5" in shown
        assert "90% bootstrap intervals over rows" in shown
        answer = json.loads(run("evaluate model.apex new.csv --measures auc --confidence 0.9 --json").stdout)
        assert list(answer["measures"]) == ["auc"]
        low, high = answer["intervals"]["auc"]
        assert low < answer["measures"]["auc"] < high

    def test_intervals_of_weights_say_what_is_drawn(self, model):
        pl.read_csv("new.csv").with_columns(times=pl.int_range(100) % 3, half=pl.lit(0.5)).write_csv("w.csv")
        command = "evaluate model.apex w.csv --measures auc --confidence 0.9"
        words = "intervals over rows; a weight is a number of equal rows, each drawn by itself: 99 in all\n"
        assert run(f"{command} --weight times").stdout.endswith(words)
        for options in ("", "--weight half"):
            assert run(f"{command} {options}").stdout.endswith("intervals over rows\n")

    def test_rules_of_ties(self, model):
        told = run("evaluate model.apex new.csv --ties avg", code=2).stderr
        rules = "average, pessimistic, optimistic, given, threshold"
        assert told == f"error: unknown --ties 'avg': use one of {rules}\n"
        for measures in ("", "--measures map,auc"):
            told = run(f"evaluate model.apex new.csv --ties threshold {measures}", code=2).stderr
            assert told.startswith("error: --ties threshold applies to average precision only")
        run("evaluate model.apex new.csv --ties threshold --measures map,average_precision_at_10")

    def test_a_table_with_scores_needs_no_model(self, model):
        new = read_table("new.csv")
        scored = new.frame.with_columns(pl.Series("s", apexrank.load(model).score(new)))
        scored.write_csv("scored.csv")
        command = "evaluate scored.csv --scores s --target fraud --json"
        without = json.loads(run(command).stdout)
        with_model = json.loads(run("evaluate model.apex new.csv --json").stdout)
        assert without["measures"] == pytest.approx(with_model["measures"])
        grouped = json.loads(run(f"{command} --groups query").stdout)
        assert grouped["groups"] == new.frame["query"].n_unique()
        y = new.frame["fraud"].cast(int).to_numpy()
        expected = apexrank.metrics.ndcg(y, scored["s"].to_numpy(), groups=new.frame["query"].to_numpy())
        assert grouped["measures"]["ndcg"] == pytest.approx(expected)

    def test_per_query(self, model):
        new = read_table("new.csv")
        new.frame.with_columns(pl.Series("s", apexrank.load(model).score(new))).write_csv("scored.csv")
        command = (
            "evaluate scored.csv --scores s --target fraud --groups query --measures mrr,auc --per-query"
        )
        lines = run(command).stdout.splitlines()
        assert lines[0] == "group,n,relevant,mrr,auc"
        assert len(lines) == 1 + new.frame["query"].n_unique()
        assert "written: q.csv, 4 groups" in run(f"{command} -o q.csv").stdout
        mean = json.loads(run(command.replace("--per-query", "--json")).stdout)["measures"]["mrr"]
        assert pl.read_csv("q.csv")["mrr"].mean() == pytest.approx(mean)
        table = json.loads(run(f"{command} --json").stdout)["table"]
        assert table[0]["n"] == pl.read_csv("q.csv")["n"][0]

    def test_trec_files(self, folder):
        Path("run.txt").write_text("1 Q0 a 1 9.5 x\n1 Q0 b 2 7 x\n2 Q0 a 1 3 x\n2 Q0 c 2 1 x\n")
        Path("qrels.txt").write_text("1 0 a 0\n1 0 b 2\n1 0 z 1\n2 0 c 1\n3 0 c 1\n")
        answer = json.loads(run("evaluate run.txt --qrels qrels.txt --measures map,mrr,p@2 --json").stdout)
        assert answer["groups"] == 2
        assert answer["measures"] == pytest.approx({"map": (0.25 + 0.5) / 2, "mrr": 0.5, "p@2": 0.5})

    def test_picture(self, model):
        run("evaluate model.apex new.csv --roc roc.png")
        assert Path("roc.png").read_bytes().startswith(b"\x89PNG")

    @pytest.mark.parametrize(
        ("weights", "left_out"), [("0.5", True), ("2", False)], ids=["shares", "whole numbers"]
    )
    def test_the_header_says_that_rows_are_weighted(self, folder, weights, left_out):
        for name in ("train", "new"):
            frame = pl.read_csv(f"{name}.csv").with_columns(w=pl.lit(float(weights)))
            frame.write_csv(f"{name}-w.csv")
        run(f"{FIT} --weight w -o w.apex".replace("train.csv", "train-w.csv"))
        rows = 100 * float(weights)
        shown = run("evaluate w.apex new-w.csv").stdout
        assert f"positive (fraud = 1), weighted ({rows:g} rows in all)\n" in shown
        line = "left out, as they go by ranks and need weights that are whole numbers: average precision, "
        assert (line in shown) == left_out
        found = json.loads(run("evaluate w.apex new-w.csv --json").stdout)
        assert found["weight"] == rows
        assert (
            found.get("left_out", [])
            == ["average_precision", "average_reciprocal_rank", "push_dcg"] * left_out
        )
        assert (
            "average_precision" not in found.get("left_out", [])
            or "average_precision" not in found["measures"]
        )
        chosen = run("evaluate w.apex new-w.csv --measures auc").stdout
        assert "weighted" in chosen
        assert "left out" not in chosen
        assert "weighted" not in run("evaluate w.apex new.csv").stdout

    def test_ties_as_one_step_are_in_the_help_and_in_the_advice(self, folder):
        pl.read_csv("new.csv").with_columns(w=0.5).write_csv("w.csv")
        run(f"{FIT} -o m.apex")
        assert "threshold" in run("evaluate --help").stdout
        refused = run("evaluate m.apex w.csv --weight w --measures average_precision", code=2).stderr
        assert "--weight must be whole numbers for this measure" in refused
        assert "or use --ties threshold" in refused
        assert "=" not in refused
        run("evaluate m.apex w.csv --weight w --measures average_precision --ties threshold")


class TestDemo:
    @pytest.mark.slow
    def test_its_next_commands_work_as_printed(self, folder):
        answer = json.loads(run("demo --out 'my demo' --json").stdout)
        assert [row["p"] for row in answer["table"]] == [1, 2, 4, 8, 16]
        assert answer["table"][-1]["precision_at_50"] > answer["table"][0]["precision_at_50"]
        assert sorted(answer["files"]) == [
            "my demo/new.csv",
            "my demo/precision.png",
            "my demo/report.html",
            "my demo/train.csv",
        ]
        for command in answer["next"]:  # a comparison with all rankers takes half a minute
            less = " --models push -p 1 --repeats 1 --folds 2" if " compare " in command else ""
            run(command.removeprefix("apexrank ") + less)
        assert Path("my demo/top.csv").read_text().count("\n") == 11

    def test_text(self, folder):
        shown = run("demo").stdout
        assert "Of the first 50 payments" in shown
        assert "apexrank fit demo/train.csv --target fraud" in shown

    @pytest.mark.slow
    def test_no_picture_without_matplotlib(self, folder, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        result = run("demo")
        assert "note: no precision.png" in result.stderr
        assert not Path("demo/precision.png").exists()
        assert Path("demo/report.html").exists()

    def test_no_report_without_jinja(self, folder, monkeypatch):
        from apexrank.report import page

        page._environment.cache_clear()
        monkeypatch.setitem(sys.modules, "jinja2", None)
        result = run("demo")
        assert 'note: no report.html: reports need Jinja2: pip install "apexrank[report]"' in result.stderr
        assert not Path("demo/report.html").exists()


class TestReproduce:
    @pytest.mark.slow
    def test_list(self):
        assert "table5" in run("reproduce").stdout
        assert "table1" in json.loads(run("reproduce --list --json").stdout)["names"]

    def test_table(self, folder):
        result = run("reproduce table1 --out figures")
        assert "agrees" in result.stdout
        assert Path("figures/table1.csv").exists()
        verdicts = json.loads(run("reproduce table1 --json").stdout)["verdicts"]
        assert {verdict["word"] for verdict in verdicts} == {"agrees"}

    def test_a_verdict_that_changed_exits_with_one_unless_options_explain_it(self, folder, monkeypatch):
        import apexrank_papers as papers

        table = pl.DataFrame({"row": ["AUC"], "ours": [0.5]})
        failed = papers.Result(table, table, [papers.Verdict("orig", "differs", "falls")])
        monkeypatch.setattr(papers, "run", lambda name, **options: failed)
        said = run("reproduce table1", code=1).stdout
        assert "orig: differs: falls\n" in said
        assert "changed: orig: differs, recorded as agrees\n" in said
        assert "changed" not in run("reproduce table1 --n-splits 3").stdout
        assert "changed" in run("reproduce table1 --n-jobs 1", code=1).stdout
        assert len(json.loads(run("reproduce table1 --json", code=1).stdout)["changed"]) == 3

    def test_a_recorded_difference_is_explained_and_no_error(self, folder):
        (line,) = (line for line in run("reproduce toy-graphs").stdout.splitlines() if ": differs: " in line)
        assert re.search(r"in a pair of pages .* \(notes-on-the-papers.md#[\w-]+\)$", line)


FILES = {
    "one-class.csv": HEADER + "1,1,1,Oslo,0\n2,2,2,Rome,0\n",
    "gap.csv": HEADER + GOOD + "7,,3,Oslo,1\n",
    "nan.csv": HEADER + GOOD + "7,NaN,3,Oslo,1\n",
    "inf.csv": HEADER + GOOD + "7,inf,3,Oslo,1\n",
    "empty.csv": "",
    "header.csv": HEADER,
    "short.csv": HEADER + GOOD + "7,2\n",
    "long.csv": HEADER + GOOD + "7,2,3,Oslo,1,1\n",
    "twice.csv": "case,amount,amount,fraud\n1,2,3,0\n2,3,4,1\n",
    "words.csv": HEADER + GOOD + "7,many,3,Oslo,1\n",
    "good.csv": HEADER + GOOD,
    "slip.csv": "x,fraud\n" + "".join(f"{x},{x % 2}\n" for x in range(10)) + "1O,0\n" + "7,1\n" * 10,
    "grades.csv": HEADER + GOOD.replace(",1\n", ",high\n").replace(",0\n", ",low\n"),
    "no-amount.csv": "case,hour\n1,2\n",
    "not-a-model.apex": "hello\n",
    "other.xlsx": "a,b\n1,2\n",
}
TRAIN = "--target fraud --id case --categorical city"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (f"fit one-class.csv {TRAIN}", "'fraud' has only one value ('0' (2 rows))"),
        (f"fit gap.csv {TRAIN} --impute none", "gap.csv line 8, column 'amount': the value is missing"),
        (f"fit nan.csv {TRAIN} --impute none", "nan.csv line 8, column 'amount': the value is missing"),
        (f"fit inf.csv {TRAIN}", "inf.csv line 8, column 'amount': the value is infinite"),
        (f"fit empty.csv {TRAIN}", "empty.csv is empty"),
        (f"fit header.csv {TRAIN}", "header.csv has column names but no rows"),
        (f"fit short.csv {TRAIN}", "short.csv line 8: the row has 2 fields, the header 5"),
        (f"fit long.csv {TRAIN}", "long.csv line 8: the row has 6 fields, the header 5"),
        (f"fit twice.csv {TRAIN}", "two columns are named 'amount'"),
        (f"fit words.csv {TRAIN}", "words.csv line 8, column 'amount': 'many' is not a number"),
        ("fit slip.csv --target fraud", "slip.csv line 12, column 'x': '1O' is not a number"),
        (
            "fit good.csv --target city",
            "has the values 'Oslo' (3 rows), 'Rome' (3 rows): name the positive one",
        ),
        (f"fit grades.csv {TRAIN}", "'high' (2 rows): name the positive one with --positive"),
        (f"fit grades.csv {TRAIN} --positive medium", "has no value 'medium'; it has"),
        ("fit good.csv --target froud", "good.csv has no column 'froud'; did you mean 'fraud'?"),
        (f"fit good.csv {TRAIN} --drop notes", "no column 'notes'"),
        (f"fit good.csv {TRAIN} -p 0.5", "p must be"),
        (f"fit good.csv {TRAIN} -p many", "Invalid value for '-p'"),
        (f"fit good.csv {TRAIN} --alpha -1", "--alpha must be"),
        (f"fit good.csv {TRAIN} --alpha automatic", "--alpha must be"),
        (
            f"fit good.csv {TRAIN} --model forest",
            "unknown --model 'forest'",
        ),
        (f"fit good.csv {TRAIN} --model ir -p 3", "--model ir has no -p"),
        (f"fit good.csv {TRAIN} --price gold", "--price must be"),
        (
            f"fit good.csv {TRAIN} --loss gold",
            "--loss must be a str among {'exponential', 'logistic', 'hinge', 'squared_hinge'}, got 'gold'\n",
        ),
        (
            "fit good.csv --target fraud --id fraud",
            "column 'fraud' is the target: it cannot be the id as well",
        ),
        (
            "fit good.csv --target fraud --weight fraud",
            "column 'fraud' is the target: it cannot be the weight",
        ),
        (f"fit good.csv {TRAIN} --side left", "--side must be"),
        (f"fit good.csv {TRAIN} --scale robust", "unknown --scale 'robust'"),
        (f"fit good.csv {TRAIN} --impute zero", "unknown --impute 'zero'"),
        (f"fit good.csv {TRAIN} --cv -p 3", "--cv chooses p"),
        (f"fit good.csv {TRAIN} --cv --model ir", "--cv is for the models push"),
        (
            f"fit good.csv {TRAIN} --scoring auc",
            "--scoring is about cross-validation: add --cv, or leave out --scoring",
        ),
        (
            f"fit good.csv {TRAIN} --folds 3",
            "--folds is about cross-validation: add --cv, or leave out --folds",
        ),
        (f"fit good.csv {TRAIN} --cv --folds 2 --scoring luck", "unknown scorer 'luck'"),
        (
            f"fit good.csv {TRAIN} --cv",
            "5 folds need at least 5 rows of each class",
        ),
        (f"fit good.csv {TRAIN} -o no/model.apex", "there is no folder"),
        (f"fit good.csv {TRAIN} -o folder", "it is a folder"),
        (f"fit good.csv {TRAIN} -o good.csv", "is also an input"),
        (f"fit gone.csv {TRAIN}", "cannot read 'gone.csv': no such file"),
        (f"fit folder.csv {TRAIN}", "cannot read 'folder.csv': it is a folder"),
        (f"fit other.xlsx {TRAIN}", "cannot tell the format of 'other.xlsx'"),
        ("fit good.csv", "the target column of good.csv is not known: name it with --target"),
        ("fit good.csv --target fraud --colour red", "No such option"),
        ("rank not-a-model.apex good.csv", "'not-a-model.apex' is not an apexrank model file"),
        ("rank gone.apex good.csv", "cannot read 'gone.apex'"),
        ("rank folder good.csv", "is a folder"),
        ("rank model.apex no-amount.csv", "no-amount.csv has no column 'amount'"),
        ("rank model.apex words.csv", "words.csv line 8, column 'amount': 'many' is not a number"),
        ("rank strict.apex gap.csv", "gap.csv line 8, column 'amount': the value is missing"),
        ("rank model.apex good.csv --top 1 --fpr 0.1", "give one of them"),
        ("rank model.apex good.csv --fpr 2", "--fpr must be"),
        ("rank model.apex good.csv --top 0", "at least 1"),
        ("rank model.apex good.csv -o top.docx", "cannot tell the format of 'top.docx'"),
        ("rank model.apex good.csv -o no/top.csv", "there is no folder"),
        ("rank model.apex good.csv -o good.csv", "is also an input"),
        ("evaluate model.apex one-class.csv", "only one value"),
        ("evaluate model.apex no-amount.csv", "no column 'fraud'"),
        ("evaluate model.apex good.csv --roc roc.gif", "cannot tell the format of 'roc.gif'"),
        ("evaluate model.apex", "give a model and a table (MODEL TEST), a table with --scores"),
        ("evaluate model.apex good.csv --measures luck", "unknown measure 'luck'"),
        ("evaluate model.apex good.csv -o q.csv", "--output writes the table of --per-query"),
        ("evaluate model.apex good.csv --per-query -o good.csv", "is also an input"),
        ("evaluate model.apex good.csv --scores amount", "leave out the model"),
        ("evaluate model.apex good.csv --confidence 2", "--confidence must be"),
        ("evaluate good.csv --scores amount", "--scores needs the target column"),
        ("evaluate good.csv --scores price --target fraud", "good.csv has no column 'price'"),
        (
            "evaluate gap.csv --scores amount --target fraud",
            "gap.csv line 8, column 'amount': the score is missing",
        ),
        ("evaluate grades.csv --scores amount --target fraud", "name the positive one with --positive"),
        ("evaluate good.csv --qrels good.csv --target fraud", "--qrels goes with a TREC run alone"),
        ("evaluate good.csv --qrels gone.txt", "cannot read 'gone.txt'"),
        ("demo --out good.csv", "it is not a folder"),
        ("reproduce table99", "unknown experiment 'table99'"),
        ("reproduce table1 --n-splits 3", "no option 'n_splits'"),
        ("reproduce table1 --out good.csv", "it is not a folder"),
        ("fly", "No such command 'fly'"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(tmp_path, monkeypatch, command, words):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    for name in ("folder", "folder.csv"):
        Path(name).mkdir()
    run(f"fit good.csv {TRAIN} --alpha 0.1 -o model.apex")
    run(f"fit good.csv {TRAIN} --alpha 0.1 --impute none -o strict.apex")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    result = run(command, code=2)
    assert words in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert not result.stdout
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("model", ["retarget", "listwise", "pairs"])
def test_two_classes_are_not_grades(folder, model):
    pl.read_csv("train.csv").with_columns(pl.lit("yes").alias("answer")).write_csv("yes.csv")
    result = run(f"fit yes.csv --target answer --id case --groups query --model {model}", code=2)
    assert result.stderr == (
        "error: yes.csv column 'answer' holds text such as 'yes'; grades of relevance are numbers; two classes "
        "such as yes and no are for --model push\n"
    )


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        (
            2,
            "",
            "5 folds need at least 5 rows of each class, got 1: give more rows, or lower --folds",
        ),
        (
            12,
            "--groups g --model retarget",
            "5 folds need at least 5 groups, got 3: give more rows, or lower --folds",
        ),
    ],
    ids=["rows", "groups"],
)
def test_too_few_rows_or_groups_for_cross_validation(folder, rows, options, words):
    number = np.arange(rows)
    pl.DataFrame({"x": number**2, "y": number % 2, "g": number % 3}).write_csv("few.csv")
    result = run(f"fit few.csv --target y --cv {options}", code=2)
    assert result.stderr.startswith(f"error: {words}")
    assert result.stderr.count("\n") == 1


class TestProcess:
    def test_python_runs_the_package(self):
        command = [sys.executable, "-m", "apexrank", "--version"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert done.stdout == f"apexrank {apexrank.__version__}\n"

    """In a process of its own, as a shell runs it."""

    def shell(self, *args):
        command = [sys.executable, "-c", "from apexrank.cli import main; main()", *args]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def test_help_loads_nothing_heavy(self):
        heavy = "numpy", "scipy", "sklearn", "polars", "numba", "matplotlib"
        code = (
            "import sys; from apexrank.cli.app import app\n"
            "try: app(['--help'])\n"
            f"except SystemExit: print('loaded', [m for m in {heavy} if m in sys.modules])"
        )
        shown = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        assert "loaded []" in shown
        for verb in ("demo", "fit", "rank", "evaluate", "reproduce"):
            assert verb in shown

    def test_version_and_no_arguments(self):
        assert self.shell("--version").stdout == f"apexrank {apexrank.__version__}\n"
        bare = self.shell()
        assert bare.returncode == 0
        assert "Usage" in bare.stdout

    @pytest.mark.slow
    def test_fit_rank_and_an_error(self, folder):
        assert self.shell(*shlex.split(FIT)).returncode == 0
        ranked = self.shell("rank", "model.apex", "new.csv", "--top", "2")
        assert (ranked.returncode, ranked.stderr) == (0, "note: best first (fraud = 1)\n")
        assert ranked.stdout.count("\n") == 3
        failed = self.shell("rank", "model.apex", "gone.csv")
        assert failed.returncode == 2
        assert failed.stderr == "error: cannot read 'gone.csv': no such file or directory\n"
        assert not failed.stdout

    @pytest.mark.slow
    def test_reader_that_leaves_early(self, model):
        command = (
            f'"{sys.executable}" -c "from apexrank.cli import main; main()" rank model.apex new.csv | head -1'
        )
        result = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120, check=True)
        assert result.stdout == "case,rank,score\n"
        assert "Traceback" not in result.stderr


class TestOrdinaryParquet:
    """Dates, decimals and lists, which CSV files do not have."""

    @pytest.fixture
    def parquet(self, folder):
        from datetime import date

        rng = np.random.default_rng(0)
        a = rng.normal(size=40)
        frame = pl.DataFrame(
            {
                "y": (a + rng.normal(size=40) > 0).astype(int),
                "a": a,
                "day": [date(2020, 1, 1 + i % 28) for i in range(40)],
                "tags": [["x", "y"]] * 40,
            }
        )
        frame.write_parquet("n.parquet")
        run("fit n.parquet --target y --drop day,tags -o n.apex")

    def test_dates_become_text_in_json(self, parquet):
        rows = json.loads(run("rank n.apex n.parquet --id day --json").stdout)
        assert "2020-01-" in json.dumps(rows)

    @pytest.mark.parametrize(
        "command",
        [
            "rank n.apex n.parquet --keep",
            "rank n.apex n.parquet --keep -o x.csv",
            "fit n.parquet --target y --categorical tags --drop day -o x.apex",
            "fit n.parquet --target y --groups tags --drop day -o x.apex",
            "fit n.parquet --target tags --drop day -o x.apex",
        ],
    )
    def test_lists_are_refused_in_one_line(self, parquet, command):
        result = run(command, code=2)
        assert "'tags'" in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
        assert not Path("x.csv").exists()
        assert not Path("x.apex").exists()


class TestNothingHalfWritten:
    def test_demo_looks_before_it_works(self, folder):
        Path("out/precision.png").mkdir(parents=True)
        run("demo --out out", code=2)
        assert [path.name for path in Path("out").iterdir()] == ["precision.png"]

    def test_reproduce_says_how_to_install_the_experiments(self, folder, monkeypatch):
        monkeypatch.setitem(sys.modules, "apexrank_papers", None)
        assert "pip install ./papers" in run("reproduce --list", code=2).stderr

    def test_reproduce_looks_before_it_works(self, folder):
        Path("out/figure1.png").mkdir(parents=True)
        run("reproduce figure1 --out out", code=2)
        assert [path.name for path in Path("out").iterdir()] == ["figure1.png"]


def test_a_price_without_p_takes_no_p(folder):
    Path("good.csv").write_text(FILES["good.csv"])
    result = run("fit good.csv --target fraud --drop case,city --price log1p -p 8 -o x.apex", code=2)
    assert "--price log1p has no -p" in result.stderr


def test_a_folder_without_an_id_column_is_ranked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    frame = pl.DataFrame({"x": x, "fraud": (x + rng.normal(size=60) > 1).astype(int)})
    frame.write_csv("train.csv")
    run("fit train.csv --target fraud -o m.apex")
    Path("parts").mkdir()
    new = pl.DataFrame({"x": rng.normal(size=30)})
    new.write_parquet("new.parquet")
    for i, part in enumerate(new.iter_slices(11)):
        part.write_parquet(f"parts/{i}.parquet")
    for options in ("", "--top 5", "--top 10%", "--format trec"):
        assert run(f"rank m.apex parts {options}").stdout == run(f"rank m.apex new.parquet {options}").stdout
