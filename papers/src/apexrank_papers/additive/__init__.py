"""Comparison of additive rankers with boosted trees on public tables; our own study, not from a paper."""
