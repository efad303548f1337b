"""Consensus on uncertain graphs (Acharyya 2013, chapter 5)."""
