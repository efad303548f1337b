"""Graphs under attack (Acharyya 2013, chapter 6)."""
