"""Pictures of rankings, after scikit-learn's Display objects; they need ``pip install "apexrank[plot]"``."""

from apexrank.plot.roc import RocTopDisplay

__all__ = ["RocTopDisplay"]
