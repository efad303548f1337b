"""Tables: fit, rank, evaluate, compare and export."""

from __future__ import annotations

import atexit
import gzip
import shutil
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from hypothesis import strategies as st

from apexrank.cli.fit import MODELS, build_estimator
from apexrank.io import Recipe, Table, rank_table
from apexrank.io.judge import measure
from apexrank.io.stream import fit_table_blocks
from apexrank.io.table_ranker import fit_table
from tests.metamorphic.engine import FOLDER, SEEDS, Found, Relation, Subject, apexrank, named, renamed
from tests.metamorphic.threads import with_threads

MODEL, ALPHA = FOLDER / "model.apex", 0.1


# ---------------------------------------------------------------- cases


@dataclass(frozen=True)
class Rows:
    """Rows to learn from, rows to rank and rows to evaluate on, and their format.

    Columns: ``case`` (ids), ``q`` (groups), ``x``, ``z``, ``k``, ``flag``, ``day`` and ``city`` (features), ``stars``
    (grades), ``fraud`` (0 and 1, unless labels were renamed) and ``times`` (weights). Numbers are multiples of 1/16, so
    they are exact as text and in single precision.
    """

    train: pl.DataFrame
    new: pl.DataFrame
    test: pl.DataFrame
    weighted: bool
    scale: str
    ids: dict[str, str] = field(default_factory=dict)  # the original ids of renamed ones
    positive: str | None = None
    suffix: str = ".csv"
    route: str = "files"
    threads: int | None = None

    def write(self, frame: pl.DataFrame, name: str) -> Path:
        return WRITERS[self.suffix](frame, FOLDER / name)

    def but(self, **changes: Any) -> Rows:
        return replace(self, **changes)

    def everywhere(self, change: Callable[[pl.DataFrame], pl.DataFrame], **more: Any) -> Rows:
        """Apply the same change to all tables."""
        return replace(self, train=change(self.train), new=change(self.new), test=change(self.test), **more)


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    """Rows of both classes, with or without missing values and blank categories."""
    n, gaps, weighted = (
        draw(st.integers(20, 44)),
        draw(st.sampled_from([True, False])),
        draw(st.sampled_from([True, False])),
    )
    scale, far = draw(st.sampled_from(["standard", "minmax"])), draw(st.sampled_from([0, 2**17]))
    rng = np.random.default_rng(draw(SEEDS))
    table = _draw_rows(n + 8, gaps, rng).with_columns(pl.col("z") + far)  # far from zero, as times are
    return Rows(table[:n], table, table[4:], weighted, scale)


def _draw_rows(n: int, gaps: bool, rng: np.random.Generator) -> pl.DataFrame:
    # all different, so the only ties are those that a relation makes
    x, z = (rng.choice(np.arange(-800, 800), n, replace=False) / 16 for _ in range(2))
    city = rng.choice(["Oslo", "Rome", "Lima"], n).astype(object)
    signal = x / 30 + (city == "Rome") + rng.normal(size=n)
    fraud = (signal > np.median(signal)).astype(int)
    fraud[:4] = 0, 1, 0, 1
    stars = np.digitize(signal, [-0.7, 0.3, 1.2])
    q = rng.integers(0, 4, n)
    q[:8], stars[:8] = np.repeat(np.arange(4), 2), [0, 2] * 4  # a pair to rank in every group
    blank = (rng.random((2, n)) < 0.15) & gaps
    return pl.DataFrame(
        {
            "case": [f"c{i}" for i in range(n)],
            "q": [f"q{i}" for i in q],
            "x": pl.Series(np.where(blank[0], np.nan, x)).fill_nan(None),
            "z": z,
            "k": rng.integers(0, 5, n),
            "flag": rng.random(n) < 0.4,
            "day": np.datetime64("2024-02-20") + rng.integers(0, 60, n),
            "city": pl.Series(
                [None if b else c for b, c in zip(blank[1], city, strict=True)], dtype=pl.String
            ),
            "stars": stars,
            "fraud": fraud,
            "times": np.where(np.arange(n) < 8, 1, rng.integers(0, 4, n)),
        }
    )


# ---------------------------------------------------------------- formats


def _as_csv(frame: pl.DataFrame, path: Path, suffix: str = ".csv", **options: Any) -> Path:
    path = path.with_suffix(suffix)
    path.write_bytes(frame.write_csv(**options).encode())
    return path


def _with_commas(frame: pl.DataFrame, path: Path) -> Path:
    floats = [name for name, kind in frame.schema.items() if kind.is_float()]
    texts = frame.with_columns(pl.col(floats).cast(pl.String).str.replace(".", ",", literal=True))
    return _as_csv(texts, path, separator=";")


def _packed(frame: pl.DataFrame, path: Path) -> Path:
    path = path.with_suffix(".csv.gz")
    path.write_bytes(gzip.compress(frame.write_csv().encode()))
    return path


def _by_windows(frame: pl.DataFrame, path: Path) -> Path:
    path = path.with_suffix(".csv")
    path.write_bytes(b"\xef\xbb\xbf" + frame.write_csv(line_terminator="\r\n", quote_style="always").encode())
    return path


def _as_parquet(frame: pl.DataFrame, path: Path) -> Path:
    path = path.with_suffix(".parquet")
    frame.write_parquet(path)
    return path


def _single(frame: pl.DataFrame, path: Path) -> Path:
    floats = [name for name, kind in frame.schema.items() if kind.is_float()]
    return _as_parquet(frame.with_columns(pl.col(floats).cast(pl.Float32)), path)


def _by_pandas(frame: pl.DataFrame, path: Path) -> Path:
    """Format of a pandas frame written with its index."""
    path = path.with_suffix(".csv")
    frame.to_pandas().to_csv(path)
    return path


def _categorical(frame: pl.DataFrame, path: Path) -> Path:
    return _as_parquet(frame.with_columns(pl.col("city", "q").cast(pl.Categorical)), path)


WRITERS: dict[str, Callable[[pl.DataFrame, Path], Path]] = {
    ".csv": _as_csv,
    "tabs": lambda frame, path: _as_csv(frame, path, ".tsv", separator="\t"),
    "semicolons and decimal commas": _with_commas,
    "gzip": _packed,
    "quotes, CRLF and a byte order mark": _by_windows,
    "Parquet": _as_parquet,
    "single precision": _single,
    "CSV by pandas with its index": _by_pandas,
    "Parquet with categories": _categorical,
}


# ---------------------------------------------------------------- subjects


class Fit(NamedTuple):
    """A fit on the command line: its model and options, unusual roles of columns, and its traits."""

    model: str
    options: dict[str, Any]
    roles: Mapping[str, Any] = MappingProxyType({})
    traits: tuple[str, ...] = ()

    @property
    def graded(self) -> bool:
        return MODELS[self.model].graded


_SMOOTH = {"alpha": ALPHA, "tol": 1e-11}
_SHAPES = {"alpha": ALPHA, "tol": 1e-9, "knots": 4}
_TREES = {"rounds": 5, "leaves": 4}
_IN_GROUPS = {"groups": "q", "scale": "query"}
_AS_THEY_ARE = {"scale": "none", "impute": None}
FITS = {
    "fit push": Fit("push", {"p": 3.0, **_SMOOTH}),
    "fit push in groups": Fit(
        "push", {"p": 2.0, "alpha": ALPHA, "tol": 1e-9}, _IN_GROUPS, ("query scaling",)
    ),
    "fit curves": Fit("curves", {"p": 2.0, **_SHAPES}, _AS_THEY_ARE, ("knots", "no blocks")),
    "fit logistic": Fit("logistic", _SMOOTH),
    "fit trees": Fit("trees", _TREES, _AS_THEY_ARE, ("splits", "no blocks", "no export")),
    "fit curves-and-trees": Fit(
        "curves-and-trees", {"rounds": 5}, _AS_THEY_ARE, ("splits", "no blocks", "no export")
    ),
    "fit ir": Fit("ir", _SMOOTH),
    "fit rankboost": Fit("rankboost", {"max_iter": 15}, traits=("coordinates",)),
    "fit retarget": Fit("retarget", _SMOOTH),
    "fit curves-retarget": Fit("curves-retarget", _SHAPES, _AS_THEY_ARE, ("knots", "no blocks")),
    "fit letor": Fit("letor", {}, traits=("splits", "no blocks", "no export")),
    "fit listwise": Fit("listwise", _SMOOTH),
    "fit pairs": Fit("pairs", _SMOOTH, _IN_GROUPS, ("query scaling",)),
}


def _words(options: dict[str, Any]) -> list[str]:
    flags = {name: f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}" for name in options}
    texts = {name: ",".join(v) if isinstance(v, list) else str(v) for name, v in options.items()}
    return [word for name in options for word in (flags[name], texts[name])]


def _roles(case: Rows, fit: Fit) -> dict[str, Any]:
    """Roles of the columns, as arguments of both the command line and Python."""
    roles: dict[str, Any] = {"target": "fraud", "id": "case", "scale": case.scale}
    if fit.graded:  # without imputation, grades reject missing values; text is rejected unless it is declared
        roles |= {"target": "stars", "groups": "q", "impute": "median", "categorical": ["city"]}
    elif case.positive is not None:
        roles["positive"] = case.positive
    roles |= {"weight": "times"} if case.weighted else {}
    roles |= fit.roles
    roles = {name: role for name, role in roles.items() if role is not None}
    # a model of grades takes plain numbers
    dated = {"day"} if fit.graded else set()
    free = {"stars", "fraud", "q", "times", *dated}.intersection(case.train.columns)
    return roles | {"drop": sorted(free - {str(role) for role in roles.values()})}


def _fit(case: Rows, fit: Fit) -> dict[str, Any]:
    """Fit a model file ``model.apex``; returns the output of the command."""
    words = [*_words(_roles(case, fit)), "--model", fit.model, *_words(fit.options)]
    train = _folder(case.train) if case.route == "blocks" else case.write(case.train, "train")
    return apexrank("fit", train, *words, "-o", MODEL, "--json")


def _folder(frame: pl.DataFrame) -> Path:
    """Several Parquet files with whole groups each."""
    folder = FOLDER / "parts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for number, part in enumerate(frame.partition_by("q")):
        part.write_parquet(folder / f"{number}.parquet")
    return folder


def _slack(report: dict[str, Any], n: float) -> float:
    """Error of a score that the certificate of a ridge of strength alpha allows.

    ``|w − w*|² ≤ 2·gap/alpha``, and a scaled row has a norm of at most the root of rows times features.
    """
    gap, alpha = report.get("dual_gap"), report["params"].get("alpha")
    if gap is None or not alpha:
        return 0.0
    return float(np.sqrt(2 * max(gap, 0.0) / alpha * n * report["features"]))


def _are_clear(scores: Any, slack: float) -> bool:
    """Whether all scores differ by more than the certificates leave open."""
    gaps = np.diff(np.sort(np.fromiter(scores, float)))
    return not ((gaps > 0) & (gaps <= 4 * slack + 1e-8)).any()


def fit_and_rank(fit: Fit) -> Callable[[Rows], Found]:
    """Fit, and rank new rows: scores, coefficients, and the measures that fit prints."""

    def run(case: Rows) -> Found:
        with with_threads(case.threads), warnings.catch_warnings():
            # a command line tells it; the certificate says how far the answer is
            warnings.filterwarnings("ignore", "not converged|without a penalty")
            report, ranking = _in_python(case, fit) if case.route in _PYTHON else _by_files(case, fit)
        slack = _slack(report, 3.0 * len(case.train))
        known = [row for row in ranking if not row["case"].startswith("extra")]
        scores = {case.ids.get(row["case"], row["case"]): row["score"] for row in known}
        # tied rows come in the order of the table; here they share the better rank
        best: dict[Any, int] = {}
        for row in ranking:
            best.setdefault((row.get("q"), row["score"]), row.get("rank"))
        ranks = {case.ids.get(row["case"], row["case"]): best[row.get("q"), row["score"]] for row in known}
        found = named(scores, "score") | named(report["measures"], "measure")
        for what in ("coefficient", "effect"):
            found |= named(report.get(f"{what}s", {}), what)
        within = "ranks in groups" if "groups" in _roles(case, fit) else "ranks"
        facts = {key: report[key] for key in ("rows", "positives", "features")} | {within: ranks}
        vague = () if _are_clear(scores.values(), slack) else ("measure *", within)
        return Found(found, slack, facts, vague)

    return run


def _by_files(case: Rows, fit: Fit) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    report, new = _fit(case, fit), case.write(case.new, "new")
    if case.route in ("onnx", "sql"):
        return report, (_by_onnx if case.route == "onnx" else _by_sql)(case.new)
    return report, apexrank("rank", MODEL, new, "--json")["ranking"]


def _by_onnx(frame: pl.DataFrame) -> list[dict[str, Any]]:
    import onnxruntime

    apexrank("export", MODEL, "-o", FOLDER / "model.onnx", "--json")
    session = onnxruntime.InferenceSession(FOLDER / "model.onnx", providers=["CPUExecutionProvider"])
    given = {}
    for one in session.get_inputs():
        column = frame[one.name]
        text = column.dtype == pl.String
        values = column.fill_null("").to_list() if text else column.cast(pl.Float64).to_list()
        given[one.name] = np.array(values, dtype=object if text else float)[:, None]
    scores = session.run(["score"], given)[0]
    return [{"case": case, "score": score} for case, score in zip(frame["case"], scores.ravel(), strict=True)]


def _by_sql(frame: pl.DataFrame) -> list[dict[str, Any]]:
    import duckdb

    words = ["--format", "sql", "--table", "t", "--dialect", "duckdb", "--id", "case", "--json"]
    sql = apexrank("export", MODEL, *words)["sql"]
    with duckdb.connect(":memory:") as connection:
        connection.register("t", frame.to_arrow())
        return [{"case": case, "score": score} for case, score in connection.execute(sql).fetchall()]


_PYTHON = ("Python", "small blocks", "Dask")


def _in_python(case: Rows, fit: Fit) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The same fit in Python, without a model file."""
    estimator = build_estimator(fit.model, False, dict(fit.options))
    recipe, table = Recipe(graded=fit.graded, **_roles(case, fit)), Table(case.train)
    if case.route == "Python":
        ranker, judged = fit_table(table, recipe, estimator)
    else:
        on = dask_workers() if case.route == "Dask" else {"rows": 7}
        path = _as_parquet(case.train, FOLDER / "blocks")
        ranker, judged = fit_table_blocks(path, recipe, estimator, **on)
    report: dict[str, Any] = ranker.training | {"features": len(ranker.encoder.features)}
    report["measures"] = measure(judged, brief=True)[0]
    report["params"] = {"alpha": getattr(estimator, "alpha", None)}
    if ranker.is_linear:
        report["coefficients"] = dict(zip(ranker.encoder.features, ranker.coef, strict=True))
    elif hasattr(estimator, "shapes_") or hasattr(estimator, "curves_"):
        report["effects"] = ranker.effects(table)
    return report, rank_table(ranker, Table(case.new)).to_dicts()


@cache
def dask_workers() -> dict[str, Any]:
    """Arguments for a fit on Dask workers, which are threads of this process."""
    from distributed import Client

    client = Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0")
    atexit.register(client.close)
    return {"dask": True}


def evaluate_model(name: str) -> Callable[[Rows], Found]:
    """Measures of a model on other rows, including those of each query."""

    def run(case: Rows) -> Found:
        report, fit = _fit(case, FITS[name]), FITS[name]
        test = case.write(case.test, "test")
        costs = [] if "groups" in _roles(case, fit) else ["--cost-false-alarm", 1, "--gain-hit", 3]
        found = apexrank("evaluate", MODEL, test, *costs, "--json")
        scores = [row["score"] for row in apexrank("rank", MODEL, test, "--json")["ranking"]]
        slack = _slack(report, 3.0 * len(case.train))
        facts = {key: found.get(key) for key in ("rows", "positives", "groups", "max_grade")}
        numbers = named(found["measures"], "measure") | named(found.get("best_cut", {}), "cut")
        return Found(numbers, slack, facts, () if _are_clear(scores, slack) else ("measure *", "cut *"))

    return run


MEASURES = (
    *("auc", "partial_auc_0.3", "tpr_at_fpr_0.2", "precision_at_5", "recall_at_7", "average_precision"),
    *("mrr", "winner_takes_all", "r_max", "p_norm_risk_2", "kendall_tau"),
    *("average_reciprocal_rank", "push_dcg"),
)
GRADED_MEASURES = (*MEASURES[:8], "ndcg", "ndcg_at_5", "ndcg_linear", "dcg_at_3", "err", "err_at_4")


def evaluate_scores(graded: bool) -> Callable[[Rows], Found]:
    """Measures of a column of integer scores, which have ties."""
    target, groups, names = (
        ("stars", ["--groups", "q"], GRADED_MEASURES) if graded else ("fraud", [], MEASURES)
    )

    def run(case: Rows) -> Found:
        frame = case.test.with_columns((pl.col("z") / 10).round().alias("z"))
        words = [*groups, *(["--weight", "times"] if case.weighted else [])]
        words += ["--positive", case.positive] if case.positive and not graded else []
        base = ["evaluate", case.write(frame, "test"), "--scores", "z", "--target", target, *words]
        means = apexrank(*base, "--measures", ",".join(names), "--json")
        found = named(means["measures"], "measure")
        if graded:
            for row in apexrank(*base, "--per-query", "--measures", ",".join(names), "--json")["table"]:
                group = row.pop("group")
                group = case.ids.get(group, group)
                found |= {f"{group} {key}": value for key, value in row.items() if value is not None}
        return Found(found, facts={key: means[key] for key in ("rows", "positives")})

    return run


def rank_options(words: list[str]) -> Callable[[Rows], Found]:
    """Rows that an option of rank keeps, with the reasons; ids are facts, so an additional row is noticed."""

    def run(case: Rows) -> Found:
        report = _fit(case, FITS["fit push"])
        slack = _slack(report, 3.0 * len(case.train))
        ranking = apexrank("rank", MODEL, case.write(case.new, "new"), *words, "--json")["ranking"]
        every = apexrank("rank", MODEL, case.write(case.new, "new"), "--json")["ranking"]
        known = [row for row in ranking if not row["case"].startswith("extra")]
        of = {case.ids.get(row["case"], row["case"]): row for row in known}
        facts = {"kept": sorted(of)} | {
            f"why {name}": (row.get("why_1") or "")[:2] for name, row in of.items()
        }
        numbers = {f"score {name}": row["score"] for name, row in of.items()}
        vague = () if _are_clear([row["score"] for row in every], slack) else ("kept", "why *", "score *")
        return Found(numbers, slack, facts, vague)

    return run


def compare_models(case: Rows) -> Found:
    """Comparison on the rows of another table: the measures, the chosen settings and the columns left out."""
    roles = _roles(case, FITS["fit push"])
    words = ["--models", "logistic,push", "-p", "1,2", "--folds", 2, "--repeats", 1, "--json"]
    train, test = case.write(case.train, "train"), case.write(case.test, "test")
    found = apexrank("compare", train, "--test", test, *_words(roles), *words)
    values = {f"{row['ranker']} {row['measure']}": row["value"] for row in found["measures"]}
    settings = {row["ranker"]: row["setting"] for row in found["rankers"]}
    facts = {key: found[key] for key in ("rows", "positives", "best", "recommended", "top")}
    return Found(values, facts=facts | {"settings": settings})


def scorecard(case: Rows) -> Found:
    """Points of a card."""
    _fit(case, FITS["fit push"])
    data = case.write(case.train, "train")
    words = ["--max-points", 3, "-o", FOLDER / "card.csv", "--json"]
    found = apexrank("export", MODEL, "--data", data, *words)
    return Found({row["feature"]: row["points"] for row in found["points"]})


SUBJECTS = [
    *(
        Subject(
            name,
            "table",
            fit_and_rank(fit),
            frozenset({"graded" if fit.graded else "classes", *fit.traits}),
            60,
        )
        for name, fit in FITS.items()
    ),
    Subject(
        "rank --top --explain",
        "table",
        rank_options(["--top", "9", "--explain"]),
        frozenset({"cut", "no Python"}),
        60,
    ),
    Subject("rank --fpr", "table", rank_options(["--fpr", "0.3"]), frozenset({"no Python", "threshold"}), 60),
    Subject("evaluate push", "table", evaluate_model("fit push"), frozenset({"no Python"}), 60),
    Subject(
        "evaluate retarget", "table", evaluate_model("fit retarget"), frozenset({"no Python", "graded"}), 60
    ),
    Subject("evaluate --scores", "table", evaluate_scores(False), frozenset({"no Python", "no fit"}), 15),
    Subject(
        "evaluate --scores --groups",
        "table",
        evaluate_scores(True),
        frozenset({"no Python", "no fit", "graded"}),
        25,
    ),
    Subject("compare", "table", compare_models, frozenset({"no Python", "folds"}), 600),
    Subject("export scorecard", "table", scorecard, frozenset({"no Python", "rounded"}), 600),
]


# ---------------------------------------------------------------- relations

_TIES = "splits of equal gain are told apart by rounding, which depends on the order of the rows"
_COORDINATES = (
    "coordinates of equal descent are told apart by rounding, which depends on the order of the rows"
)
_FOLDS = "folds are drawn by the numbers of the rows"


def _shuffle(frame: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    return frame[rng.permutation(len(frame))]


def _rename_ids(case: Rows, rng: np.random.Generator) -> Rows:
    new = renamed(case.new["case"].to_list(), rng)
    ids = {name: old for old, name in new.items()}
    return case.everywhere(lambda frame: frame.with_columns(pl.col("case").replace_strict(new)), ids=ids)


def _relabel_groups(case: Rows, rng: np.random.Generator) -> Rows:
    new = renamed(sorted({*case.new["q"]}), rng)
    ids = {name: old for old, name in new.items()}
    return case.everywhere(
        lambda frame: _shuffle(frame.with_columns(pl.col("q").replace_strict(new)), rng), ids=ids
    )


def _rename_labels(case: Rows, rng: np.random.Generator) -> Rows:
    no, yes, ask = LABELS[rng.integers(len(LABELS))]
    values = {0: no, 1: yes}
    kind = pl.Boolean if isinstance(yes, bool) else pl.Int64 if isinstance(yes, int) else pl.String
    return case.everywhere(
        lambda frame: frame.with_columns(pl.col("fraud").replace_strict(values, return_dtype=kind)),
        positive=str(yes) if ask else None,
    )


# negative, positive, and whether --positive must say so
LABELS = [
    ("no", "yes", False),
    ("false", "true", False),
    (False, True, False),
    ("N", "Y", False),
    (-1, 1, False),
    ("good", "bad", True),
    ("a", "b", True),
    ("b", "a", True),
    (1, 0, True),
    (1, 2, True),
    (2, 1, True),
    ("yes", "no", True),
]


def _repeat(case: Rows, rng: np.random.Generator) -> tuple[Rows, Rows]:
    def repeated(frame: pl.DataFrame) -> pl.DataFrame:
        return frame[np.repeat(np.arange(len(frame)), frame["times"])].drop("times")

    weighted = case.but(weighted=True)
    return weighted, case.but(train=repeated(case.train), test=repeated(case.test), weighted=False)


def _add_weightless(case: Rows, rng: np.random.Generator) -> tuple[Rows, Rows]:
    odd = case.train[:3].with_columns(
        pl.Series("case", ["extra1", "extra2", "extra3"]),
        pl.Series("x", [1e4, -1e4, 0.0]),
        pl.lit("Atlantis").alias("city"),
        pl.lit(99, pl.Int64).alias("k"),
        pl.lit(0, pl.Int64).alias("times"),
    )
    one = case.but(weighted=True)
    return one, one.but(train=pl.concat([odd, case.train]), test=pl.concat([case.test, odd]))


def _add_unlabelled(case: Rows, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """With a row counter, which must be recognised although some of its rows are dropped."""
    odd = case.train[:3].with_columns(
        pl.lit(None, pl.Int64).alias("fraud"), pl.lit(1e4).alias("x"), pl.lit("Atlantis").alias("city")
    )
    some = case.but(train=_insert(case.train, odd), test=_insert(case.test, odd))
    number = pl.int_range(1, pl.len() + 1).alias("counter")
    return case, some.everywhere(lambda frame: frame.with_columns(number))


def _insert(frame: pl.DataFrame, rows_: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([frame[:9], rows_, frame[9:]])


def _add_useless(case: Rows, rng: np.random.Generator) -> Rows:
    return case.everywhere(
        lambda frame: frame.with_columns(
            pl.lit(7, pl.Int64).alias("same"),
            pl.int_range(1, pl.len() + 1).alias("counter"),
            pl.col("case").str.slice(1).cast(pl.Int64).sort().alias("account_id") * 17,
        )
    )


def _scale_features(case: Rows, rng: np.random.Generator) -> Rows:
    factor, shift = 2.0 ** rng.integers(-3, 4), float(rng.integers(-300, 300))
    return case.everywhere(
        lambda frame: frame.with_columns(pl.col("x") * factor + shift, pl.col("z") * 4, pl.col("k") * 3 - 5)
    )


def _negate(case: Rows, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """In standard scaling: from 0 to 1, z becomes 1 − z, and all scores move by its coefficient."""
    case = case.but(scale="standard")
    return case, case.everywhere(lambda frame: frame.with_columns(-pl.col("z")))


def _spell(case: Rows, rng: np.random.Generator) -> Rows:
    mark = ["NA", "?", "null", "-", "n/a"][rng.integers(5)]
    return case.everywhere(
        lambda frame: frame.with_columns(
            pl.col("x").cast(pl.String).fill_null(mark),
            (pl.lit(" ") + pl.col("city").fill_null("") + "  ").alias("city"),
        )
    )


def _reorder(case: Rows, rng: np.random.Generator) -> Rows:
    names = list(rng.permutation(case.train.columns))
    extra = pl.lit("?").alias("remark")
    new = case.new.select(rng.permutation(case.new.columns)).with_columns(extra)
    return case.but(train=case.train.select(names), new=new, test=case.test.select(names[::-1]))


def _add_others(case: Rows, rng: np.random.Generator) -> Rows:
    others = case.train[:5].with_columns(
        (pl.lit("extra") + pl.col("case")).alias("case"), pl.lit("q9").alias("q"), pl.col("z") + 100
    )
    return case.but(new=_shuffle(pl.concat([case.new, others]), rng))


def _format(suffix: str) -> Callable[[Rows, np.random.Generator], Rows]:
    return lambda case, rng: case.but(suffix=suffix)


def _route(route: str) -> Callable[[Rows, np.random.Generator], Rows]:
    # blocks hold whole groups
    return lambda case, rng: case.but(train=case.train.sort("q", maintain_order=True), route=route)


def _exported(route: str) -> Callable[[Rows, np.random.Generator], tuple[Rows, Rows]]:
    """Without dates, which are not exported."""

    def change(case: Rows, rng: np.random.Generator) -> tuple[Rows, Rows]:
        case = case.everywhere(lambda frame: frame.drop("day"))
        return case, case.but(route=route)

    return change


_ALONE = {"no Python": "no such way of running it"}
_NO_BLOCKS = {**_ALONE, "no blocks": "needs the table in memory"}
RELATIONS = [
    Relation(
        "rows shuffled",
        "table",
        "the order of the rows does not matter",
        lambda case, rng: case.everywhere(lambda frame: _shuffle(frame, rng)),
        {"splits": _TIES, "coordinates": _COORDINATES, "folds": _FOLDS},
    ),
    Relation(
        "columns reordered",
        "table",
        "columns are found by name, whatever the order at fit and rank",
        _reorder,
        {
            "coordinates": "of equal descent the first coordinate is taken",
            "splits": "of equal gain the first column is taken",
        },
    ),
    Relation("ids renamed", "table", "ids are names", _rename_ids),
    Relation(
        "groups relabelled",
        "table",
        "groups are names, and their rows may be interleaved",
        _relabel_groups,
        {"splits": _TIES, "coordinates": _COORDINATES, "folds": _FOLDS},
    ),
    Relation(
        "labels renamed",
        "table",
        "the positive class is the one that was named, or obvious",
        _rename_labels,
        {"graded": "grades are numbers"},
    ),
    Relation(
        "weights as repetitions",
        "table",
        "a weight of 3 is three equal rows",
        _repeat,
        {"coordinates": _COORDINATES, "folds": _FOLDS},
        ("rows", "positives", "cut length"),
    ),
    Relation(
        "rows of weight 0",
        "table",
        "a row of weight 0 changes nothing, however odd",
        _add_weightless,
        {"folds": _FOLDS},
        ("rows", "positives"),
    ),
    Relation(
        "rows without a target",
        "table",
        "rows without a class are left out",
        _add_unlabelled,
        {
            "graded": "a missing grade is refused",
            "folds": _FOLDS,
            "no fit": "refused",
        },
    ),
    Relation(
        "useless columns",
        "table",
        "constants, row counters and ids are left out",
        _add_useless,
        {"graded": "a model of grades takes all columns that it is given", "no fit": "has no features"},
    ),
    Relation(
        "features in other units",
        "table",
        "scaled features have no unit",
        _scale_features,
        {
            "no fit": "has no features",
            "splits": "bins of equal counts may be cut elsewhere",
            "rounded": "points are per unit",
        },
    ),
    Relation(
        "a feature negated",
        "table",
        "a feature may count either way",
        _negate,
        {
            "no fit": "has no features",
            "knots": "knots are quantiles, and those of weighted rows are taken from below",
            "splits": "bins are closed on one side",
            "query scaling": "z becomes 1 − z, and all scores move",
            "rounded": "points change their sign",
        },
        ("coefficient z",),
    ),
    Relation(
        "gaps and text spelt otherwise",
        "table",
        "NA, ? and blanks are gaps, and spaces around text say nothing",
        _spell,
        {"no fit": "has no features"},
    ),
    Relation(
        "other rows beside them",
        "table",
        "the score of a row depends on no other row",
        _add_others,
        {
            "no fit": "does not rank",
            "cut": "a budget is one of all rows",
            "folds": "does not rank",
            "rounded": "does not rank",
        },
        ("ranks",),
    ),
    *(
        Relation(
            f"as {suffix}",
            "table",
            "the format of a file says nothing about the rows",
            _format(suffix),
            {
                "graded": "refused: columns of a model of grades are plain numbers",
                "no fit": "refused: scores are plain numbers",
            }
            if "commas" in suffix
            else {},
        )
        for suffix in WRITERS
        if suffix != ".csv"
    ),
    Relation("in Python", "table", "the command line is the library", _route("Python"), _ALONE),
    Relation(
        "from ONNX",
        "table",
        "an exported graph scores as rank does",
        _exported("onnx"),
        {**_ALONE, "query scaling": "a graph scores single rows", "no export": "forests are not exported"},
        ("ranks*",),
    ),
    Relation(
        "from SQL",
        "table",
        "an exported query scores as rank does",
        _exported("sql"),
        {
            **_ALONE,
            "query scaling": "a query scores single rows",
            "splits": "SQL is for linear and additive models",
        },
        ("ranks*",),
    ),
    Relation("in blocks", "table", "a folder of files is one table", _route("blocks"), _NO_BLOCKS),
    Relation(
        "in small blocks", "table", "blocks of 7 rows are one table", _route("small blocks"), _NO_BLOCKS
    ),
    Relation("on Dask", "table", "rows on workers are one table", _route("Dask"), _NO_BLOCKS, cost=400),
    Relation(
        "two threads",
        "table",
        "threads change nothing",
        lambda case, rng: (case.but(threads=1), case.but(threads=2)),
    ),
]
STRATEGIES = {"table": rows()}
