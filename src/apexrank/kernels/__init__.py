"""Numba functions on plain arrays."""
