import pytest


@pytest.fixture(autouse=True)
def _data_from_packages(monkeypatch):
    """Experiments must give the same numbers whether or not the larger data sets are available."""
    monkeypatch.delenv("APEXRANK_DATA", raising=False)
