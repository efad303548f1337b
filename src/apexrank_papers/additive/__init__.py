"""Additive rankers beside boosted trees on public tables; a study of ours, with no paper behind it."""
