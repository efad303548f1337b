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

from apexrank.export.features import is_missing, refusal
from apexrank.export.linear import coefficients
from apexrank.export.onnx_writer import Writer, is_text


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
    write = Writer(scope, container)
    X = write.joined(operator.inputs, TensorProto.DOUBLE)
    # A matrix times a vector would fail where there are no rows.
    w = write.constant("coef", TensorProto.DOUBLE, coef, [len(coef), 1])
    product = write.node("MatMul", [X, w])
    flat = write.node("Reshape", [product, write.constant("flat", TensorProto.INT64, [-1])])
    total = write.node("Add", [flat, write.constant("intercept", TensorProto.DOUBLE, [intercept])])
    *label, score = (variable.full_name for variable in operator.outputs)
    # The ranker refuses infinite values: ∞ − ∞ makes their scores NaN, and adds 0 to all the others.
    write.node("Add", [total, write.node("Sub", [total, total])], score)
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
    imputer, write = operator.raw_operator, Writer(scope, container)
    fills = imputer.statistics_
    if imputer.add_indicator:
        raise refusal(imputer, "add_indicator=True is not supported; fit it without")
    if any(map(is_missing, fills.tolist())):
        raise refusal(imputer, "one of its columns had no values at all; leave it out")
    no_value = is_missing(imputer.missing_values)
    if is_text(operator.inputs[0]):
        kind, values = int(TensorProto.STRING), [str(value).encode() for value in fills]
        X = write.joined(operator.inputs, kind)
        text = "" if no_value else str(imputer.missing_values)
        missing = write.node("Cast", [write.lookup(X, {text: 1}, 0)], to=TensorProto.BOOL)
    else:
        kind, values = _kind(operator.inputs[0].type), fills.astype(float).tolist()
        X = write.joined(operator.inputs, kind)
        if no_value:
            missing = write.node("IsNaN", [X])
        else:
            value = write.constant("missing", kind, [float(imputer.missing_values)])
            missing = write.node("Equal", [X, value])
    write.node("Where", [missing, write.row("fill", kind, values), X], operator.outputs[0].full_name)
