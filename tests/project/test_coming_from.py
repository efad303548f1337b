"""Guides and pages for users of other packages: names exist, and statements about other packages hold."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import apexrank
import apexrank_papers as papers
from apexrank import datasets, metrics
from apexrank.metrics.evaluation import find_measure

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted([*(DOCS / "guide").glob("*.md"), *(DOCS / "coming-from").glob("*.md")])
OF_QUERIES = re.compile(r"`((?:ndcg|ndcg_linear|precision|map|mrr|recall|precision_at|recall_at)[@_]\d+)`")


def page_id(path):
    return f"{path.parent.name}-{path.stem}"


def blocks(page):
    """Code of the other package on a page: the blocks of plain Python."""
    text = (DOCS / "coming-from" / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)


def queries():
    """Names that the first block of a page uses."""
    train, test = (datasets.make_letor_example(60, random_state=seed) for seed in (0, 1))
    return {"np": np, "X": train.data, "y": train.target, "ids": train.groups, "X_test": test.data}, test


def two_classes():
    X, y = datasets.make_push_example(2000, return_X_y=True)
    return {"np": np, "X": X[:1000], "y": y[:1000], "X_test": X[1000:]}, y[1000:]


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_experiments_and_attributes_that_are_named_exist(path):
    text = path.read_text(encoding="utf-8").replace("report.html", "")  # a file, no name
    for names in re.findall(r"`apexrank reproduce ([\w-]+)`((?:, `[\w-]+`)*)", text):
        for name in [names[0], *re.findall(r"[\w-]+", names[1])]:
            assert name in papers.names(), name
    modules = "|".join(name for name in dir(apexrank) if inspect.ismodule(getattr(apexrank, name)))
    for module, name in re.findall(rf"`(?:apexrank\.)?({modules})\.(\w+)", text):
        assert hasattr(getattr(apexrank, module), name) or _is_module(module, name), f"{module}.{name}"


def _is_module(package, name):
    return (Path(apexrank.__file__).parent / package / f"{name}.py").exists()


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_measures_that_are_named_exist(path):
    for name in OF_QUERIES.findall(path.read_text(encoding="utf-8")):
        assert find_measure(name).label


def test_there_is_something_to_look_at():
    text = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    assert len(PAGES) >= 10
    assert len(OF_QUERIES.findall(text)) > 5
    assert len(re.findall(r"`apexrank reproduce ", text)) > 10


@pytest.mark.slow
@pytest.mark.parametrize("package", ["lightgbm", "xgboost"])
@pytest.mark.filterwarnings("ignore")  # theirs
def test_their_code_on_the_page_runs(package):
    peer = pytest.importorskip(package, reason=f"{package} is not installed")
    for block, (names, truth) in zip(blocks(package), (queries(), two_classes()), strict=True):
        names[package] = peer
        exec(block, names)
        if "ids" in names:
            assert metrics.ndcg(truth.target, names["scores"], groups=truth.groups) > 0.7
        else:
            assert metrics.auc(truth, names["scores"]) > 0.95


@pytest.mark.parametrize(("package", "block"), [("optbinning", 0), ("scorecardpy", 1)])
@pytest.mark.filterwarnings("ignore")
def test_their_scorecards_on_the_page_run(package, block):
    pytest.importorskip(package, reason=f"{package} is not installed")
    data = load_breast_cancer(as_frame=True)
    X, y = data.data[["mean radius", "mean texture", "mean smoothness"]], (data.target == 0).astype(int)
    names = {"X": X[::2], "y": y[::2], "X_test": X[1::2]}
    exec(blocks("scorecards")[block], names)
    assert metrics.auc(y[1::2], names["scores"]) > 0.9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_what_is_said_of_lightgbm():
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    rng = np.random.default_rng(0)
    X, grades = rng.normal(size=(10_001, 2)), rng.integers(0, 2, 10_001)

    def fit(rows, y):
        return lightgbm.LGBMRanker(n_estimators=1, verbose=-1).fit(X[:rows], y[:rows], group=[rows])

    fit(10_000, grades)
    with pytest.raises(lightgbm.basic.LightGBMError, match="10000"):
        fit(10_001, grades)
    fit(100, np.arange(10_001) % 31)
    with pytest.raises(lightgbm.basic.LightGBMError, match="31"):
        fit(100, np.arange(10_001) % 32)

    # all scores are tied, as no leaf may be split; the second query has no relevant document
    y, sizes = [0, 1, 2, 0, 0], [3, 2]
    rows, found = lightgbm.Dataset(np.ones((5, 1)), y, group=sizes), {}
    options = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [5], "verbosity": -1}
    lightgbm.train(options, rows, 1, valid_sets=[rows], callbacks=[lightgbm.record_evaluation(found)])
    ids = np.repeat(["a", "b"], sizes)
    same = {"groups": ids, "empty": "one", "ties": "given"}
    assert found["training"]["ndcg@5"][0] == pytest.approx(metrics.ndcg(y, np.zeros(5), k=5, **same))


@pytest.mark.filterwarnings("ignore")
def test_what_is_said_of_xgboost():
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    X, y, ids = np.ones((4, 1)), np.array([1, 0, 0, 0]), np.array([0, 0, 1, 1])
    rows = xgboost.DMatrix(X, y, qid=ids)

    def measured(name, rows=rows):
        booster = xgboost.train({"objective": "rank:ndcg", "eval_metric": name}, rows, 1)
        return float(booster.eval(rows).rpartition(":")[2])

    same = {"groups": ids, "ties": "given"}
    assert measured("ndcg@2") == pytest.approx(metrics.ndcg(y, np.zeros(4), k=2, empty="one", **same))
    assert measured("ndcg@2-") == pytest.approx(metrics.ndcg(y, np.zeros(4), k=2, empty="zero", **same))
    one = xgboost.DMatrix(X, [1, 0, 1, 1], qid=[0] * 4)
    assert measured("map@2", one) == pytest.approx(
        1.5 * metrics.average_precision([1, 0, 1, 1], [4, 3, 2, 1], k=2)
    )
    with pytest.raises(xgboost.core.XGBoostError, match="sorted"):
        xgboost.XGBRanker(n_estimators=1).fit(X, y, qid=[1, 0, 1, 0])
