"""L-BFGS, Newton and the automatic choice on easy and on stiff problems."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from apexrank.objectives import Push
from apexrank.prices import Power
from apexrank.problem import Problem
from apexrank.solvers import LBFGS, Auto, Newton
from benchmarks.push_linear import make_data
from benchmarks.timing import report, seconds


def problems() -> dict[str, Problem]:
    X, y = load_breast_cancer(return_X_y=True)
    wdbc = {f"wdbc x 6, p = {p}": (X[:, :6], y == 0, p, 1e-6) for p in (1, 16)}
    wdbc |= {f"wdbc x 30 (separable), p = {p}": (scale(X), y == 0, p, 1e-6) for p in (1, 16, 64)}
    big = {
        f"{n:,} x {d}, p = 4": (*make_data(n, d), 4, 1e-6)
        for n, d in ((30_000, 20), (100_000, 64), (300_000, 200))
    }
    return {
        name: Problem(X, Push(positive, price=Power(p)), alpha)
        for name, (X, positive, p, alpha) in (wdbc | big).items()
    }


def main() -> None:
    rows = []
    for name, problem in problems().items():
        start, row = np.zeros(problem.n_features), {"problem": name}
        for solver in (LBFGS(), Newton(), Auto()):
            solution = solver.solve(problem, start)
            label = type(solver).__name__
            row[f"{label} (s)"] = seconds(lambda s=solver, p=problem, w=start: s.solve(p, w), repeats=2)
            row[f"{label} steps"] = f"{solution.n_iter}{'' if solution.converged else ' (not converged)'}"
        rows.append(row)
    report("solvers", "Solvers, tol = 1e-6, at most 1000 iterations", rows)


if __name__ == "__main__":
    main()
