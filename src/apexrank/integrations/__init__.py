"""Adapters for other packages; each module imports only its own.

:mod:`.boosting` has the objectives and measures for LightGBM and XGBoost, :mod:`.torch` the losses for PyTorch,
:mod:`.networkx` the backend of ``nx.pagerank``.
"""
