"""Inputs of a pipeline's graph: one tensor for an array, one for each column of a frame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper
from scipy import sparse
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from apexrank.errors import InputError
from apexrank.export.features import is_missing
from apexrank.export.linear import first_fitted

OUTPUTS = ("score", "label")
_TYPES = {
    TensorProto.FLOAT: FloatTensorType,
    TensorProto.DOUBLE: DoubleTensorType,
    TensorProto.STRING: StringTensorType,
}


class Input(NamedTuple):
    """A column of a frame, and what its tensor holds."""

    name: str
    kind: int


def array_type(model: Any, X: Any) -> list[tuple[str, Any]]:
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


def frame_inputs(model: Any, X: Any) -> list[Input]:
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
    check_names(names)
    return [Input(name, _kind(name, np.asarray(X[given[name]]))) for name in names]


def check_names(names: Iterable[str]) -> None:
    """Refuse what ONNX cannot name an input."""
    if "" in names:
        raise InputError("a column has an empty name, which ONNX cannot have: rename it")


def input_names(names: Iterable[str]) -> dict[str, str]:
    """What each column is called in the graph: the outputs keep their names, a column of the same name gives way.

    Examples
    --------
    >>> input_names(["amount", "score"])
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


def inner_types(model: Any, inputs: list[Input]) -> list[tuple[str, Any]]:
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


def without_passthrough(model: Any) -> Any:
    """The pipeline without the steps that do nothing."""
    if not isinstance(model, Pipeline):
        return model
    return Pipeline(
        [(name, step) for name, step in model.steps if not (step is None or isinstance(step, str))]
    )


def with_columns(proto: onnx.ModelProto, inputs: list[Input]) -> onnx.ModelProto:
    """Put one input for each column before a graph, cast to doubles and joined as the graph wants them."""
    graph, names = proto.graph, input_names(one.name for one in inputs)
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
