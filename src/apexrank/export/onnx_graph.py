"""ONNX graphs made by skl2onnx: one tensor for an array, one for each column of a frame or table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import onnx
import polars as pl
from onnx import TensorProto, helper
from scipy import sparse
from skl2onnx import convert_sklearn
from skl2onnx.common._registration import get_shape_calculator
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder

from apexrank.errors import InputError
from apexrank.export.features import NumberColumn
from apexrank.export.linear import as_table, check_linear, coefficients, first_fitted, last_step, linear_form
from apexrank.export.onnx_converters import TableForm, convert_imputer, convert_one_hot, one_hot_shapes
from apexrank.io.table_ranker import TableRanker
from apexrank.validation import is_missing

OUTPUTS = ("score", "label")
_TABLE_OPSET, _OLDEST_OPSET = 17, 13  # the former old enough for most runtimes
_TYPES = {
    TensorProto.FLOAT: FloatTensorType,
    TensorProto.DOUBLE: DoubleTensorType,
    TensorProto.STRING: StringTensorType,
}


def table_graph(model: TableRanker, X: Any, target_opset: int | None) -> onnx.ModelProto:
    """The graph of a table's ranker; columns that X has in single precision are floats."""
    opset = _TABLE_OPSET if target_opset is None else target_opset
    if opset < _OLDEST_OPSET:
        raise InputError(f"target_opset must be at least {_OLDEST_OPSET}, got {opset}")
    form = TableForm(linear_form(model), model.positive is not None)
    schema = {} if X is None else as_table(X).frame.schema
    inputs = []
    for column in form.columns:
        kind = TensorProto.FLOAT if schema.get(column.name) == pl.Float32 else TensorProto.DOUBLE
        inputs.append(Input(column.name, kind if isinstance(column, NumberColumn) else TensorProto.STRING))
    _check_names(one.name for one in inputs)
    types = [(f"column_{j}", _inner(one)([None, 1])) for j, one in enumerate(inputs)]
    return _with_columns(_convert(form, types, opset), inputs)


def model_graph(model: Any, X: Any, target_opset: int | None) -> onnx.ModelProto:
    """The graph of a ranker or pipeline."""
    coefficients(last_step(model))
    _refuse_own_steps(model)
    columns = _frame_inputs(model, X) if hasattr(X, "columns") else None
    types = _array_type(first_fitted(model), X) if columns is None else _inner_types(model, columns)
    graph = _convert(_without_passthrough(model), types, target_opset)
    return graph if columns is None else _with_columns(graph, columns)


def _convert(model: Any, types: list[tuple[str, Any]], target_opset: int | None) -> onnx.ModelProto:
    try:
        # Not registered: other models of other libraries keep skl2onnx's own converters.
        return convert_sklearn(
            model,
            name="apexrank",  # skl2onnx would draw one, and no two files would be equal
            initial_types=types,
            target_opset=target_opset,
            custom_conversion_functions={SimpleImputer: convert_imputer, OneHotEncoder: convert_one_hot},
            custom_shape_calculators={
                SimpleImputer: get_shape_calculator("SklearnSimpleImputer"),
                OneHotEncoder: one_hot_shapes,
            },
        )
    except InputError:
        raise
    except (
        RuntimeError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:  # what skl2onnx raises where it is lost
        raise InputError(f"the pipeline cannot be exported: {str(error).strip().splitlines()[0]}") from None


def _refuse_own_steps(model: Any) -> None:
    """Refuse steps of this library that have no graph, such as those that need groups."""
    for step in _inner_steps(model)[:-1]:
        if type(step).__module__.split(".")[0] == "apexrank":
            check_linear(step)


def _inner_steps(model: Any, outermost: bool = True) -> list[Any]:
    if isinstance(model, Pipeline):
        parts = [step for _, step in model.steps]
        if not outermost and any(step is None or isinstance(step, str) for step in parts):
            raise InputError("a passthrough step inside another step cannot be exported: leave it out")
    elif isinstance(model, ColumnTransformer):
        parts = [step for _, step, _ in model.transformers_]
        if any(isinstance(part, slice) and isinstance(part.stop, str) for _, _, part in model.transformers_):
            raise InputError("a ColumnTransformer of a slice of names cannot be exported: list the names")
    elif isinstance(model, FeatureUnion):
        parts = [step for _, step in model.transformer_list]
    else:
        return [model]
    return [inner for part in parts if isinstance(part, BaseEstimator) for inner in _inner_steps(part, False)]


class Input(NamedTuple):
    """A column of a frame, and what its tensor holds."""

    name: str
    kind: int


def _array_type(model: Any, X: Any) -> list[tuple[str, Any]]:
    """One tensor: doubles, or what X holds."""
    if _takes_names(model):
        raise InputError("the ColumnTransformer takes columns by their names: give some rows of a frame as X")
    width = model.n_features_in_
    if X is None:
        return [("X", DoubleTensorType([None, width]))]
    array: Any = X if sparse.issparse(X) else np.asarray(X)
    if array.ndim != 2 or array.shape[1] != width:
        raise InputError(f"X must be rows of {width} columns like those of fit, got the shape {array.shape}")
    kind = _kind("X", array.data[:0] if sparse.issparse(array) else array)
    return [("X", _TYPES[kind]([None, width]))]


def _takes_names(model: Any) -> bool:
    wanted = [columns for *_, columns in getattr(model, "transformers_", ())]
    lists = [[one] if isinstance(one, str) else one for one in wanted if isinstance(one, str | list)]
    return any(isinstance(name, str) for names in lists for name in names)


def _frame_inputs(model: Any, X: Any) -> list[Input]:
    """The columns that the model was fitted on, in its order, with the types that they have in X."""
    given = {str(name): name for name in X.columns}
    first = first_fitted(model)
    known = getattr(first, "feature_names_in_", None)
    names = list(given) if known is None else [str(name) for name in known]
    for name in names:
        if name not in given:
            raise InputError(f"X has no column {name!r}, which the model was fitted on: add it")
    for name in given:
        if name not in names:
            raise InputError(f"X has a column {name!r}, which the model was not fitted on: leave it out")
    if len(names) != first.n_features_in_:
        raise InputError(f"X must have {first.n_features_in_} columns like those of fit, got {len(names)}")
    _check_names(names)
    return [Input(name, _kind(name, np.asarray(X[given[name]]))) for name in names]


def _check_names(names: Iterable[str]) -> None:
    """Refuse what ONNX cannot name an input."""
    if "" in names:
        raise InputError("a column has an empty name, which ONNX cannot have: rename it")


def _input_names(names: Iterable[str]) -> dict[str, str]:
    """What each column is called in the graph: the outputs keep their names, a column of the same name gives way.

    Examples
    --------
    >>> _input_names(["amount", "score"])
    {'amount': 'amount', 'score': 'score_input'}
    """
    names = list(names)
    own: dict[str, str] = {name: name for name in names if name not in OUTPUTS}
    for name in set(names).intersection(OUTPUTS):
        free = f"{name}_input"
        while free in own.values():
            free += "_"
        own[name] = free
    return {name: own[name] for name in names}


def _kind(name: str, values: np.ndarray) -> int:
    if values.dtype.kind == "f":
        return TensorProto.FLOAT if values.itemsize <= 4 else TensorProto.DOUBLE
    # Counts go with measured numbers, and a column that is whole in a few rows need not be so in all.
    if values.dtype.kind in "iub" or _holds_numbers(values):
        return TensorProto.DOUBLE
    if values.dtype.kind in "OUT":
        return TensorProto.STRING
    raise InputError(f"{name!r} holds {values.dtype} values, which have no ONNX type: give numbers or text")


def _holds_numbers(values: np.ndarray) -> bool:
    """Whether objects are numbers and gaps, as in a nullable column."""
    if values.dtype.kind != "O":
        return False
    present = [value for value in values.ravel().tolist() if not is_missing(value)]
    return bool(present) and all(isinstance(value, int | float | np.number) for value in present)


def _inner_types(model: Any, inputs: list[Input]) -> list[tuple[str, Any]]:
    """What skl2onnx is told of a frame: one tensor where it will do, as most of its converters read only one."""
    texts = {one.kind == TensorProto.STRING for one in inputs}
    if _selects(model) or len(texts) == 2:
        return [(one.name, _inner(one)([None, 1])) for one in inputs]
    return [("X", _inner(inputs[0])([None, len(inputs)]))]


def _inner(one: Input) -> Any:
    return StringTensorType if one.kind == TensorProto.STRING else DoubleTensorType


def _selects(model: Any) -> bool:
    """Whether the first step takes columns by name or place."""
    first = first_fitted(model)
    if isinstance(first, FeatureUnion) and any(_selects(part) for _, part in first.transformer_list):
        raise InputError("a ColumnTransformer inside a FeatureUnion cannot be exported: put it outside")
    return isinstance(first, ColumnTransformer)


def _without_passthrough(model: Any) -> Any:
    """The pipeline without the steps that do nothing."""
    if not isinstance(model, Pipeline):
        return model
    return Pipeline(
        [(name, step) for name, step in model.steps if not (step is None or isinstance(step, str))]
    )


def _with_columns(proto: onnx.ModelProto, inputs: list[Input]) -> onnx.ModelProto:
    """Put one input for each column before a graph, cast to doubles and joined as the graph wants them."""
    graph, names = proto.graph, _input_names(one.name for one in inputs)
    inner = _set_apart(graph, names.values())
    ends, nodes = [], []
    for one in inputs:
        # The column's own name, for whoever has to fill in the input.
        ends.append(
            helper.make_tensor_value_info(names[one.name], one.kind, ["rows", 1], doc_string=one.name)
        )
    parts = inner if len(inner) == len(inputs) else [f"{inner[0]}_{j}" for j in range(len(inputs))]
    for one, part in zip(inputs, parts, strict=True):
        if one.kind == TensorProto.STRING:
            nodes.append(helper.make_node("Identity", [names[one.name]], [part]))
        else:
            nodes.append(helper.make_node("Cast", [names[one.name]], [part], to=TensorProto.DOUBLE))
    if len(inner) != len(inputs):
        nodes.append(helper.make_node("Concat", parts, inner, axis=1))
    nodes += list(graph.node)
    del graph.node[:], graph.input[:]
    graph.node.extend(nodes)
    graph.input.extend(ends)
    return proto


def _set_apart(graph: onnx.GraphProto, taken: Iterable[str]) -> list[str]:
    """Rename everything inside so that no name is that of a column; gives the inputs' new names."""
    prefix, outputs = "model_", {one.name for one in graph.output}
    while any(name.startswith(prefix) for name in taken):
        prefix = f"_{prefix}"

    def renamed(name: str) -> str:
        return name if not name or name in outputs else prefix + name

    for node in graph.node:
        node.input[:] = [renamed(name) for name in node.input]
        node.output[:] = [renamed(name) for name in node.output]
    for one in (*graph.initializer, *graph.value_info):
        one.name = renamed(one.name)
    return [renamed(one.name) for one in graph.input]
