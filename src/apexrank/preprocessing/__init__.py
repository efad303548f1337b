"""Transformers for ranking: scaling of features within queries, and ramp features for additive scores."""

from typing import TYPE_CHECKING

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank.preprocessing.query import QueryNormalizer as QueryNormalizer
    from apexrank.preprocessing.ramps import RampEncoder as RampEncoder
else:
    __getattr__, __dir__, __all__ = attach(__name__)
