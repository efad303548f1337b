"""Lovász–Bregman divergences (Iyer and Bilmes 2013)."""
