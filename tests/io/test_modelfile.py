"""The model file: bit-identical round trips, and rejection of malformed or malicious files."""

import hashlib
import json
from contextlib import suppress

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

from apexrank import InputError, IRPush, PNormPush, PNormPushCV, RankBoost
from apexrank.datasets import make_letor_example, write_letor
from apexrank.export import round_scorecard, to_sql
from apexrank.io import (
    ModelFileError,
    Recipe,
    Table,
    TableRanker,
    load_model,
    rank_table,
    read_table,
    save_model,
)
from apexrank.io.modelfile import describe, pack, unpack
from apexrank.rankers import (
    AdditivePush,
    AdditiveRetargeting,
    CrucialPairsPush,
    LetorRanker,
    ListwiseRanker,
    MonotoneRetargeting,
    PushBoost,
    TreeRanker,
    UnknownLinkRegressor,
)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 2)) * [1e-3, 1e5]
    y = np.where(X[:, 0] * 1e3 + rng.normal(size=120) > 0.5, "yes", "no")
    city = np.array(["São Paulo", "a,b", 'q"uote'])[rng.integers(3, size=120)]
    return Table(pl.DataFrame({"id": np.arange(120), "a": X[:, 0], "b": X[:, 1], "city": city, "y": y}))


def fit(rows, estimator, **options):
    recipe = Recipe(target="y", id="id", categorical=["city"], **options)
    return TableRanker.fit(rows, recipe, estimator)


@pytest.fixture(scope="module")
def model(rows):
    return fit(rows, PNormPush(8.0, alpha=1e-3), impute="median")


@pytest.fixture
def saved(tmp_path, model):
    path = tmp_path / "model.apex"
    save_model(path, model)
    return path


@pytest.mark.parametrize(
    "estimator",
    [
        PNormPush(8.0, alpha=1e-3),
        PNormPush(2.0, alpha=1e-3, side="both"),
        AdditivePush(8.0, alpha=1e-2),
        AdditivePush(alpha=1e-2, n_knots=5, n_pairs=3, monotonic_cst={"a": 1}),
        IRPush(alpha=1e-3),
        RankBoost(t_max=5),
        PNormPushCV(ps=[1, 4], alphas=[1e-3], cv=3),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("scale", ["standard", "minmax"])
def test_scores_are_the_same_bits(tmp_path, rows, estimator, scale):
    before = fit(rows, estimator, scale=scale)
    save_model(tmp_path / "m.apex", before)
    after = load_model(tmp_path / "m.apex")
    assert after.score(rows).tobytes() == before.score(rows).tobytes()
    assert after.contributions(rows).tobytes() == before.contributions(rows).tobytes()
    assert after.thresholds.at(0.1) == before.thresholds.at(0.1)
    assert after.estimator.get_params() == before.estimator.get_params()
    assert type(after.estimator) is type(before.estimator)


def test_everything_comes_back(saved, model, rows):
    after = load_model(saved)
    assert after.encoder.columns == model.encoder.columns
    for name in ("target", "positive", "id", "groups", "weight", "ignored"):
        assert getattr(after, name) == getattr(model, name)
    assert after.training == model.training
    assert after.estimator.converged_ is True
    np.testing.assert_array_equal(
        after.estimator.predict(after.encoder.encode(rows)),
        model.estimator.predict(model.encoder.encode(rows)),
    )


@pytest.mark.parametrize(
    "estimator",
    [
        MonotoneRetargeting(alpha=1.0),
        AdditiveRetargeting(alpha=1.0, n_pairs=1, monotonic_cst={"b": -1}),
        ListwiseRanker(alpha=1.0),
        CrucialPairsPush(alpha=0.1),
        UnknownLinkRegressor(alpha=0.1),
        UnknownLinkRegressor(2.0, alpha=0.1, link="least_squares", output_range=(0.0, np.inf)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_every_linear_estimator_of_grades(tmp_path, rows, estimator):
    stars = pl.Series(np.arange(120) % 4 + (rows.frame["y"] == "yes").to_numpy())
    graded = Table(rows.frame.with_columns(stars=stars))
    recipe = Recipe(target="stars", graded=True, id="id", drop=["y"], categorical=["city"])
    before = TableRanker.fit(graded, recipe, estimator)
    save_model(tmp_path / "m.apex", before)
    after = load_model(tmp_path / "m.apex")
    assert after.score(graded).tobytes() == before.score(graded).tobytes()
    assert after.contributions(graded).tobytes() == before.contributions(graded).tobytes()
    assert after.estimator.get_params() == before.estimator.get_params()
    if isinstance(estimator, UnknownLinkRegressor):
        X = after.features(graded)
        for one, other in zip(
            after.estimator.predict_interval(X), before.estimator.predict_interval(X), strict=True
        ):
            np.testing.assert_array_equal(one, other)
    header, arrays = unpack((tmp_path / "m.apex").read_bytes())
    arrays["knots"] = arrays["knots"][::-1] if len(arrays["knots"]) else np.zeros(1)
    refused(tmp_path / "m.apex", pack(header, arrays), "link")


def test_boosted_rankers_are_refused_in_one_line(tmp_path, rows):
    model = fit(rows, PNormPush(alpha=1e-3))
    model.estimator = PushBoost()
    with pytest.raises(
        InputError, match="a PushBoost cannot be kept in a model file: its rounds are separate estimators"
    ):
        save_model(tmp_path / "m.apex", model)
    model.estimator = MonotoneRetargeting(kernel="rbf")
    with pytest.raises(InputError, match="with a kernel its scores are not linear"):
        save_model(tmp_path / "m.apex", model)


def test_a_file_without_its_weight_column_is_refused(saved):
    header, arrays = unpack(saved.read_bytes())
    del header["weight"]
    refused(saved, pack(header, arrays), "'weight' is missing")


def test_the_weight_column_is_kept(tmp_path, rows):
    weighted = Table(rows.frame.with_columns(w=pl.lit(2.0)))
    save_model(tmp_path / "m.apex", fit(weighted, PNormPush(alpha=1e-3), weight="w"))
    assert load_model(tmp_path / "m.apex").weight == "w"


def test_names_are_never_paths(tmp_path, rows, monkeypatch):
    """Columns and categories named in a model file are never opened as files."""
    monkeypatch.chdir(tmp_path)
    odd = Table(rows.frame.rename({"a": "../../a", "b": "/etc/passwd", "id": "C:\\id"}))
    recipe = Recipe(target="y", id="C:\\id", categorical=["city"])
    save_model("m.apex", TableRanker.fit(odd, recipe, PNormPush(alpha=1e-3)))
    assert load_model("m.apex").score(odd).shape == (120,)
    assert [path.name for path in tmp_path.iterdir()] == ["m.apex"]


def test_an_oversized_file_is_refused_unread(tmp_path):
    path = tmp_path / "m.apex"
    with open(path, "wb") as file:
        file.truncate((1 << 30) + 1)  # sparse: takes no room on disk
    with pytest.raises(ModelFileError, match="is too large for a model file"):
        load_model(path)


def test_same_model_same_bytes(saved, model, tmp_path):
    save_model(tmp_path / "again.apex", model)
    assert (tmp_path / "again.apex").read_bytes() == saved.read_bytes()


def test_missing_certificate_comes_back_as_nan(tmp_path, rows):
    save_model(tmp_path / "m.apex", fit(rows, PNormPush(alpha=0)))
    assert np.isnan(load_model(tmp_path / "m.apex").estimator.dual_gap_)


def test_infinite_p_is_kept(tmp_path, model, rows):
    infinite = fit(rows, PNormPush(8.0, alpha=1e-3))
    infinite.estimator.p = np.inf
    save_model(tmp_path / "m.apex", infinite)
    assert load_model(tmp_path / "m.apex").estimator.p == np.inf


def test_header_can_be_read_by_anyone(saved):
    lines = saved.read_bytes().split(b"\n")
    assert lines[0] == b"apexrank model 6"
    assert json.loads(lines[3])["estimator"]["class"] == "PNormPush"


def refused(path, data, message):
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=message) as caught:
        load_model(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_truncation_is_refused(saved):
    data = saved.read_bytes()
    for end in range(0, len(data) - 1, 97):
        refused(saved, data[:end], "model file|damaged")


def test_every_changed_byte_is_refused(saved):
    data = bytearray(saved.read_bytes())
    for position in range(0, len(data), 61):
        changed = data.copy()
        changed[position] ^= 0xFF
        refused(saved, bytes(changed), "model file|damaged|format")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not an apexrank model file"),
        (b"\x80\x04\x95cposix\nsystem\n", "not an apexrank model file"),
        (b"apexrank model 7\nsha256 0\n", "has format 7"),
        (b"apexrank model 5\nsha256 0\n", "has format 5"),
        (b"PK\x03\x04" + b"\0" * 60, "not an apexrank model file"),
        (b"apexrank model x\nsha256 0\n", "is not a number"),
        (b"apexrank model 6\nsha256 0\nheader 2\n{}\n", "damaged or truncated"),
    ],
)
def test_other_files_are_refused(tmp_path, data, message):
    refused(tmp_path / "m.apex", data, message)


def test_missing_file_and_folder(tmp_path):
    for path in (tmp_path / "gone.apex", tmp_path):
        with pytest.raises(ModelFileError, match=r"no such file|is a folder"):
            load_model(path)


def change_entry(name, value):
    def change(header, arrays):
        header[name] = value

    return change


def change_array(name, value):
    def change(header, arrays):
        arrays[name] = value(arrays[name])

    return change


def change_column(**fields):
    def change(header, arrays):
        header["columns"][0] |= fields

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (change_entry("target", None), "'target' is missing or of the wrong type"),
        (change_entry("negatives", True), "'negatives' is missing or of the wrong type"),
        (change_entry("negatives", 10**400), "thresholds is out of order"),
        (change_entry("negatives", 1), "thresholds is out of order"),
        (change_entry("columns", [3]), "not a JSON object"),
        (change_entry("columns", []), "is empty"),
        (change_entry("ignored", [3]), "holds something else"),
        (change_entry("training", {"rows": [1]}), "neither text nor a number"),
        (change_entry("training", {"scale": "none", "objective": "inf"}), "'objective' is missing or of the"),
        (change_entry("training", {"scale": "none", "n_iter": 10**30}), "neither text nor a number"),
        (change_entry("estimator", {"class": "PNormPush", "params": {"p": 10**30}}), "neither text nor"),
        (change_entry("estimator", {"class": "PNormPush", "params": {"alpha": "x"}}), "'alpha'"),
        (change_entry("estimator", {"class": "PNormPush", "params": {}}), "alpha is not a number"),
        (change_entry("estimator", {"class": "Popen", "params": {}}), "unknown estimator 'Popen'"),
        (change_entry("estimator", {"class": "PNormPush", "params": {"shell": 1}}), "no such parameters"),
        (change_entry("estimator", {"class": "PNormPush", "params": {"p": [1]}}), "neither text nor"),
        (change_column(kind="code"), "unknown kind of column 'code'"),
        (change_column(name="b"), "names one twice"),
        (change_column(fill="1"), "'fill' is missing or of the wrong type"),
        (change_array("coef", lambda a: a[:-1]), "do not fit"),
        (change_array("coef", lambda a: a * np.nan), "'coef' holds values that are not finite"),
        (change_array("scale", np.zeros_like), "scale is not positive"),
        (change_array("scores", lambda a: a[::-1]), "out of order"),
        (change_array("counts", lambda a: a[:0]), "out of order"),
        (change_array("coef", lambda a: a.astype(np.int64)), "not those of a model"),
        (lambda header, arrays: arrays.pop("mean"), "not those of a model"),
        (lambda header, arrays: header["columns"][2].update(values=["u", "u", "v"]), "names one twice"),
        (lambda header, arrays: header["columns"][2].update(fill=[1.0, 0.0]), "'city' contradicts itself"),
        (lambda header, arrays: header["columns"][2].update(other=True), "'city' contradicts itself"),
        (lambda header, arrays: header["columns"][2].update(fill=[1.0, 0.0, True]), "not finite"),
        (lambda header, arrays: header["columns"][2].update(fill=["1", 0.0, 0.0]), "not finite"),
        (
            lambda header, arrays: header["columns"][2].update(required=None),
            "'required' is missing or of the wrong",
        ),
        (change_column(decimal=";"), "'a' contradicts itself"),
        (change_column(unit="dollars"), "'a' contradicts itself"),
        (change_column(missing=True), "its arrays do not fit its columns"),
        (change_column(kind="date", format="%c"), "'a' contradicts itself|'fill' is missing"),
        (change_column(kind="date", format="%Q", fill=None), "'a' contradicts itself"),
        (change_column(kind="date", format="%Y-%m-%d", fill=[1.0]), "'a' contradicts itself"),
        (change_column(kind="date", format="%Y-%m-%d", fill=None), "no fill value"),
    ],
)
def test_contradictions_are_refused_although_the_checksum_is_right(saved, change, message):
    header, arrays = unpack(saved.read_bytes())
    change(header, arrays)
    refused(saved, pack(header, arrays), message)


def repack(data, old, new):
    """Replace a part of the header and update its length and checksum."""
    magic, _, body = data.split(b"\n", 2)
    line, rest = body.split(b"\n", 1)
    size = int(line.split()[1])
    assert old in rest[:size]
    header = rest[:size].replace(old, new)
    body = b"header %d\n" % len(header) + header + rest[size:]
    return magic + b"\nsha256 " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"shape": [5]', b'"shape": [99999999999999999]', "longer than the file"),
        (b'"shape": [5]', b'"shape": [-5]', "no proper length"),
        (b'"shape": [5]', b'"shape": [4]', "belong to no array"),
        (b'"<f8"', b'"|O8"', "unknown type"),
        (b'"rows": 120', b'"rows": NaN', "not JSON"),
        (b'"rows": 120', rb'"rows": 120, "note": "\ud800"', "not JSON of Unicode"),
        (b'"target": "y"', rb'"target": "\udc00"', "not JSON of Unicode"),
        (b'"rows": 120', b'"rows": ' + b"[" * 100_000, "not JSON"),
        (b'"name": "a", "fill": ', b'"name": "a", "fill": [1e999], "was": ', "not finite"),
    ],
)
def test_hostile_headers_are_refused(saved, old, new, message):
    refused(saved, repack(saved.read_bytes(), old, new), message)


AWKWARD = (None, True, -1, 10**30, -1e308, "x", "inf", "auto", [1], {"a": 1})
DELETED = object()


def leaves(value, path=()):
    """Paths of all parts of a header, except its list of arrays."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        if path or key != "arrays":
            yield (*path, key)
            yield from leaves(part, (*path, key))


FORGED = [
    PNormPush(alpha=0.1),
    AdditivePush(alpha=0.1, n_pairs=1),
    TreeRanker(rounds=2),
    MonotoneRetargeting(),
    UnknownLinkRegressor(),
]


@pytest.mark.slow
@pytest.mark.parametrize("estimator", FORGED, ids=lambda estimator: type(estimator).__name__)
def test_a_forged_header_is_refused_or_its_model_can_be_used(rows, estimator, tmp_path):
    """Each part of the header is deleted or replaced, the checksum is right: only InputError."""
    graded, path = not is_classifier(estimator), tmp_path / "m.apex"
    grades = rows.frame.with_columns(y=pl.int_range(120) % 3) if graded else rows.frame
    recipe = Recipe("y", id="id", graded=graded, impute="median", categorical=["city"])
    save_model(path, TableRanker.fit(grades, recipe, estimator))
    data, size = path.read_bytes(), int(path.read_bytes().split(b"\n")[2].split()[1])
    start = data.index(b"{")
    header = json.loads(data[start : start + size])
    original = load_model(path)
    columns = {column.name: rows_of(column) for column in original.encoder.columns}
    target = ["0", "1"] if original.positive is None else [original.positive, "other"]
    columns |= {name: [0, 0, 0, 0, 1, 1, 1, 1] for name in (original.groups, original.weight) if name}
    table = Table(pl.DataFrame(columns | {original.target: target * 4}))
    forged, used = tmp_path / "forged.apex", 0
    for place in leaves(header):
        for value in (DELETED, *AWKWARD):
            changed = json.loads(json.dumps(header))
            part = changed
            for key in place[:-1]:
                part = part[key]
            if value is DELETED:
                del part[place[-1]]
            else:
                part[place[-1]] = value
            text = json.dumps(changed).encode()
            forged.write_bytes(signed(b"apexrank model 6", text, data[start + size :]))
            with suppress(InputError):
                model = load_model(forged)
                used += 1
                rank_table(model, table, explain=True)
                model.check(table)
                save_model(tmp_path / "again.apex", model)
                to_sql(model)
                if place[0] in ("estimator", "training"):  # a card costs as much as all the rest
                    round_scorecard(model, table)
    assert used > 50


def rows_of(column):
    """Values of a column for eight rows."""
    kinds = {"number": [0.5, -1.0, 2.0, 3.0] * 2, "category": ["a", "b"] * 4, "date": ["2024-01-31"] * 8}
    return kinds[column.kind]


def signed(version, text, rest):
    """File of a header and what follows it, with its checksum."""
    body = b"header %d\n" % len(text) + text + rest
    return version + b"\nsha256 " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def test_header_longer_than_the_file(saved):
    data = saved.read_bytes()
    body = b"header 999999999999\n{}"
    start = data.split(b"\n", 1)[0]
    refused(
        saved, start + b"\nsha256 " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body, "longer than"
    )


def test_what_is_not_data_is_not_saved(tmp_path, rows):
    from apexrank.prices import Power

    with pytest.raises(InputError, match="cannot be kept in a model file: give it by name"):
        save_model(tmp_path / "m.apex", fit(rows, PNormPush(price=Power(2.0), alpha=1e-3)))
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(InputError, match="a LogisticRegression cannot be kept"):
        save_model(tmp_path / "m.apex", fit(rows, LogisticRegression()))
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def trees():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200)})
    table = Table(frame.with_columns(y=(pl.col("a") * pl.col("b") > 0.3).cast(int)))
    return table, TableRanker.fit(table, Recipe(target="y"), TreeRanker(leaves=5, rounds=7))


@pytest.mark.parametrize("graded", [False, True])
def test_trees_come_back_bit_for_bit(trees, tmp_path, graded):
    table, ranker = trees
    if graded:
        ranker = TableRanker.fit(table, Recipe(target="y", graded=True), LetorRanker())
    save_model(tmp_path / "m.apex", ranker)
    again = load_model(tmp_path / "m.apex")
    np.testing.assert_array_equal(again.score(table), ranker.score(table))
    np.testing.assert_array_equal(again.contributions(table), ranker.contributions(table))
    assert again.estimator.get_params() == ranker.estimator.get_params()
    with pytest.raises(InputError, match="no coefficients"):
        _ = again.coef


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("tree_left", 0, 0),
        ("tree_feature", 0, 0.5),
    ],
)
def test_trees_that_do_not_end_in_leaves_are_refused(trees, tmp_path, name, place, value):
    header, arrays = describe(trees[1])
    arrays[name][place] = value
    (tmp_path / "m.apex").write_bytes(pack(header, arrays))
    with pytest.raises(ModelFileError, match="trees"):
        load_model(tmp_path / "m.apex")


@pytest.mark.parametrize("name", ["tree_left", "tree_roots", "tree_base"])
def test_trees_with_an_array_missing_are_refused(trees, tmp_path, name):
    header, arrays = describe(trees[1])
    del arrays[name]
    (tmp_path / "m.apex").write_bytes(pack(header, arrays))
    with pytest.raises(ModelFileError, match="not complete"):
        load_model(tmp_path / "m.apex")


@pytest.mark.parametrize("kind", [PNormPush, IRPush])
def test_an_automatic_penalty_is_kept_as_a_number(rows, tmp_path, kind):
    ranker = fit(rows, kind())
    save_model(tmp_path / "m.apex", ranker)
    again = load_model(tmp_path / "m.apex").estimator
    assert again.alpha == ranker.estimator.alpha_
    assert again._penalty().convexity == ranker.estimator._penalty().convexity


@pytest.fixture(scope="module")
def additive():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200), "c": rng.integers(0, 3, 200)})
    frame = frame.with_columns(
        y=(pl.col("a") * pl.col("b") > 0.3).cast(int),
        c=pl.when(pl.col("c") > 0).then(pl.col("c")).otherwise(None),
    )
    estimator = AdditivePush(alpha=0.1, n_knots=6, n_pairs=2, monotonic_cst=[0, 0, 1, 0])
    return Table(frame), TableRanker.fit(Table(frame), Recipe(target="y"), estimator)


def test_curves_and_pairs_come_back(additive, tmp_path):
    table, ranker = additive
    save_model(tmp_path / "m.apex", ranker)
    again = load_model(tmp_path / "m.apex")
    before, after = ranker.estimator, again.estimator
    for one, other in zip(after.shapes_ + after.pairs_, before.shapes_ + before.pairs_, strict=True):
        for field, value in other._asdict().items():
            np.testing.assert_equal(getattr(one, field), value, err_msg=field)
    assert after.monotonic_cst == [0, 0, 1, 0]
    assert (after.converged_, after.n_iter_, after.dual_gap_) == (
        before.converged_,
        before.n_iter_,
        before.dual_gap_,
    )
    assert again.effects(table) == ranker.effects(table)
    with pytest.raises(InputError, match=r"^AdditivePush has no coefficients"):
        _ = again.coef
    save_model(tmp_path / "again.apex", again)  # a model that was read can be written
    assert (tmp_path / "again.apex").read_bytes() == (tmp_path / "m.apex").read_bytes()


def test_signs_by_number_are_not_kept(additive, tmp_path):
    """JSON would turn them into names."""
    model = TableRanker.fit(additive[0], Recipe(target="y"), AdditivePush(alpha=0.1, monotonic_cst={0: 1}))
    with pytest.raises(
        InputError, match=r"monotonic_cst=.*` cannot be kept in a model file: give it by name"
    ):
        save_model(tmp_path / "m.apex", model)


def at(place, value):
    def change(array):
        array[place] = value
        return array

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (change_array("shape_sizes", at(0, 0)), "no proper sizes"),
        (change_array("shape_sizes", at(0, 2.5)), "no proper sizes"),
        (change_array("shape_sizes", at(0, 1e300)), "no proper sizes"),
        (change_array("shape_sizes", at(0, 5)), "different lengths"),
        (change_array("shape_sizes", lambda a: a[:-1]), "different lengths"),
        (change_array("shape_knots", lambda a: a[::-1]), "knots of its shapes do not rise"),
        (change_array("shape_knots", at(1, -1e308)), "knots of its shapes do not rise"),
        (change_array("shape_values", lambda a: a[:-1]), "different lengths"),
        (change_array("shape_missing", lambda a: a[1:]), "different lengths"),
        (change_array("shape_counts", lambda a: a[1:]), "different lengths"),
        (change_array("shape_counts", at(0, -1)), "count less than no rows"),
        (change_array("shape_missing_counts", at(0, -1)), "count less than no rows"),
        (change_array("pair_features", at(0, -1)), "no proper sizes"),
        (change_array("pair_features", at(0, 4)), "no proper sizes"),
        (change_array("pair_features", at(1, 0.5)), "no proper sizes"),
        (change_array("pair_features", np.zeros_like), "different lengths"),
        (change_array("pair_features", lambda a: a[:2]), "no proper sizes"),
        (change_array("pair_sizes", at(0, 0)), "no proper sizes"),
        (change_array("pair_sizes", at(0, 2)), "different lengths"),
        (change_array("pair_knots", np.zeros_like), "knots of its shapes do not rise"),
        (change_array("pair_values", lambda a: a[:-1]), "different lengths"),
        (lambda header, arrays: arrays.pop("pair_values"), "not complete"),
        (lambda header, arrays: arrays.pop("shape_sizes"), "not complete"),
        (
            lambda header, arrays: [
                arrays.pop(name) for name in list(arrays) if name[:5] in ("shape", "pair_")
            ],
            "does not fit its arrays",
        ),
        (
            lambda header, arrays: header["estimator"].update({"class": "PNormPush", "params": {}}),
            "does not fit its arrays",
        ),
        *(
            (
                lambda header, arrays, value=value: header["estimator"]["params"].update(monotonic_cst=value),
                "monotone columns",
            )
            for value in ("+", 1, {"a": 2}, {"a": True}, {"a": [1]}, [0, 0.5], [[1]])
        ),
    ],
)
def test_curves_that_contradict_themselves_are_refused(additive, tmp_path, change, message):
    header, arrays = describe(additive[1])
    change(header, arrays)
    refused(tmp_path / "m.apex", pack(header, arrays), message)


GRADED = [
    pytest.param(MonotoneRetargeting(bounds=(0, None)), id="linear"),
    pytest.param(CrucialPairsPush(), id="pairs"),
    pytest.param(AdditiveRetargeting(n_knots=5), id="additive"),
    pytest.param(LetorRanker(), id="letor"),
]


@pytest.mark.parametrize("estimator", GRADED)
@pytest.mark.parametrize("named", [False, True])
def test_rankers_of_grades_that_were_fitted_on_arrays(tmp_path, estimator, named):
    rows = make_letor_example(20)
    X = pd.DataFrame(rows.data).add_prefix("a ") if named else rows.data
    estimator = clone(estimator).fit(X, rows.target, groups=rows.groups)
    save_model(tmp_path / "m.apex", estimator)
    again = load_model(tmp_path / "m.apex")
    names = [f"a {j}" if named else f"x{j}" for j in range(rows.data.shape[1])]
    table = Table(pl.DataFrame(rows.data, schema=names))
    # not bit-identical: the columns of a frame are summed in another order
    np.testing.assert_allclose(again.score(table), estimator.predict(X), rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(again.score(table), TableRanker.of(estimator).score(table))
    assert again.groups is None
    if hasattr(estimator, "bounds"):
        assert again.estimator.bounds == estimator.bounds


def test_columns_of_a_ranker_that_was_fitted_on_arrays(tmp_path):
    rows = make_letor_example(20)
    write_letor(tmp_path / "train.txt", rows.data, rows.target, rows.groups)
    table = read_table(tmp_path / "train.txt")
    ranker = MonotoneRetargeting().fit(rows.data, rows.target, groups=rows.groups)
    features = [f"feature_{j + 1}" for j in range(rows.data.shape[1])]
    save_model(tmp_path / "m.apex", TableRanker.of(ranker, features=features, groups="qid"))
    again = load_model(tmp_path / "m.apex")
    np.testing.assert_array_equal(again.score(table), ranker.predict(rows.data))
    assert len(np.unique(again.group_ids(table))) == 20
    with pytest.raises(InputError, match=f"must name {len(features)} columns, got 1"):
        TableRanker.of(ranker, features=["a"])


def test_missing_values_of_a_letor_ranker_are_filled(tmp_path):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(400, 3)), np.repeat(np.arange(40), 10)
    y = np.digitize(X[:, 0] + X[:, 1], [0, 1])
    X[rng.random(400) < 0.3, 0] = np.nan
    ranker = LetorRanker().fit(X, y, groups=groups)
    save_model(tmp_path / "m.apex", TableRanker.of(ranker, features=["a", "b", "c"]))
    again = load_model(tmp_path / "m.apex")
    table = Table(pl.DataFrame(X, schema=["a", "b", "c"]).fill_nan(None))
    np.testing.assert_array_equal(again.score(table), ranker.predict(X))
    np.testing.assert_array_equal(again.estimator.predict(X), ranker.predict(X))
    np.testing.assert_array_equal(again.contributions(table), ranker.contributions(X))


def test_rankers_on_arrays_that_no_file_keeps(tmp_path):
    rows = make_letor_example(20)
    with pytest.raises(InputError, match="also keeps the scores of the training negatives"):
        save_model(tmp_path / "m.apex", PNormPush().fit(rows.data, rows.target > 0))
    text = pd.DataFrame(rows.data).add_prefix("a ").assign(kind=["a", "b"] * (len(rows.target) // 2))
    ranker = AdditiveRetargeting(n_knots=5).fit(text, rows.target, groups=rows.groups)
    with pytest.raises(InputError, match="columns of categories"):
        save_model(tmp_path / "m.apex", ranker)
    with pytest.raises(InputError, match="a ranker of grades, not ndarray"):
        save_model(tmp_path / "m.apex", rows.data)
    with pytest.raises(NotFittedError):
        TableRanker.of(MonotoneRetargeting())


def test_a_card_of_huge_coefficients(tmp_path, saved, rows):
    header, arrays = unpack(saved.read_bytes())
    header["training"]["rows"] = None  # so that objectives are not compared
    for size in (1e100, 1e154):
        arrays["coef"][1] = size
        saved.write_bytes(pack(header, arrays))
        card = round_scorecard(load_model(saved), rows)
        assert all(np.isfinite(weight) for weight in np.ravel(card.points))
