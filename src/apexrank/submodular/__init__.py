"""Submodular set functions, each defined by its gains along an order (Iyer and Bilmes 2013).

``"sqrt"`` and ``Sqrt()`` are equivalent: :func:`set_function` creates an atom from a name.
"""

from typing import TYPE_CHECKING

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank.submodular.base import Combination as Combination
    from apexrank.submodular.base import Custom as Custom
    from apexrank.submodular.base import Modular as Modular
    from apexrank.submodular.base import SetFunction as SetFunction
    from apexrank.submodular.base import check_orders as check_orders
    from apexrank.submodular.base import check_scores as check_scores
    from apexrank.submodular.base import orders_of as orders_of
    from apexrank.submodular.functions import SET_FUNCTIONS as SET_FUNCTIONS
    from apexrank.submodular.functions import BySize as BySize
    from apexrank.submodular.functions import Cardinality as Cardinality
    from apexrank.submodular.functions import Chain as Chain
    from apexrank.submodular.functions import Cut as Cut
    from apexrank.submodular.functions import Indicator as Indicator
    from apexrank.submodular.functions import Log as Log
    from apexrank.submodular.functions import Product as Product
    from apexrank.submodular.functions import Sqrt as Sqrt
    from apexrank.submodular.functions import Top as Top
    from apexrank.submodular.functions import is_by_size as is_by_size
    from apexrank.submodular.functions import set_function as set_function
    from apexrank.submodular.prox import prox_extension as prox_extension
else:
    __getattr__, __dir__, __all__ = attach(__name__)
