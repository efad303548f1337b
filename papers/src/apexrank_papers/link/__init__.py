"""Regression with an unknown link (Acharyya 2013, chapter 4)."""
