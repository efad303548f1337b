"""Converters for skl2onnx: the linear rankers, the encoding of a table, imputers and one-hot encoders.

skl2onnx's own imputer knows neither doubles nor gaps in text; its one-hot encoder knows neither missing values nor
fractions, and stops at unknown ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto
from skl2onnx._supported_operators import sklearn_operator_name_map
from skl2onnx.common.data_types import (
    DoubleTensorType,
    Int64TensorType,
    StringTensorType,
)
from sklearn.base import BaseEstimator

from apexrank.export.features import CategoryColumn, check_categories, refusal, spellings
from apexrank.export.linear import LinearForm, coefficients
from apexrank.validation import is_missing


class Writer:
    """Adds nodes and constants of unused names."""

    def __init__(self, scope: Any, container: Any) -> None:
        self.scope, self.container = scope, container

    def node(self, kind: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        """Add an operator; gives the name of its output."""
        output = output or self.scope.get_unique_variable_name(kind.lower())
        name = self.scope.get_unique_operator_name(kind)
        self.container.add_node(kind, inputs, [output], name=name, **attributes)
        return output

    def constant(self, name: str, kind: int, values: Any, shape: Sequence[int] | None = None) -> str:
        """Add a constant; a vector unless a shape is given."""
        unique = self.scope.get_unique_variable_name(name)
        self.container.add_initializer(unique, kind, shape or [len(values)], list(values))
        return unique

    def row(self, name: str, kind: int, values: Any) -> str:
        """Add a constant of shape (1, n)."""
        return self.constant(name, kind, values, [1, len(values)])

    def product(self, X: str, coef: Any) -> str:
        """A matrix times a vector, as (rows, 1): a vector alone would fail where there are no rows."""
        w = self.constant("coef", TensorProto.DOUBLE, coef, [len(coef), 1])
        return self.node("MatMul", [X, w])

    def joined(self, variables: list[Any], kind: int) -> str:
        """All columns of some inputs side by side, as numbers of one kind, or as text."""
        # skl2onnx would join them by FeatureVectorizer, which rounds doubles to singles.
        parts = [variable.full_name for variable in variables]
        if kind != TensorProto.STRING:
            parts = [self.node("Cast", [part], to=kind) for part in parts]
        return parts[0] if len(parts) == 1 else self.node("Concat", parts, axis=1)

    def lookup(self, text: str, codes: dict[str, int], default: int) -> str:
        """Whole number of each text."""
        options: dict[str, Any] = {"keys_strings": list(codes), "values_int64s": list(codes.values())}
        options |= {"default_int64": default, "op_domain": "ai.onnx.ml", "op_version": 2}
        return self.node("LabelEncoder", [text], **options)


def is_text(variable: Any) -> bool:
    """Whether an input holds text."""
    return isinstance(variable.type, StringTensorType)


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
    _write_score(
        write, operator, [write.product(write.joined(operator.inputs, TensorProto.DOUBLE), coef)], intercept
    )


def _write_score(write: Writer, operator: Any, parts: list[str], intercept: float) -> None:
    """Add up parts of shape (rows, 1), and say which class they make."""
    product = parts[0]
    for part in parts[1:]:
        product = write.node("Add", [product, part])
    flat = write.node("Reshape", [product, write.constant("flat", TensorProto.INT64, [-1])])
    total = write.node("Add", [flat, write.constant("intercept", TensorProto.DOUBLE, [intercept])])
    *label, score = (variable.full_name for variable in operator.outputs)
    # The model refuses infinite values: ∞ − ∞ makes their scores NaN, and adds 0 to all the others.
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


class TableForm(BaseEstimator):
    """The linear form of a table's ranker, as a model that skl2onnx knows; its inputs are the table's columns."""

    def __init__(self, form: LinearForm, two_classes: bool) -> None:
        self.form = form
        if two_classes:
            self.classes_ = np.array([0, 1])

    @property
    def columns(self) -> list[Any]:
        """The columns in their order."""
        return list(dict.fromkeys(feature.column for feature in self.form.features))


def convert_table(scope: Any, operator: Any, container: Any) -> None:
    """Fill, centre and add up the numbers, look up the categories."""
    model, write = operator.raw_operator, Writer(scope, container)
    inputs = dict(zip(model.columns, operator.inputs, strict=True))
    weighted = list(zip(model.form.features, model.form.weights.tolist(), strict=True))
    numbers = [(feature, weight) for feature, weight in weighted if feature.is_number]
    parts = []
    if numbers:
        X = write.joined([inputs[feature.column] for feature, _ in numbers], TensorProto.DOUBLE)
        fills = [np.nan if feature.column.fill is None else feature.column.fill for feature, _ in numbers]
        missing, fill = write.node("IsNaN", [X]), write.row("fill", TensorProto.DOUBLE, fills)
        X = write.node("Where", [missing, fill, X])
        centers = write.row("center", TensorProto.DOUBLE, [feature.center for feature, _ in numbers])
        parts.append(write.product(write.node("Sub", [X, centers]), [weight for _, weight in numbers]))
    for column, variable in inputs.items():
        if isinstance(column, CategoryColumn):
            own = {feature.value: weight for feature, weight in weighted if feature.column == column}
            parts.append(_category(write, column, variable.full_name, own))
    # The center of an indicator is a constant of its own.
    shift = sum(weight * feature.center for feature, weight in weighted if not feature.is_number)
    _write_score(write, operator, parts, model.form.intercept - shift)


def _category(write: Writer, column: CategoryColumn, text: str, own: dict[str, float]) -> str:
    """Weight of each row's category; a missing one is NaN where the model needs a value."""
    keys = {value: j for j, value in enumerate(own)}
    for j, value in enumerate(own):
        for spelling in spellings(value, column.values):
            keys.setdefault(spelling, j)
    keys[""] = len(own)
    worth = [*own.values(), np.nan if column.needs_value else 0.0, 0.0]
    code = write.lookup(text, keys, len(own) + 1)
    return write.node("Gather", [write.constant("worth", TensorProto.DOUBLE, worth), code], axis=0)


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


def one_hot_shapes(operator: Any) -> None:
    """Doubles, one for each category that is not dropped."""
    encoder = operator.raw_operator
    width = sum(len(_kept(encoder, j)) for j in range(len(encoder.categories_)))
    operator.outputs[0].type = DoubleTensorType([operator.inputs[0].get_first_dimension(), width])


def convert_one_hot(scope: Any, operator: Any, container: Any) -> None:
    """``value == category``; a missing value is NaN or empty text.

    A value that is not known makes the whole row NaN where the encoder would refuse it.
    """
    encoder, write = operator.raw_operator, Writer(scope, container)
    check_categories(encoder)
    blocks = []
    for j, (text, column) in enumerate(_each_column(write, operator.inputs)):
        found = (
            _is_text_of(write, column, encoder, j)
            if text
            else _is_number_of(write, column, encoder.categories_[j])
        )
        block = write.node("Cast", [found], to=TensorProto.DOUBLE)
        if encoder.handle_unknown == "error":
            size = len(encoder.categories_[j])
            ones = write.constant("ones", TensorProto.DOUBLE, np.ones(size), [size, 1])
            # 0/0 where no category was found.
            block = write.node("Div", [block, write.node("MatMul", [block, ones])])
        kept = write.constant("kept", TensorProto.INT64, _kept(encoder, j))
        blocks.append(write.node("Gather", [block, kept], axis=1))
    write.node("Concat", blocks, operator.outputs[0].full_name, axis=1)


def _kept(encoder: Any, j: int) -> list[int]:
    dropped = None if encoder.drop_idx_ is None else encoder.drop_idx_[j]
    return [k for k in range(len(encoder.categories_[j])) if k != dropped]


def _each_column(write: Writer, variables: list[Any]) -> Iterator[tuple[bool, str]]:
    """Each column of the inputs as (rows, 1), and whether it is text."""
    for variable in variables:
        width, name = variable.type.shape[1], variable.full_name
        for j in range(width):
            place = [] if width == 1 else [write.constant("place", TensorProto.INT64, [j])]
            yield is_text(variable), write.node("Gather", [name, *place], axis=1) if place else name


def _is_text_of(write: Writer, column: str, encoder: Any, j: int) -> str:
    words = ["" if is_missing(value) else str(value) for value in encoder.categories_[j].tolist()]
    if len(set(words)) < len(words):
        raise refusal(
            encoder, "it knows both a missing and an empty text, which are one in ONNX; fill the gaps"
        )
    code = write.lookup(column, {word: k for k, word in enumerate(words)}, -1)
    return write.node("Equal", [code, write.row("codes", TensorProto.INT64, list(range(len(words))))])


def _is_number_of(write: Writer, column: str, categories: np.ndarray) -> str:
    values = np.array([np.nan if is_missing(value) else float(value) for value in categories.tolist()])
    X = write.node("Cast", [column], to=TensorProto.DOUBLE)
    found = write.node("Equal", [X, write.row("categories", TensorProto.DOUBLE, values)])
    if not np.isnan(values).any():
        return found
    gaps = write.row("gaps", TensorProto.BOOL, np.isnan(values).tolist())
    return write.node("Or", [found, write.node("And", [write.node("IsNaN", [X]), gaps])])
