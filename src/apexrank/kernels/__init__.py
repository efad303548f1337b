"""Numba kernels on plain arrays."""
