"""Rankers as ONNX graphs: converters for skl2onnx, and :func:`to_onnx`, which writes any of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline

from apexrank.errors import InputError, MissingExtraError
from apexrank.export.linear import check_linear, coefficients, found, last_step
from apexrank.io.atomic import check_writable, write_bytes
from apexrank.io.ranker import TableRanker

if TYPE_CHECKING:
    import onnx

_RANKERS = (
    "PNormPush",
    "PNormPushCV",
    "IRPush",
    "RankBoost",
    "CrucialPairsPush",
    "ListwiseRanker",
    "MonotoneRetargeting",
)


def to_onnx(
    model: Any, X: Any = None, *, path: str | Path | None = None, target_opset: int | None = None
) -> onnx.ModelProto:
    """Convert a linear ranker, a pipeline that ends in one, or a model file's ranker to an ONNX graph.

    The output ``score`` is the ranking score of each row, ``label`` the predicted class where the ranker has two.
    Scores are doubles and agree with the ranker's to about 1e-12 of their scale. Where a pipeline gets input in single
    precision its steps round to that, and scores agree to about 1e-6.

    Parameters
    ----------
    model : fitted ranker, Pipeline or TableRanker
        In a pipeline any step that skl2onnx can convert.
    X : array or frame, optional
        Some rows, for the types of the input: one tensor for an array, one input ``(rows, 1)`` for each column of a
        frame. By default one tensor of doubles; for a TableRanker always one input for each column.
    path : str or Path, optional
        File to write as well, whole or not at all.
    target_opset : int, optional
        Version of the ONNX operators.

    Returns
    -------
    onnx.ModelProto

    Notes
    -----
    A missing number is NaN, a missing string is empty. Of a TableRanker the inputs are doubles (floats where X has a
    column of type Float32) and, for categories, strings, with no blanks around them. Where it would refuse a row, the
    score is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from apexrank import PNormPush
    >>> X, y = np.array([[0.0], [1.0], [2.0], [1.5]]), [0, 0, 1, 0]
    >>> graph = to_onnx(PNormPush(p=2, alpha=0.1).fit(X, y), X)
    >>> [output.name for output in graph.graph.output]
    ['label', 'score']
    """
    _import_onnx()
    if path is not None:
        check_writable(path)
    model = found(model)
    if isinstance(model, TableRanker):
        from apexrank.export.onnx_table import table_graph

        graph = table_graph(model, X, target_opset)
    else:
        graph = _convert(model, X, target_opset)
    if path is not None:
        write_bytes(path, graph.SerializeToString())
    return graph


def register_onnx() -> None:
    """Tell skl2onnx how to convert the linear rankers, so that ``skl2onnx.to_onnx`` takes them; may be repeated.

    Examples
    --------
    >>> register_onnx()
    >>> from skl2onnx import to_onnx
    >>> from apexrank import IRPush
    >>> X, y = np.array([[0.0], [1.0], [2.0], [1.5]]), [0, 0, 1, 1]
    >>> graph = to_onnx(IRPush().fit(X, y), X)
    >>> graph.graph.input[0].type.tensor_type.elem_type  # double
    11
    """
    skl2onnx = _import_onnx()
    from apexrank import rankers
    from apexrank.export.onnx_converters import convert_ranker, parse_ranker, ranker_shapes

    for name in _RANKERS:
        ranker: Any = getattr(rankers, name)
        skl2onnx.update_registered_converter(
            ranker, f"Apexrank{name}", ranker_shapes, convert_ranker, parser=parse_ranker, overwrite=True
        )


def _import_onnx() -> Any:
    """The package skl2onnx, or an error that says how to install it."""
    try:
        import skl2onnx
    except ImportError as error:
        raise MissingExtraError('ONNX needs onnx and skl2onnx: pip install "apexrank[export]"') from error
    return skl2onnx


def _convert(model: Any, X: Any, target_opset: int | None) -> Any:
    from skl2onnx import convert_sklearn
    from skl2onnx.common._registration import get_shape_calculator

    from apexrank.export.onnx_converters import convert_imputer

    coefficients(last_step(model))
    _refuse_own_steps(model)
    register_onnx()
    try:
        # Not registered: other models of other libraries keep skl2onnx's own converter.
        return convert_sklearn(
            model,
            initial_types=_input_types(model, X),
            target_opset=target_opset,
            custom_conversion_functions={SimpleImputer: convert_imputer},
            custom_shape_calculators={SimpleImputer: get_shape_calculator("SklearnSimpleImputer")},
        )
    except RuntimeError as error:  # what skl2onnx raises where it has no converter
        raise InputError(f"the pipeline cannot be exported: {str(error).strip().splitlines()[0]}") from None


def _refuse_own_steps(model: Any) -> None:
    """Refuse steps of this library that have no graph, such as those that need groups."""
    for step in _inner_steps(model)[:-1]:
        if type(step).__module__.split(".")[0] == "apexrank":
            check_linear(step)


def _inner_steps(model: Any) -> list[Any]:
    if isinstance(model, Pipeline):
        parts = [step for _, step in model.steps]
    elif isinstance(model, ColumnTransformer):
        parts = [step for _, step, _ in model.transformers_]
    elif isinstance(model, FeatureUnion):
        parts = [step for _, step in model.transformer_list]
    else:
        return [model]
    return [inner for part in parts if isinstance(part, BaseEstimator) for inner in _inner_steps(part)]


def _input_types(model: Any, X: Any) -> list[tuple[str, Any]]:
    """Names and types of the inputs: one tensor, or one for each column of a frame."""
    from skl2onnx.common.data_types import DoubleTensorType

    if X is None:
        return [("X", DoubleTensorType([None, model.n_features_in_]))]
    if hasattr(X, "columns"):
        return [(str(name), _column_type(str(name), np.asarray(X[name]))) for name in X.columns]
    array = np.asarray(X)
    if array.ndim != 2 or array.shape[1] != model.n_features_in_:
        raise InputError(
            f"X must be rows of {model.n_features_in_} columns like those of fit, got the shape {array.shape}"
        )
    return [("X", _column_type("X", array, array.shape[1]))]


def _column_type(name: str, values: np.ndarray, width: int = 1) -> Any:
    from skl2onnx.common import data_types

    types = {
        "f": data_types.FloatTensorType if values.itemsize <= 4 else data_types.DoubleTensorType,
        # Counts go with measured numbers, and a column that is whole in a few rows need not be so in all.
        "iub": data_types.DoubleTensorType,
        "OUT": data_types.StringTensorType,
    }
    for kinds, make in types.items():
        if values.dtype.kind in kinds:
            return make([None, width])
    raise InputError(f"{name!r} holds {values.dtype} values, which have no ONNX type: give numbers or text")
