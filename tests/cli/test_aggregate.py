"""``apexrank aggregate``: the library's rankings from tables and PrefLib files, and one-line errors."""

import gzip
import json
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl
import pytest
from scipy.stats import kendalltau

from apexrank.aggregation import ballot_files, bootstrap, rank_aggregation
from apexrank.aggregation.fusion import Method
from apexrank.cli import aggregate as verb
from tests.cli.running import of_verb

SCORES = {"ann": [3, 2, 1, 0], "bob": [2, 3, 0.5, 1], "cy": [1, 0, 2, 3], "dee": [3, 1, 2, 0]}
ORDERS = [(["b", "a", "c", "d"], 4), (["c", "b"], 3), (["a", "c", "b"], 2)]
PREFLIB = """# TITLE: drinks
# ALTERNATIVE NAME 1: a
# ALTERNATIVE NAME 2: b
# ALTERNATIVE NAME 3: c
# ALTERNATIVE NAME 4: d
4: 2,1,3,4
3: 3,2
2: 1,3,2
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{name},{','.join(map(str, row))}\n" for name, row in SCORES.items())
    Path("scores.csv").write_text("voter,a,b,c,d\n" + rows)
    listed = "".join(",".join(order + [""] * (4 - len(order))) + f",{n}\n" for order, n in ORDERS)
    Path("orders.csv").write_text("1st,2nd,3rd,4th,n\n" + listed)
    Path("drinks.soi").write_text(PREFLIB)
    return tmp_path


run = of_verb("aggregate")


def answer(command):
    return json.loads(run(f"{command} --json").stdout)


def ranked(command):
    return {row["item"]: row["score"] for row in answer(command)["ranking"]}


def test_names_are_those_of_the_library():
    assert get_args(Method) == verb.METHODS


class TestTables:
    def test_means_as_plain_csv(self, folder):
        result = run("scores.csv")
        lines = result.stdout.splitlines()
        means = dict(zip("abcd", np.mean(list(SCORES.values()), axis=0).tolist(), strict=True))
        order = sorted(means, key=lambda item: -means[item])
        assert lines == ["rank,item,score", *(f"{i},{x},{means[x]}" for i, x in enumerate(order, 1))]
        assert result.stderr.splitlines() == [
            "note: scores.csv: the first column, 'voter', is read as the names of the voters (--id chooses)"
        ]
        assert not run("scores.csv --id voter").stderr

    @pytest.mark.parametrize("name", ["scores.parquet", "scores.tsv", "scores.csv.gz", "scores.tsv.gz"])
    def test_other_formats_hold_the_same(self, folder, name):
        frame = pl.read_csv("scores.csv")
        if name.endswith(".parquet"):
            frame.write_parquet(name)
        else:
            text = frame.write_csv(separator="\t" if "tsv" in name else ",").encode()
            Path(name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        assert ranked(name) == ranked("scores.csv")

    def test_a_column_of_numbers_is_an_item_unless_its_name_tells(self, folder):
        Path("ids.csv").write_text("user,a,b\n7,1,2\n9,2,5\n")
        Path("items.csv").write_text("x,a,b\n7,1,2\n9,2,5\n")
        assert ranked("ids.csv") == {"b": 3.5, "a": 1.5}
        assert ranked("items.csv") == {"x": 8, "b": 3.5, "a": 1.5}
        assert ranked("items.csv --id x") == ranked("items.csv --drop x") == ranked("ids.csv")

    def test_items_in_rows_are_the_transposed_table(self, folder):
        frame = pl.read_csv("scores.csv").transpose(
            include_header=True, header_name="doc", column_names="voter"
        )
        frame.write_csv("rows.csv")
        assert ranked("rows.csv --items-in rows") == ranked("scores.csv")
        kept = pl.read_csv("scores.csv").filter(pl.col("voter") != "cy")
        kept.write_csv("kept.csv")
        assert ranked("rows.csv --items-in rows --drop cy") == ranked("kept.csv")
        pl.concat([kept, kept.head(1)]).write_csv("more.csv")
        assert ranked("rows.csv --items-in rows --weights ann=2,cy=0") == pytest.approx(ranked("more.csv"))

    def test_rows_without_names_are_numbered(self, folder):
        Path("rows.csv").write_text("bm25,dense\n1,2\n3,4\n")
        assert ranked("rows.csv --items-in rows") == {"row 2": 3.5, "row 1": 1.5}

    @pytest.mark.parametrize("method", verb.METHODS)
    def test_weights_are_repeated_rows(self, folder, method):
        frame = pl.read_csv("scores.csv").with_columns(n=pl.Series([3, 0, 1, 2]))
        frame.write_csv("weighted.csv")
        frame.select(pl.exclude("n").repeat_by("n").explode()).write_csv("repeated.csv")
        weighted = ranked(f"weighted.csv --weights n --method {method}")
        assert weighted == pytest.approx(ranked(f"repeated.csv --method {method}"))
        assert list(weighted) == list(ranked(f"repeated.csv --method {method}"))
        found = answer("weighted.csv --weights n")
        assert (found["voters"], found["ballots"]) == (6, 4)

    def test_what_a_missing_score_means(self, folder):
        Path("gaps.csv").write_text("a,b,c\n5,4,\n1,,3\n")
        assert ranked("gaps.csv") == {"b": 4, "a": 3, "c": 3}
        assert ranked("gaps.csv --missing last") == {"c": 3.5, "a": 3, "b": 2.5}
        shown = run("gaps.csv -o r.csv").stdout
        assert "2 of 6 scores missing (no opinion)" in shown

    def test_notes_of_scales_and_of_columns_that_look_like_weights(self, folder):
        Path("two.csv").write_text("count,a,b\n1,300,100\n2,0.1,0.3\n")
        told = run("two.csv --weights count").stderr
        assert "span 0.2, others' 200" in told
        assert "--normalize minmax" in told
        for more in ("--normalize minmax", "--method borda"):
            assert not run(f"two.csv --weights count {more}").stderr
        assert "column 'count' is read as an item (--weights count" in run("two.csv --method borda").stderr
        assert ranked("two.csv --weights count --normalize minmax") == pytest.approx({"b": 2 / 3, "a": 1 / 3})


def lengthen(wide, name, *keep):
    """Write a table of voters × items in long form, one row per score, shuffled."""
    long = wide.unpivot(index=["voter", *keep], variable_name="doc", value_name="stars")
    long.drop_nulls().sample(fraction=1, shuffle=True, seed=1).write_csv(name)


class TestLong:
    @pytest.mark.parametrize("options", ["", "--method kemeny", "--normalize minmax", "--kind ranks"])
    def test_one_row_per_score_is_the_wide_table(self, folder, options):
        wide = pl.read_csv("scores.csv").with_columns(pl.col("a", "b", "c", "d") + 1)
        wide.write_csv("wide.csv")
        lengthen(wide, "long.csv")
        assert ranked(f"long.csv --long voter,doc,stars {options}") == ranked(f"wide.csv {options}")
        found = answer("long.csv --long voter,doc,stars")
        assert (found["voters"], found["items"], found["missing"]["number"]) == (4, 4, 0)

    def test_combinations_without_a_row_or_a_score_are_missing(self, folder):
        wide = pl.DataFrame({"voter": ["x", "y"], "a": [5, 1], "b": [4, None], "c": [None, 3]})
        wide.write_csv("wide.csv")
        lengthen(wide, "long.csv")
        Path("gaps.csv").write_text("stars,doc,voter\n5,a,x\n4,b,x\n,c,x\n1,a,y\n3,c,y\n")
        for options in ("", "--missing last"):
            expected = ranked(f"wide.csv {options}")
            assert ranked(f"long.csv --long voter,doc,stars {options}") == expected
            assert ranked(f"gaps.csv --long voter,doc,stars {options}") == expected
        shown = run("long.csv --long voter,doc,stars -o r.csv").stdout
        assert "2 of 6 scores missing (no opinion)" in shown

    def test_weights_are_those_of_the_voters(self, folder):
        wide = pl.read_csv("scores.csv").with_columns(n=pl.Series([3, 0, 1, 2]))
        wide.write_csv("wide.csv")
        lengthen(wide, "long.csv", "n")
        expected = ranked("wide.csv --weights n")
        assert ranked("long.csv --long voter,doc,stars --weights n") == pytest.approx(expected)

    def test_numbers_may_be_names_and_other_columns_are_not_read(self, folder):
        frame = pl.DataFrame({"u": [7, 7, 9, 9], "film": [1.0, 2.0, 2.0, 1.0], "s": [1, 2, 5, 2], "x": "?"})
        frame.write_parquet("long.parquet")
        assert ranked("long.parquet --long u,film,s") == {"2": 3.5, "1": 1.5}

    def test_too_large_a_table_is_refused(self, folder, monkeypatch):
        lengthen(pl.read_csv("scores.csv"), "long.csv")
        monkeypatch.setattr(ballot_files, "_MOST_CELLS", 15)
        told = run("long.csv --long voter,doc,stars", code=2).output
        assert "long.csv: 4 voters times 4 items are" in told
        monkeypatch.setattr(ballot_files, "_MOST_CELLS", 16)
        run("long.csv --long voter,doc,stars")


class TestPlaces:
    @pytest.mark.parametrize("method", verb.METHODS)
    def test_orders_ranks_and_preflib_agree(self, folder, method):
        ranks = [[order.index(x) + 1 if x in order else None for x in "abcd"] for order, _ in ORDERS]
        frame = pl.DataFrame(ranks, schema=list("abcd"), orient="row").with_columns(n=pl.Series([4, 3, 2]))
        frame.write_csv("ranks.csv")
        Path("drinks.soi.gz").write_bytes(gzip.compress(PREFLIB.encode()))
        sums = method in ("combsum", "combmnz", "rrf")
        asked = f"--method {method} " + ("" if sums else "--missing last")
        expected = ranked(f"ranks.csv --kind ranks --weights n {asked}")
        assert ranked(f"orders.csv --kind orders --weights n --method {method}") == pytest.approx(expected)
        assert ranked(f"drinks.soi --method {method}") == pytest.approx(expected)
        assert ranked(f"drinks.soi.gz --method {method}") == pytest.approx(expected)

    def test_points_of_places(self, folder):
        expected = {"b": 4 * 9 + 3 * 3 + 2 * 1, "a": 4 * 3 + 2 * 9, "c": 4 * 1 + 3 * 9 + 2 * 3, "d": 0}
        assert ranked("drinks.soi --method combsum --points 9,3,1") == expected
        dcg = ranked("drinks.soi --method combsum --points dcg")
        assert dcg["d"] == pytest.approx(4 / np.log2(5))

    def test_preflib_says_its_title_and_counts(self, folder):
        found = answer("drinks.soi")
        assert (found["title"], found["voters"], found["ballots"]) == ("drinks", 9, 3)
        assert found["missing"] == {"number": 3, "rule": "last"}
        assert "drinks.soi (drinks): 9 voters in 3 orders, 4 items" in run("drinks.soi -o r.csv").stdout

    def test_alternatives_of_one_name_are_told_apart(self, folder):
        Path("twins.soi").write_text(PREFLIB.replace("4: d", "4: a"))
        assert set(ranked("twins.soi")) == {"a (1)", "b", "c", "a (4)"}


def write_many():
    """Sixteen items, all but one of them in a majority cycle."""
    scores = np.random.default_rng(0).random((15, 16))
    pl.DataFrame(scores, schema=[f"i{n}" for n in range(16)]).write_csv("many.csv")


class TestMethods:
    def test_without_a_proof_the_bound_is_shown(self, folder):
        write_many()
        proven, searched = (
            answer("many.csv --method kemeny"),
            answer("many.csv --method kemeny --max-exact 0"),
        )
        assert (proven["optimal"], searched["optimal"]) == (True, False)
        assert searched["bound"] < proven["bound"] == proven["cost"] <= searched["cost"]
        shown = run("many.csv --method kemeny --max-exact 0 -o r.csv").stdout
        assert f"every order at least {searched['bound']:,.6g} (a proof takes --max-exact 15)" in shown
        assert not answer("many.csv --method kemeny --max-exact 14")["optimal"]
        assert answer("many.csv --method kemeny --max-exact 15")["optimal"]

    def test_without_a_proof_time_or_size_is_named(self, folder, monkeypatch):
        write_many()
        shown = run("many.csv --method kemeny --time-limit 0 -o r.csv").stdout
        assert "(a proof takes more than --time-limit 0)" in shown
        monkeypatch.setattr(verb, "_MOST_PROVEN", 14)
        shown = run("many.csv --method kemeny --max-exact 9 -o r.csv").stdout
        assert "(no proof: 15 items beat each other in a circle)" in shown

    def test_comparison(self, folder):
        methods = ["kemeny", "borda", "rrf"]
        found = answer("scores.csv --compare kemeny,borda --compare rrf")
        for method in methods:
            own = {row["item"]: row["rank"] for row in answer(f"scores.csv --method {method}")["ranking"]}
            assert {row["item"]: row[method] for row in found["ranks"]} == own
        assert [row["kemeny"] for row in found["ranks"]] == sorted(row["kemeny"] for row in found["ranks"])
        for row in found["methods"]:
            ranks = [-next(r[row["method"]] for r in found["ranks"] if r["item"] == x) for x in "abcd"]
            tau = np.mean([kendalltau(ranks, voter).statistic for voter in SCORES.values()])
            assert row["agreement"] == pytest.approx(tau)
        assert [row["method"] for row in answer("scores.csv --compare all")["methods"]] == list(verb.METHODS)
        lines = run("scores.csv --compare kemeny,borda --top 2").stdout.splitlines()
        assert lines[0] == "item,kemeny,borda"
        assert len(lines) == 3

    def test_comparison_of_methods_that_read_gaps_differently(self, folder):
        shown = run("drinks.soi --compare borda,rrf -o r.csv").stdout
        assert "borda, missing: last" in shown
        assert "rrf, missing: ignore" in shown
        assert pl.read_csv("r.csv").columns == ["item", "borda", "rrf"]

    def test_k_of_rrf(self, folder):
        assert ranked("drinks.soi --method rrf --k 1") == pytest.approx(
            {"b": 4 / 2 + 3 / 3 + 2 / 4, "a": 4 / 3 + 2 / 2, "c": 4 / 4 + 3 / 2 + 2 / 3, "d": 4 / 5}
        )

    def test_condorcet_winner_and_agreement(self, folder):
        found = answer("scores.csv --method borda")
        assert found["condorcet_winner"] == "a"
        merged = {row["item"]: -row["rank"] for row in found["ranking"]}
        taus = [kendalltau([merged[x] for x in "abcd"], row).statistic for row in SCORES.values()]
        assert found["agreement"] == pytest.approx(np.mean(taus))
        Path("circle.csv").write_text("a,b,c\n3,2,1\n1,3,2\n2,1,3\n")
        assert answer("circle.csv")["condorcet_winner"] is None
        shown = run("circle.csv -o r.csv").stdout
        assert "no Condorcet winner" in shown
        assert "tied: a = b = c" in shown

    def test_what_is_not_cheap_is_left_out(self, folder, monkeypatch):
        monkeypatch.setattr(verb, "_CHEAP", 10)
        found = answer("scores.csv")
        assert found["agreement"] is None
        assert "condorcet_winner" not in found
        assert "Condorcet" not in run("scores.csv -o r.csv").stdout

    def test_bootstrap(self, folder):
        result = rank_aggregation.aggregate(list(SCORES.values()), items="abcd", method="borda")
        drawn = result.bootstrap(50, random_state=3)
        rows = answer("scores.csv --method borda --bootstrap 50 --seed 3")["ranking"]
        assert {row["item"]: row["first"] for row in rows} == dict(zip("abcd", drawn.first, strict=True))
        assert {row["item"]: (row["low"], row["high"]) for row in rows} == {
            x: (low, high) for x, low, high in zip("abcd", drawn.low, drawn.high, strict=True)
        }
        assert rows != answer("scores.csv --method borda --bootstrap 50 --seed 4")["ranking"]
        shown = run("scores.csv --bootstrap 50 -o r.csv").stdout
        assert "in 50 draws of the voters" in shown
        assert pl.read_csv("r.csv").columns == ["rank", "item", "score", "low", "high", "first"]


class TestOutput:
    @pytest.mark.parametrize("name", ["ranks.csv", "ranks.parquet"])
    def test_files(self, folder, name):
        shown = run(f"scores.csv --top 3 -o {name}").stdout
        frame = pl.read_csv(name) if name.endswith("csv") else pl.read_parquet(name)
        assert frame.rows() == [tuple(row.values()) for row in answer("scores.csv --top 3")["ranking"]]
        assert f"written: {name}; 3 of 4 items" in shown
        found = answer(f"scores.csv --top 3 -o {name}")
        assert (found["rows"], found["files"]) == (3, [name])
        assert "ranking" not in found

    def test_pairwise_counts(self, folder):
        run("scores.csv --pairwise p.csv --method borda")
        table = np.array(list(SCORES.values()))
        wins = (table[:, :, None] > table[:, None, :]).sum(axis=0)
        frame = pl.read_csv("p.csv")
        assert frame["item"].to_list() == list("abcd")
        assert frame.select("a", "b", "c", "d").to_numpy().tolist() == wins.tolist()

    def test_an_item_may_be_called_item(self, folder):
        Path("more.csv").write_text("item,b\n3,2\n1,2\n3,1\n")
        run("more.csv --pairwise p.csv")
        assert pl.read_csv("p.csv").to_dict(as_series=False) == {
            "preferred item": ["item", "b"],
            "item": [0, 1],
            "b": [2, 0],
        }

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["ranks.png", "ranks.svg"])
    def test_figure(self, folder, name):
        pytest.importorskip("matplotlib")
        run(f"scores.csv --figure {name} --bootstrap 20")
        begin = Path(name).read_bytes()[:400]
        assert begin.startswith(b"\x89PNG") if name.endswith("png") else b"<svg" in begin or b"<?xml" in begin

    def test_report(self, folder):
        pytest.importorskip("jinja2")
        plain = run("scores.csv --id voter").stdout
        piped = run("scores.csv --id voter --report votes.html --pairwise pairs.csv")
        assert piped.stdout == plain
        assert "written: pairs.csv, votes.html\n" in piped.stderr
        assert "written" not in run("scores.csv --id voter").stderr
        html = Path("votes.html").read_text()
        assert html.startswith("<!doctype html>")
        assert "Votes of scores.csv" in html
        assert all(
            f'<th scope="row" style="min-width: 8rem"><bdi>{name}</bdi></th>' in html for name in SCORES
        )
        assert "500 bootstrap samples of the voters" in html
        found = answer("scores.csv --report votes.html -o r.csv --method borda")
        assert found["files"] == ["r.csv", "votes.html"]
        assert "Borda (the result)" in Path("votes.html").read_text()

    def test_report_has_the_draws_of_the_table(self, folder, monkeypatch):
        pytest.importorskip("jinja2")
        draws, draw = [], bootstrap.resample
        monkeypatch.setattr(bootstrap, "resample", lambda *given: draws.append(given) or draw(*given))
        rows = answer("scores.csv --report votes.html --bootstrap 40 --seed 3 --top 2")["ranking"]
        assert len(draws) == 1
        html = Path("votes.html").read_text()
        assert "40 bootstrap samples of the voters" in html
        for row in rows:
            assert f"{row['item']}: rank {row['rank']}, interval {row['low']} to {row['high']}" in html

    def test_report_of_orders_and_of_numbered_voters(self, folder):
        pytest.importorskip("jinja2")
        run("drinks.soi --report votes.html")
        html = Path("votes.html").read_text()
        assert "<h1>drinks</h1>" in html
        assert "3 ballots of 9 votes" in html
        assert "<bdi>row 1</bdi></th>" in html

    def test_report_tells_what_was_guessed(self, folder):
        pytest.importorskip("jinja2")
        run("scores.csv --report votes.html")
        assert "is read as the names of the voters (--id chooses)." in Path("votes.html").read_text()

    def test_report_without_its_extra_is_one_line(self, folder, monkeypatch):
        from apexrank.report import page

        monkeypatch.setitem(sys.modules, "jinja2", None)
        page._environment.cache_clear()
        told = run("scores.csv --report votes.html", code=2).output
        page._environment.cache_clear()
        assert "reports need Jinja2" in told
        assert told.count("\n") == 1
        assert not Path("votes.html").exists()

    def test_person_sees_a_table_and_what_is_known(self, folder, monkeypatch):
        monkeypatch.setattr("apexrank.cli.output.is_terminal", lambda: True)
        shown = run("scores.csv").stdout
        assert "rank   item" in shown
        assert "scores.csv: 4 voters, 4 items; lovasz-bregman: confidence" in shown
        assert "Condorcet winner a" in shown
        assert "mean Kendall tau with the voters" in run("scores.csv --compare borda").stdout


BAD = {
    "none.csv": "cannot read 'none.csv'",
    "none.soc": "cannot read 'none.soc'",
    "scores.xls": "cannot tell the format of 'scores.xls'",
    "scores.csv --id name": "no column 'name'",
    "scores.csv --weights often": "no column 'often'",
    "scores.csv --drop e": "no column 'e'",
    "scores.csv --drop a,b,c,d": "no column left for items",
    "scores.csv --drop a,b,c": "scores.csv: there is only one item",
    "scores.csv --id a": "scores.csv column 'voter' holds text such as 'ann'",
    "text.csv": "text.csv line 4, column 'b': 'much' is not a number",
    "silent.csv --strict": "silent.csv: the first column, 'voter', is read as",
    "silent.csv --id voter --strict": "silent.csv: left out: 1 of 2 voters, who gave no score (--strict)",
    "mute.csv": "mute.csv line 2: this voter gives no score at all",
    "mute.csv --items-in rows --id voter": "mute.csv: column 'a' gives no score at all; leave it out (--drop a)",
    "unseen.csv": "unseen.csv: no voter has a score for 'b': remove the item, or use --missing last",
    "zero.csv --kind ranks": "zero.csv line 2, column 'a': 0 is not a rank",
    "negative.csv --weights w": "negative.csv line 3, column 'w': a weight must be",
    "unseen.csv --weights b": "unseen.csv line 2, column 'b': a weight must be",
    "twice.csv --kind orders": "twice.csv line 3, column '2nd': 'a' is in the order twice",
    "hole.csv --kind orders": "hole.csv line 2, column '2nd': this place is empty",
    "empty.csv --kind orders": "empty.csv line 3: this voter names no item;",
    "twin.csv --items-in rows": "twin.csv line 3, column 'doc': the item 'x' occurs twice",
    "unnamed.csv --items-in rows": "unnamed.csv line 3, column 'doc': the item has no name",
    "named.csv --items-in rows --weights e": "weights of columns of named.csv such as s=2, got 'e'",
    "twin.csv --items-in rows --id s --weights t=-1": "twin.csv column 'doc' holds text such as 'x'",
    "named.csv --items-in rows --weights s=-1": "such as s=2, got 's=-1'",
    "bad.soc": "bad.soc line 3: alternative 1 occurs twice",
    "drinks.soi --kind ranks": "drinks.soi is a PrefLib file, which describes itself: leave out --kind",
    "drinks.soi --items-in rows": "leave out --items-in",
    "drinks.soi --weights n": "leave out --weights",
    "scores.csv --kind votes": "unknown --kind 'votes': use one of scores, ranks, orders",
    "scores.csv --items-in lines": "unknown --items-in 'lines': use one of columns, rows",
    "orders.csv --kind orders --items-in rows": "leave out --items-in",
    "scores.csv --long voter,a": "--long must name the columns of voter, item and score such as user,film,stars",
    "scores.csv --long voter,a,a": "got 'voter,a,a'",
    "scores.csv --long voter,a,stars": "scores.csv has no column 'stars'",
    "again.csv --long v,i,s": "again.csv line 5: voter 'ann' has a row for 'tea' already; keep one of them",
    "again.csv --long v,i,i2": "no column 'i2'; did you mean 'i'?",
    "again.csv --long v,i,s --id v": "--long names the columns itself: leave out --id",
    "again.csv --long v,i,s --items-in rows": "leave out --items-in",
    "again.csv --long v,i,s --drop w": "leave out --drop",
    "again.csv --long v,i,s --kind orders": "leave out --long",
    "drinks.soi --long v,i,s": "leave out --long",
    "odd.csv --long v,i,w": "odd.csv line 4, column 'v': the voter has no name",
    "odd.csv --long i,v,w": "odd.csv line 4, column 'v': the item has no name",
    "odd.csv --long w,i,s": "odd.csv line 3, column 's': 'x' is not a number; correct it",
    "odd.csv --long i,w,u": "odd.csv line 4: this voter gives no score at all",
    "odd.csv --long i,w,r --kind ranks": "odd.csv line 3, column 'r': 0 is not a rank",
    "uneven.csv --long v,i,s --weights w": "uneven.csv line 3, column 'w': voter 'ann' has weight 3 here and 2 before",
    "scores.csv --method best": "unknown --method 'best': use one of lovasz-bregman",
    "scores.csv --compare borda,best": "unknown --method 'best'",
    "scores.csv --compare ','": "--compare names no method",
    "scores.csv --compare borda --method rrf": "--method is for one method",
    "scores.csv --compare borda --bootstrap 9": "--bootstrap is for one method",
    "scores.csv --compare borda --figure f.png": "--figure is for one method",
    "scores.csv --normalize loud": "unknown --normalize 'loud'",
    "scores.csv --missing first": "unknown --missing 'first': use one of ignore, last",
    "scores.csv --points borda": "--points are for --kind ranks and orders",
    "drinks.soi --points 1,2": "error: --points must not rise",
    "drinks.soi --points many": "unknown --points 'many'",
    "scores.csv --k 3": "-k is for --method rrf",
    "scores.csv --max-exact 9": "--max-exact is for --method kemeny: leave it out",
    "scores.csv --compare borda,rrf --time-limit 9": "--time-limit is for --method kemeny: leave it out",
    "scores.csv --method kemeny --time-limit=-1": "error: --time-limit must be a finite number",
    "scores.csv --method borda --normalize minmax": "--normalize is for --method lovasz-bregman or combsum or combmnz",
    "drinks.soi --compare rrf,median --points dcg": "--points is for --method lovasz-bregman or combsum or combmnz",
    "drinks.soi --normalize borda --points dcg": "--normalize borda has its own points for places: leave out --points",
    "scores.csv --method rrf --k=-1": "error: -k must be a finite number",
    "scores.csv --bootstrap 1": "--bootstrap",
    "one.csv --bootstrap 9": "one.csv holds one ballot",
    "scores.csv --top 0": "--top must be at least 1",
    "scores.csv -o scores.csv": "also an input",
    "scores.csv --pairwise scores.csv": "also an input",
    "scores.csv -o kept.csv --pairwise kept.csv": "two outputs have the same name 'kept.csv'",
    "scores.csv -o kept.xls": "cannot tell the format of 'kept.xls'",
    "scores.csv --figure kept.csv": "cannot tell the format of 'kept.csv'",
    "scores.csv --compare borda --report r.html": "--report is for one method",
    "scores.csv --report kept.csv": "a report is an HTML file: call it 'kept.html'",
    "scores.csv --report nowhere/r.html": "there is no folder",
    "votes.html --report votes.html": "the output 'votes.html' is also an input",
    "scores.csv -o nowhere/kept.csv": "there is no folder",
}


@pytest.mark.parametrize("command", BAD)
def test_bad_input_is_one_line_and_writes_nothing(folder, command):
    texts = {
        "text": "voter,a,b\nann,1,2\nbob,2,3\ncy,1,much\n",
        "silent": "voter,a,b\nann,1,2\nbob,,\n",
        "mute": "voter,a,b\nann,,\nbob,,\n",
        "unseen": "a,b,c\n1,,3\n2,,1\n",
        "zero": "a,b\n0,1\n1,2\n",
        "negative": "a,b,w\n1,2,3\n2,1,-1\n",
        "twice": "1st,2nd\na,b\na,a\n",
        "hole": "1st,2nd,3rd\na,,b\n",
        "empty": "1st,2nd\na,b\n,NA\n".replace("NA", '""'),
        "twin": "doc,s,t\nx,1,2\nx,2,1\n",
        "named": "doc,s,t\nx,1,2\ny,2,1\n",
        "unnamed": "doc,s,t\nx,1,2\n,2,1\n",
        "one": "a,b\n1,2\n",
        "kept": "rank,item\n1,old\n",
        "again": "v,i,s,w\nann,tea,1,1\nbob,tea,2,1\nann,rum,2,1\n ann ,tea,1,1\n",
        "odd": "v,i,s,w,u,r\nann,tea,1,1,1,1\nbob,tea,x,2,2,0\n,rum,3,3,,1\n",
        "uneven": "v,i,s,w\nann,tea,1,2\nann,rum,3,3\n",
    }
    for name, text in texts.items():
        Path(f"{name}.csv").write_text(text)
    Path("bad.soc").write_text("# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n3: 1,1\n")
    Path("scores.xls").write_text("not read")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = run(command if "-o" in command else f"{command} -o kept.csv", code=2)
    assert result.output.startswith("error: ")
    assert result.output.count("\n") == 1
    assert BAD[command] in result.output
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_voters_without_a_score_are_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("all.csv").write_text("a,b,w\n,,5\n3,1,2\n,,1\n2,2,4\n")
    Path("kept.csv").write_text("a,b,w\n3,1,2\n2,2,4\n")
    told, kept = (run(f"{name} --weights w") for name in ("all.csv", "kept.csv"))
    assert told.stdout == kept.stdout.replace("kept.csv", "all.csv")
    assert "note: all.csv: left out: 2 of 4 voters, who gave no score\n" in told.stderr
    Path("all.csv").write_text("a,b,w\n,,5\n3,1,2\n,,1\n2,x,4\n")
    assert "all.csv line 5, column 'b'" in run("all.csv --weights w", code=2).stderr


def test_scores_read_as_orders_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("scores.csv").write_text("a,b,c\n3,1,2\n2,2,5\n")
    told = run("scores.csv --kind orders", code=2).stderr
    assert "line 3, column 'b': '2' is in the order twice: with --kind orders cells name items" in told
    assert "use --kind scores or --kind ranks" in told
