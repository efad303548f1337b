"""Strengths of the terms of a model from its marginal likelihood.

Each term t of the scores has a ridge ``λ_t/2·|β_t|²``, the log density of a normal prior. The updates of Fellner and
Schall (Wood & Fasiolo 2017) raise the Laplace approximation of the likelihood with the coefficients integrated out:

    ``λ_t ← (r_t − λ_t·tr V_tt) / |β_t|²``,  ``V = (H + Λ)⁻¹``,

with H the Hessian of the negative log-likelihood at the minimum for the present strengths, and r_t the number of
coefficients of the term. The numerator is the term's effective degrees of freedom. No cross-validation is needed.

Coefficients are in units of the standard deviation ``1/√λ_t`` of their prior, so that Λ is the identity.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import linalg

from apexrank.objectives.log_loss import LogLoss
from apexrank.problem.design import Design

WEAKEST, STRONGEST = 1e-3, 1e6
LARGEST_STEP = 3.0  # of the logarithm of a strength
SETTLED = 0.1  # change of the logarithms at which the strengths count as found
SLACK = 0.1  # rise of the criterion that is accepted: the updates ignore that H depends on the coefficients
UPDATES = 100
NEWTON_STEPS = 20


class Hessian(NamedTuple):
    """Hessian H of the log loss, or rows R with ``H = R'·R`` if these are fewer than the coefficients."""

    matrix: np.ndarray
    in_rows: bool

    @classmethod
    def at(cls, design: Design, objective: LogLoss, scores: np.ndarray) -> Hessian:
        """Compute it at given scores."""
        weight = objective.hessian(scores)[0][1]
        mean = design.pull_back(weight) / max(weight.sum(), np.finfo(float).tiny)
        if design.n_rows < design.n_features:
            rows = design.take(np.arange(design.n_rows)) - mean
            return cls(np.sqrt(weight)[:, None] * rows, True)
        return cls(design.curvature(mean, weight, weight[:, None])[0], False)


class Curvature:
    """``H + 1`` in units of the prior, for the coefficients that are free, by a Cholesky factor.

    ``half`` is a square root of its inverse V: ``V = half'·half``, or ``1 − half'·half`` in rows.
    """

    def __init__(self, hessian: Hessian, unit: np.ndarray, free: np.ndarray) -> None:
        self.free, self.rows = free, None
        some = slice(None) if free.all() else free
        if hessian.in_rows:
            self.rows = hessian.matrix[:, some] * unit[some]
            matrix = self.rows @ self.rows.T
        else:
            matrix = hessian.matrix[some][:, some] * unit[some] * unit[some, None]
        matrix[np.diag_indices(len(matrix))] += 1.0
        self.factor = linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
        self.log_det = 2 * float(np.log(np.diag(self.factor)).sum())

    def solve(self, g: np.ndarray) -> np.ndarray:
        """``V·g``; 0 for coefficients that are not free."""
        found = np.zeros(len(g))
        if self.rows is None:
            found[self.free] = linalg.cho_solve((self.factor, True), g[self.free], check_finite=False)
        else:
            g = g[self.free]
            found[self.free] = g - self.rows.T @ linalg.cho_solve((self.factor, True), self.rows @ g)
        return found

    @cached_property
    def half(self) -> np.ndarray:
        found = np.zeros((len(self.factor), len(self.free)))
        if not found.size:  # LAPACK would print an error
            return found
        if self.rows is None:
            found[:, self.free] = linalg.lapack.dtrtri(self.factor, lower=True)[0]
        else:
            found[:, self.free] = linalg.solve_triangular(self.factor, self.rows, lower=True)
        return found

    def edf(self) -> np.ndarray:
        """``1 − V_ii`` for each coefficient; 0 if it is not free."""
        squares = np.einsum("ij,ij->j", self.half, self.half)
        return np.where(self.free, 1 - squares, 0.0) if self.rows is None else squares

    def covariance(self, some: np.ndarray) -> np.ndarray:
        """Block of V."""
        half = self.half[:, some]
        product = half.T @ half
        return product if self.rows is None else np.diag(self.free[some] * 1.0) - product


class Strengths(NamedTuple):
    """Strength of each term, coefficients ``v = √λ·β``, effective degrees of freedom of each, H, and ``H + 1``.

    ``criterion`` is the negative log of the marginal likelihood, up to a constant.
    """

    strength: np.ndarray
    v: np.ndarray
    edf: np.ndarray
    criterion: float
    hessian: Hessian
    curvature: Curvature


def find_strengths(
    design: Design,
    objective: LogLoss,
    terms: np.ndarray,
    strength: np.ndarray,
    w: np.ndarray,
    signs: np.ndarray | None = None,
    settled: float = SETTLED,
) -> Strengths:
    """Find the strengths of the terms that the columns of a design belong to, starting from ``strength`` and ``w``.

    ``signs`` constrains coefficients to be non-negative (1) or non-positive (−1). One that is held at 0 does not count
    in the degrees of freedom.
    """
    n, signs = len(strength), np.zeros(len(w)) if signs is None else signs

    def at(strength: np.ndarray, v: np.ndarray, hessian: Hessian | None = None) -> Strengths:
        return at_strength(design, objective, terms, strength, v, signs, settled, hessian)

    best = at(strength, w * np.sqrt(strength)[terms])
    pace, before = np.ones(n), np.zeros(n)
    for _ in range(UPDATES):
        size, edf = np.bincount(terms, best.v**2, n), np.bincount(terms, best.edf, n)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = _bounded(best.strength, np.nan_to_num(np.log(edf / size), posinf=LARGEST_STEP))
        # a strength on its way to infinity matters less and less
        if not ((np.abs(size - edf) * np.abs(step) > 0.2 * settled**2) & (np.abs(step) > settled)).any():
            break
        # secant steps, one strength at a time: those on their way to infinity take almost equal steps
        with np.errstate(divide="ignore", invalid="ignore"):
            secant = pace / (1 - step / before)
        pace = np.where(before == 0, pace, np.where(secant >= 0, np.clip(secant, 0.5, 2 * pace), 2 * pace))
        for share in (1.0, 0.5, 0.25, 0.125):
            moved = _bounded(best.strength, share * pace * step)
            v = best.v * np.exp(moved / 2)[terms]
            found = at(best.strength * np.exp(moved), v, best.hessian)
            if found.criterion <= best.criterion + SLACK:
                break
        pace, before, best = share * pace, step, found
    return best


def _bounded(strength: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Step of the logarithm of each strength within the limits."""
    now, step = np.log(strength), np.clip(step, -LARGEST_STEP, LARGEST_STEP)
    return np.clip(now + step, np.log(WEAKEST), np.log(STRONGEST)) - now


def at_strength(
    design: Design,
    objective: LogLoss,
    terms: np.ndarray,
    strength: np.ndarray,
    v: np.ndarray,
    signs: np.ndarray,
    settled: float,
    hessian: Hessian | None = None,
) -> Strengths:
    """Minimise at given strengths by Newton's method, projected onto the signs, from ``v``, whose H may be known."""
    unit = 1 / np.sqrt(strength)[terms]
    low, high = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)

    def evaluate(v: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        scores = design.scores(unit * v)
        value, slope = objective.value_and_grad(scores)
        return scores, value + 0.5 * float(v @ v), unit * design.pull_back(slope) + v

    v = np.clip(v, low, high)
    scores, value, grad = evaluate(v)
    for _ in range(NEWTON_STEPS):
        free = (signs == 0) | (v != 0) | (signs * grad < 0)
        hessian = Hessian.at(design, objective, scores) if hessian is None else hessian
        curvature = Curvature(hessian, unit, free)
        step = curvature.solve(-grad)
        gain = -float(grad @ step)
        if gain <= max(settled**2, 1e-13 * abs(value)):
            break
        for length in 0.5 ** np.arange(40):
            trial = np.clip(v + length * step, low, high)
            ahead = evaluate(trial)
            if ahead[1] <= value + 1e-4 * float(grad @ (trial - v)):
                break
        v, (scores, value, grad), hessian = trial, ahead, None
    hessian = Hessian.at(design, objective, scores) if hessian is None else hessian
    return Strengths(strength, v, curvature.edf(), value + 0.5 * curvature.log_det, hessian, curvature)
