"""Ranking inside other packages, each of which is imported only by its own module.

:mod:`.boosting` has the objectives and measures for LightGBM and XGBoost, :mod:`.torch` the losses for PyTorch,
:mod:`.networkx` the backend of ``nx.pagerank``.
"""
