"""Benchmarks: peers side by side in one run, printed as ratios, written as JSON."""
