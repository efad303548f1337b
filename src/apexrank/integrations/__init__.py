"""Adapters for other packages; each module imports only its own dependency.

:mod:`.boosting` has objectives and metrics for LightGBM and XGBoost, :mod:`.torch` losses for PyTorch, and
:mod:`.networkx` the backend of ``nx.pagerank``.
"""
