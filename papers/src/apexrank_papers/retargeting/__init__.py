"""Monotone retargeting (Acharyya 2013, chapter 3)."""
