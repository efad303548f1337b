"""Votes in both PrefLib formats: contents, and errors with file and line."""

from __future__ import annotations

import gzip
import os
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from apexrank.datasets.preflib import PreferenceProfile, read_preflib
from apexrank.errors import InputError
from apexrank_papers.data import load_preflib, preflib_names

DATA = Path(os.environ.get("APEXRANK_DATA") or Path(__file__).parents[3] / "shared" / "data")
needs_files = pytest.mark.skipif(
    not (DATA / "aggregation" / "preflib").is_dir(),
    reason="the PrefLib files are not here: set APEXRANK_DATA to read them",
)

CURRENT = """# FILE NAME: drinks.toi
# TITLE: Drinks: an election
# DATA TYPE: toi
# NUMBER ALTERNATIVES: 4
# NUMBER VOTERS: 6
# NUMBER UNIQUE ORDERS: 3
# ALTERNATIVE NAME 1: tea
# ALTERNATIVE NAME 2: milk: cold, or hot
# ALTERNATIVE NAME 3: Früchtetee
# ALTERNATIVE NAME 4: rum
3: 2,{1,4},3
2: 4
1: {3, 1}, 2
"""
OLD = """4
1,tea
2,milk: cold, or hot
3,Früchtetee
4,rum
6,6,3
3,2,{1,4},3
2,4
1,{3, 1}, 2
"""
ORDERS = [((1,), (0, 3), (2,)), ((3,),), ((2, 0), (1,))]
NAN = np.nan


def written(folder: Path, text: str, name: str = "drinks.toi") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("text", [CURRENT, OLD], ids=["current", "old"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\n\n"], ids=["unix", "windows", "blank"])
def test_both_formats_say_the_same(tmp_path, text, ending):
    profile = read_preflib(written(tmp_path, text.replace("\n", ending)))
    assert profile.items == ("tea", "milk: cold, or hot", "Früchtetee", "rum")
    assert profile.orders == ORDERS
    assert profile.counts.tolist() == [3, 2, 1]
    assert (profile.n_voters, profile.ties, profile.incomplete) == (6, True, True)
    expected = [[2.5, 1, 4, 2.5], [NAN, NAN, NAN, 1], [1.5, 3, 1.5, NAN]]
    np.testing.assert_array_equal(profile.ranks(), expected)


def test_header_is_kept(tmp_path):
    profile = read_preflib(written(tmp_path, CURRENT))
    assert profile.title == "Drinks: an election"
    assert profile.metadata["FILE NAME"] == "drinks.toi"
    assert not any("ALTERNATIVE NAME" in key for key in profile.metadata)
    assert profile.source.endswith("drinks.toi")
    assert repr(profile) == "PreferenceProfile('Drinks: an election', 4 items, 3 orders, 6 voters)"


def test_gzip_is_read_alike(tmp_path):
    path = tmp_path / "drinks.toi.gz"
    path.write_bytes(gzip.compress(OLD.encode()))
    assert read_preflib(path).orders == ORDERS


def test_numbers_of_alternatives_need_not_be_consecutive(tmp_path):
    text = "# ALTERNATIVE NAME 7: rum\n# ALTERNATIVE NAME 2: tea\n5: 7,2\n"
    profile = read_preflib(written(tmp_path, text, "two.soc"))
    assert profile.items == ("tea", "rum")
    assert profile.orders == [((1,), (0,))]
    assert (profile.ties, profile.incomplete) == (False, False)


def test_equal_orders_on_two_lines_are_one_unique_order(tmp_path):
    text = CURRENT.replace("1: {3, 1}, 2", "1: 2,{4,1},3").replace("ORDERS: 3", "ORDERS: 2")
    assert read_preflib(written(tmp_path, text)).counts.tolist() == [3, 2, 1]


@pytest.mark.parametrize("count", [10**18 - 1, 10**18, 2**63 - 1])
@pytest.mark.parametrize("claimed", [True, False])
def test_counts_of_up_to_63_bits(tmp_path, count, claimed):
    claim = f"# NUMBER VOTERS: {count}\n" if claimed else ""
    text = f"{claim}# ALTERNATIVE NAME 1: tea\n# ALTERNATIVE NAME 2: rum\n{count - 1}: 1,2\n1: 2,1\n"
    profile = read_preflib(written(tmp_path, text, "many.soc"))
    assert profile.counts.tolist() == [count - 1, 1]
    assert profile.n_voters == count


def test_a_profile_refuses_counts_that_do_not_fit():
    orders = [((0,), (1,)), ((1,), (0,))]
    assert PreferenceProfile(("a", "b"), orders, [2**63 - 2, 1]).n_voters == 2**63 - 1
    for counts in ([2**63, 1], [2**63 - 1, 1]):
        with pytest.raises(InputError, match="more than 9223372036854775807"):
            PreferenceProfile(("a", "b"), orders, counts)


# change to CURRENT (a .toi file), expected message, and the line it names
FAULTS = {
    "unknown": ("2: 4", "2: 5", "alternative 5 has no name", 12),
    "twice": ("2: 4", "2: 4,1,4", "alternative 4 occurs twice", 12),
    "twice tied": ("2: 4", "2: 4,{1,4}", "alternative 4 occurs twice", 12),
    "open brace": ("{1,4},3", "{1,4,3", "braces", 11),
    "closed brace": ("{1,4},3", "1,4},3", "braces", 11),
    "nested braces": ("{1,4},3", "{1,{4}},3", "braces", 11),
    "braces the wrong way": ("{1,4},3", "}1,4{,3", "braces", 11),
    "empty group": ("{1,4},3", "{},3", "is not an order", 11),
    "empty place": ("{1,4},3", ",3", "is not an order", 11),
    "no commas": ("{1,4},3", "{1 4},3", "is not an order", 11),
    "no order": ("2: 4", "2:", "is not an order", 12),
    "names": ("2: 4", "2: rum", "is not an order", 12),
    "no count": ("2: 4", ": 4", "count ''", 12),
    "zero": ("2: 4", "0: 4", "count '0'", 12),
    "negative": ("2: 4", "-2: 4", "count '-2'", 12),
    "fraction": ("2: 4", "2.5: 4", "count '2.5'", 12),
    "underscore": ("2: 4", "1_0: 4", "count '1_0'", 12),
    "huge": ("2: 4", "9" * 5000 + ": 4", "is above 9223372036854775807, the largest", 12),
    "above": (
        "2: 4",
        "9223372036854775808: 4",
        "count '9223372036854775808' is above 9223372036854775807",
        12,
    ),
    "sum": ("2: 4", "9223372036854775806: 4", "the counts add up to more than 9223372036854775807", 12),
    "no colon": ("2: 4", "2 4", "is not a vote", 12),
    "alternatives": ("ALTERNATIVES: 4", "ALTERNATIVES: 5", "'5', but 4 have a name", 4),
    "voters": ("VOTERS: 6", "VOTERS: 7", "'7', but 6 is the sum", 5),
    "orders": ("ORDERS: 3", "ORDERS: 4", "'4', but 3 different", 6),
    "total in words": ("VOTERS: 6", "VOTERS: six", "'six', but 6", 5),
    "name twice": ("NAME 4", "NAME 3", "alternative 3 occurs twice", 10),
    "data type": ("TYPE: toi", "TYPE: soc", "data type is 'soc'", 3),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_name_file_and_line(tmp_path, fault):
    before, after, message, line = FAULTS[fault]
    assert CURRENT.count(before) == 1
    path = written(tmp_path, CURRENT.replace(before, after))
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read_preflib(path)
    assert str(caught.value).startswith(f"{path} line {line}: ")
    assert "\n" not in str(caught.value)


OLD_FAULTS = {
    "no number": ("4\n1,tea", "four\n1,tea", "nor a number of alternatives", 1),
    # the totals are read as a fifth name, and the first order as the totals
    "too few names": ("4\n1,tea", "5\n1,tea", "'3,2,{1,4},3' is not a line of totals", 7),
    "too many names": ("4\n1,tea", "3\n1,tea", "'4,rum' is not a line of totals", 5),
    "no comma": ("4,rum", "rum", "'rum' is not an alternative", 5),
    "voters": ("6,6,3", "7,6,3", "number voters is '7', but 6", 6),
    "sum": ("6,6,3", "6,7,3", "sum of counts is '7', but 6", 6),
    "orders": ("6,6,3", "6,6,4", "'4', but 3 different", 6),
    "count": ("\n2,4", "\nx,4", "count 'x'", 8),
    "only a count": ("\n2,4", "\n2", "'' is not an order", 8),
}


@pytest.mark.parametrize("fault", OLD_FAULTS)
def test_faults_of_the_old_format(tmp_path, fault):
    before, after, message, line = OLD_FAULTS[fault]
    assert OLD.count(before) == 1
    path = written(tmp_path, OLD.replace(before, after))
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read_preflib(path)
    assert str(caught.value).startswith(f"{path} line {line}: ")


@pytest.mark.parametrize("keep", [1, 3, 5])
def test_old_file_that_ends_early(tmp_path, keep):
    path = written(tmp_path, "".join(OLD.splitlines(keepends=True)[:keep]))
    with pytest.raises(InputError, match=f"line {keep}: the file ends here"):
        read_preflib(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("# TITLE: nothing\n", "names no alternative"),
        ("# ALTERNATIVE NAME 1: tea\n", "holds no orders"),
        ("1\n1,tea\n0,0,0\n", "holds no orders"),
    ],
    ids=["empty", "blank", "header", "no orders", "old without orders"],
)
def test_files_without_orders(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_preflib(written(tmp_path, text))


@pytest.mark.parametrize(
    ("kind", "order", "message"),
    [
        ("soc", "1,{2,3}", "strict orders, but this one has ties; name it .toc"),
        ("soi", "1,{2,3}", "strict orders, but this one has ties; name it .toi"),
        ("soc", "1,2", "has 2 of 3 alternatives; name it .soi"),
        ("toc", "{1,2}", "has 2 of 3 alternatives; name it .toi"),
        ("toi", "{1,2}", None),
        ("toc", "{1,2},3", None),
        ("soi", "3", None),
        ("soc", "3,1,2", None),
        ("soc", "3,{1},2", None),
    ],
)
def test_the_extension_is_a_claim(tmp_path, kind, order, message):
    path = written(tmp_path, f"3\n1,a\n2,b\n3,c\n2,2,1\n2,{order}\n", f"votes.{kind}")
    if message is None:
        assert read_preflib(path).n_voters == 2
        return
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read_preflib(path)
    assert str(caught.value).startswith(f"{path} line 6: ")


@pytest.mark.parametrize("name", ["votes.txt", "votes", "votes.cat", "votes.gz", "soc"])
def test_other_extensions_are_refused(tmp_path, name):
    with pytest.raises(InputError, match=r"must end in \.soc, \.soi, \.toc or \.toi"):
        read_preflib(written(tmp_path, OLD, name))


def test_what_is_no_text(tmp_path):
    path = tmp_path / "votes.toi"
    path.write_bytes(b"4\n1,tea\n2,\xff\n")
    with pytest.raises(InputError, match="line 3: this is not UTF-8 text"):
        read_preflib(path)
    with pytest.raises(InputError, match="cannot read"):
        read_preflib(tmp_path / "none.toi")


def test_load_by_name(tmp_path):
    written(tmp_path, OLD, "b.toi")
    written(tmp_path, CURRENT, "a.toi")
    written(tmp_path, "1\n1,tea\n1,1,1\n1,1\n", "b.soc")
    written(tmp_path, "not a vote", "README.md")
    assert preflib_names(tmp_path) == ["a.toi", "b.soc", "b.toi"]
    assert load_preflib("a", tmp_path).n_voters == load_preflib("a.toi", tmp_path).n_voters == 6
    assert load_preflib("b.soc", tmp_path).n_voters == 1
    with pytest.raises(InputError, match=re.escape("several files: give one of b.soc, b.toi")):
        load_preflib("b", tmp_path)
    with pytest.raises(InputError, match="has no PrefLib file 'c'"):
        load_preflib("c", tmp_path)


def test_the_folder_is_found_by_the_variable(tmp_path, monkeypatch):
    folder = tmp_path / "aggregation" / "preflib"
    monkeypatch.setenv("APEXRANK_DATA", str(tmp_path))
    with pytest.raises(InputError, match="the PrefLib files are missing"):
        preflib_names()
    folder.mkdir(parents=True)
    written(folder, OLD)
    assert load_preflib("drinks").orders == ORDERS


@st.composite
def profiles(draw):
    n = draw(st.integers(1, 6))
    orders, counts = [], []
    for _ in range(draw(st.integers(1, 5))):
        listed = draw(st.permutations(range(n)))[: draw(st.integers(1, n))]
        cuts = sorted(draw(st.sets(st.integers(1, len(listed)))) - {len(listed)})
        edges = [0, *cuts, len(listed)]
        orders.append(tuple(tuple(listed[a:b]) for a, b in pairwise(edges)))
        counts.append(draw(st.integers(1, 10**6)))
    return PreferenceProfile(tuple(f"item {i}" for i in range(n)), orders, counts)


def text_of(profile: PreferenceProfile, old: bool) -> str:
    orders = [
        ",".join(
            str(group[0] + 1) if len(group) == 1 else "{" + ",".join(str(i + 1) for i in group) + "}"
            for group in order
        )
        for order in profile.orders
    ]
    unique = len({tuple(map(frozenset, order)) for order in profile.orders})
    n, voters = len(profile.items), profile.n_voters
    if old:
        names = [f"{i},{name}" for i, name in enumerate(profile.items, 1)]
        votes = [f"{count},{order}" for count, order in zip(profile.counts, orders, strict=True)]
        return "\n".join([str(n), *names, f"{voters},{voters},{unique}", *votes])
    names = [f"# ALTERNATIVE NAME {i}: {name}" for i, name in enumerate(profile.items, 1)]
    totals = [f"# NUMBER VOTERS: {voters}", f"# NUMBER UNIQUE ORDERS: {unique}"]
    return "\n".join([*totals, *names, *(f"{c}: {o}" for c, o in zip(profile.counts, orders, strict=True))])


@given(profiles(), st.booleans())
def test_what_is_written_is_read_and_ranks_are_rankdata(tmp_path_factory, profile, old):
    path = written(tmp_path_factory.mktemp("votes"), text_of(profile, old))
    again = read_preflib(path)
    assert (again.items, again.orders) == (profile.items, profile.orders)
    assert again.counts.tolist() == profile.counts.tolist()
    for row, order in zip(again.ranks(), again.orders, strict=True):
        place = np.full(len(again.items), NAN)
        for position, group in enumerate(order):
            place[list(group)] = position
        np.testing.assert_array_equal(row, rankdata(place, nan_policy="omit"))


@needs_files
def test_all_files_agree_with_their_headers(monkeypatch):
    monkeypatch.setenv("APEXRANK_DATA", str(DATA))
    names = preflib_names()
    assert len(names) == 129
    profiles = [load_preflib(name) for name in names]
    for name, profile in zip(names, profiles, strict=True):
        claims = profile.metadata
        assert claims["FILE NAME"] == name
        assert int(claims["NUMBER VOTERS"]) == profile.n_voters
        assert int(claims["NUMBER ALTERNATIVES"]) == len(profile.items)
        assert int(claims["NUMBER UNIQUE ORDERS"]) == len(profile.orders)
        assert not profile.ties or name.endswith(".toc")
        assert not profile.incomplete or name.endswith(".soi")
        ranks = profile.ranks()
        listed = (~np.isnan(ranks)).sum(axis=1)
        np.testing.assert_allclose(np.nansum(ranks, axis=1), listed * (listed + 1) / 2)
    assert sum(profile.n_voters for profile in profiles) == 205_305


@needs_files
def test_one_file_by_hand(monkeypatch):
    """The first judge of the junior pairs' short program put Nikolaeva and Sokolov first, Carenini and De Pra last."""
    monkeypatch.setenv("APEXRANK_DATA", str(DATA))
    profile = load_preflib("00006-00000029")
    assert profile.title == "Worldjunior Pairs Short Program"
    first = profile.ranks()[0]
    assert profile.items[int(first.argmin())] == "Nikolaeva Sokolov"
    assert profile.items[int(first.argmax())] == "Carenini De Pra"
