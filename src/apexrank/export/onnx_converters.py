"""What skl2onnx has to know: the linear rankers, and imputers of doubles and strings."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto
from skl2onnx._supported_operators import sklearn_operator_name_map
from skl2onnx.common.data_types import (
    DoubleTensorType,
    Int64TensorType,
    StringTensorType,
)
from skl2onnx.operator_converters.common import concatenate_variables

from apexrank.export.linear import coefficients
from apexrank.export.steps import refusal


class _Writer:
    """Adds nodes and constants of unused names to a graph."""

    def __init__(self, scope: Any, container: Any) -> None:
        self.scope, self.container = scope, container

    def node(self, kind: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        output = output or self.scope.get_unique_variable_name(kind.lower())
        name = self.scope.get_unique_operator_name(kind)
        self.container.add_node(kind, inputs, [output], name=name, **attributes)
        return output

    def constant(self, name: str, kind: int, values: Any, shape: list[int] | None = None) -> str:
        unique = self.scope.get_unique_variable_name(name)
        self.container.add_initializer(unique, kind, shape or [len(values)], list(values))
        return unique


def parse_ranker(scope: Any, model: Any, inputs: list[Any], custom_parsers: Any = None) -> Any:
    """Declare the outputs: a label where there are two classes, and the score."""
    operator = scope.declare_local_operator(sklearn_operator_name_map[type(model)], model)
    operator.inputs = list(inputs)
    if hasattr(model, "classes_"):
        operator.outputs.append(scope.declare_local_variable("label", _label_type(model.classes_)))
    operator.outputs.append(scope.declare_local_variable("score", DoubleTensorType([None])))
    return operator.outputs


def _label_type(classes: np.ndarray) -> Any:
    return StringTensorType([None]) if classes.dtype.kind in "OUST" else Int64TensorType([None])


def ranker_shapes(operator: Any) -> None:
    """One number a row."""
    for output in operator.outputs:
        output.type.shape = [operator.inputs[0].get_first_dimension()]


def convert_ranker(scope: Any, operator: Any, container: Any) -> None:
    """``score = Cast(X)·w + b`` in doubles; ``label`` says whether it is above 0."""
    coef, intercept = coefficients(operator.raw_operator)
    write = _Writer(scope, container)
    X = write.node("Cast", [operator.inputs[0].full_name], to=TensorProto.DOUBLE)
    product = write.node("MatMul", [X, write.constant("coef", TensorProto.DOUBLE, coef)])
    *label, score = (variable.full_name for variable in operator.outputs)
    write.node("Add", [product, write.constant("intercept", TensorProto.DOUBLE, [intercept])], score)
    if label:
        zero = write.constant("zero", TensorProto.DOUBLE, [0.0])
        above = write.node("Cast", [write.node("Greater", [score, zero])], to=TensorProto.INT64)
        classes = write.constant("classes", *_classes(operator.raw_operator.classes_))
        write.node("Gather", [classes, above], label[0], axis=0)


def _classes(classes: np.ndarray) -> tuple[int, list[Any]]:
    if classes.dtype.kind in "OUST":
        return TensorProto.STRING, [str(value).encode() for value in classes]
    return TensorProto.INT64, [int(value) for value in classes]


def _kind(type_of: Any) -> int:
    return TensorProto.DOUBLE if isinstance(type_of, DoubleTensorType) else TensorProto.FLOAT


def convert_imputer(scope: Any, operator: Any, container: Any) -> None:
    """``Where(missing, fill, X)``: skl2onnx's own operator knows neither doubles nor gaps in text.

    A missing number is NaN (or what the imputer says), a missing text is empty.
    """
    imputer, write = operator.raw_operator, _Writer(scope, container)
    fills = imputer.statistics_
    if imputer.add_indicator:
        raise refusal(imputer, "add_indicator=True is not supported; fit it without")
    if any(value != value for value in fills.tolist()):
        raise refusal(imputer, "one of its columns had no values at all; leave it out")
    X = concatenate_variables(scope, operator.inputs, container)
    X = X if isinstance(X, str) else X[0]
    no_value = imputer.missing_values is None or imputer.missing_values != imputer.missing_values
    if isinstance(operator.inputs[0].type, StringTensorType):
        text = "" if no_value else str(imputer.missing_values)
        options: dict[str, Any] = {"keys_strings": [text], "values_int64s": [1], "default_int64": 0}
        found = write.node("LabelEncoder", [X], op_domain="ai.onnx.ml", op_version=2, **options)
        missing = write.node("Cast", [found], to=TensorProto.BOOL)
        kind, values = int(TensorProto.STRING), [str(value).encode() for value in fills]
    else:
        kind, values = _kind(operator.inputs[0].type), fills.astype(float).tolist()
        X = write.node("Cast", [X], to=kind)
        if no_value:
            missing = write.node("IsNaN", [X])
        else:
            value = write.constant("missing", kind, [float(imputer.missing_values)])
            missing = write.node("Equal", [X, value])
    row = write.constant("fill", kind, values, [1, len(values)])
    write.node("Where", [missing, row, X], operator.outputs[0].full_name)
