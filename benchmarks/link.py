"""The unknown link: how fits and the Lipschitz isotonic regression grow, and one value and gradient beside one sort."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from apexrank.kernels.lipschitz import lipschitz_isotonic
from apexrank.objectives.link import UnknownLink
from apexrank.rankers.link import UnknownLinkRegressor
from benchmarks.timing import report, seconds

SIZES = (10_000, 100_000, 1_000_000)
FEATURES = 20
STEEPEST = 1.15  # exponent of a fit


def exponent(times: list[float]) -> float:
    """Slope of log time against log rows."""
    return float(np.polyfit(np.log(SIZES), np.log(times), 1)[0])


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, their index and noisy values of a logistic link of it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((max(SIZES), FEATURES))
    u = rng.standard_normal(FEATURES)
    theta = X @ (u / np.linalg.norm(u))
    return X, theta, 1 / (1 + np.exp(-3 * theta)) + 0.05 * rng.standard_normal(len(X))


def fits(X: np.ndarray, y: np.ndarray) -> dict:
    times, steps = [], []
    for n in SIZES:
        model = UnknownLinkRegressor()
        times.append(seconds(lambda n=n, model=model: model.fit(X[:n], y[:n]), repeats=3))
        steps.append(str(model.n_iter_))
    return _row(f"UnknownLinkRegressor.fit, {FEATURES} features ({', '.join(steps)} steps)", times, STEEPEST)


def regressions(theta: np.ndarray, y: np.ndarray) -> list[dict]:
    """One per point: the exact regression with bounded steps, without, and SciPy's isotonic regression."""
    works = {
        "lipschitz_isotonic, slope ≤ 0.5": lambda values, gaps: lipschitz_isotonic(values, 0.0, 0.5 * gaps),
        "lipschitz_isotonic, any slope": lambda values, gaps: lipschitz_isotonic(values, 0.0, np.inf),
        "SciPy isotonic_regression": lambda values, gaps: isotonic_regression(values).x,
    }
    times: dict[str, list[float]] = {name: [] for name in works}
    for n in SIZES:
        order = np.argsort(theta[:n])
        values, gaps = y[:n][order], np.diff(theta[:n][order])
        error = np.abs(lipschitz_isotonic(values, 0.0, np.inf) - isotonic_regression(values).x).max()
        print(f"{n:,} points: largest difference to SciPy without a slope {error:.0e}")
        for name, work in works.items():
            times[name].append(seconds(lambda w=work, v=values, g=gaps: w(v, g), repeats=3))
    return [_row(name, measured) for name, measured in times.items()]


def evaluations(theta: np.ndarray, y: np.ndarray) -> list[dict]:
    """Value and gradient of the cost at the scores of a fit, beside one sort of them."""
    ours, sort = [], []
    for n in SIZES:
        cost, scores = UnknownLink(y[:n], normalize=True), 0.5 * theta[:n]
        ours.append(seconds(lambda cost=cost, scores=scores: cost.value_and_grad(scores)))
        sort.append(seconds(lambda scores=scores: np.argsort(scores)))
    ratios = ", ".join(f"{a / b:.1f}" for a, b in zip(ours, sort, strict=True))
    what = f"UnknownLink, value and gradient ({ratios} sorts)"
    return [_row(what, ours), _row("np.argsort", sort)]


def _row(what: str, times: list[float], limit: float | str = "") -> dict:
    columns = {f"{n:,} rows (s)": t for n, t in zip(SIZES, times, strict=True)}
    return {"what": what, **columns, "exponent": exponent(times), "limit": limit}


def main() -> None:
    X, theta, y = data()
    report("link", "Unknown link", [fits(X, y), *regressions(theta, y), *evaluations(theta, y)])


if __name__ == "__main__":
    main()
