"""Gains and Lovász–Bregman divergences by definition, with one evaluation of the set function per set."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np


def h_of(value: Callable[[set[int]], float], order: Sequence[int] | np.ndarray) -> np.ndarray:
    """``h_σ`` by item: the amount by which each item increases the value of those before it."""
    values = [float(value(set(order[:j]))) for j in range(len(order) + 1)]
    h = np.empty(len(order))
    h[list(order)] = np.diff(values)
    return h


def order_of(x: Sequence[float] | np.ndarray) -> list[int]:
    """``σ_x``: items from best to worst, ties in index order."""
    return sorted(range(len(x)), key=lambda item: (-x[item], item))


def divergence_of(
    value: Callable[[set[int]], float],
    x: Sequence[float] | np.ndarray,
    order: Sequence[int] | np.ndarray,
) -> float:
    """``d(x‖σ) = <x, h_{σ_x} − h_σ>``."""
    return float(np.dot(x, h_of(value, order_of(x)) - h_of(value, order)))
