"""ONNX graphs built with skl2onnx, with one tensor for an array and one input per column of a frame or table.

This module contains skl2onnx converters for the linear rankers, for the linear form of a table's ranker, and for
imputers and one-hot encoders: the imputer of skl2onnx supports neither doubles nor missing text; its one-hot encoder
supports neither missing values nor fractions, and fails on unknown ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import onnx
import polars as pl
from onnx import TensorProto, helper
from scipy import sparse
from skl2onnx import convert_sklearn, update_registered_converter
from skl2onnx._supported_operators import sklearn_operator_name_map
from skl2onnx.common._registration import get_shape_calculator
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder

from apexrank import rankers
from apexrank.errors import InputError
from apexrank.export import features, forms
from apexrank.validation import is_missing

OUTPUTS = ("score", "label")
_TABLE_OPSET, _OLDEST_OPSET = 17, 13  # the former is old enough for most runtimes
_TEXT = "OUST"  # NumPy dtype kinds that become strings in ONNX


class Input(NamedTuple):
    """Column of a frame, and the type of its tensor."""

    name: str
    tensor: Any

    @property
    def inner_type(self) -> Any:
        """Type after the cast at the start of the graph: all steps work on doubles."""
        return StringTensorType if self.tensor is StringTensorType else DoubleTensorType


def register_converters() -> None:
    """Register converters of the linear rankers and of a table's linear form with skl2onnx."""
    public = (getattr(rankers, name) for name in dir(rankers))
    linear = [kind for kind in public if isinstance(kind, type) and forms.is_linear(kind)]
    for kind, convert in [*((kind, convert_ranker) for kind in linear), (TableForm, convert_table)]:
        alias = f"Apexrank{kind.__name__}"
        update_registered_converter(kind, alias, ranker_shapes, convert, parser=parse_ranker, overwrite=True)


def table_graph(model: Any, X: Any, target_opset: int | None) -> onnx.ModelProto:
    """Graph of a table's ranker or of a scorecard; columns in single precision in X are floats."""
    opset = _TABLE_OPSET if target_opset is None else target_opset
    if opset < _OLDEST_OPSET:
        raise InputError(f"`target_opset` must be at least {_OLDEST_OPSET}, got {opset}")
    labelled = getattr(model, "positive", None) is not None
    form = TableForm(forms.model_form(model), np.array([0, 1]) if labelled else None)
    features.check_no_dates(form.form.columns, "ONNX")
    for column in form.columns:
        if not column.as_text and any(
            value is not None and not isinstance(value, str) for value in column.values
        ):
            raise InputError(
                f"column {column.name!r} has categories that are not text: export the card as SQL"
            )
    schema = {} if X is None else features.as_table(X).frame.schema
    inputs = []
    for column in form.columns:
        number = FloatTensorType if schema.get(column.name) == pl.Float32 else DoubleTensorType
        inputs.append(Input(column.name, StringTensorType if _is_text(column) else number))
    types = [(f"column_{j}", one.inner_type([None, 1])) for j, one in enumerate(inputs)]
    return _column_graph(form, inputs, types, opset)


def model_graph(model: Any, X: Any, target_opset: int | None) -> onnx.ModelProto:
    """Graph of a ranker or pipeline."""
    if not forms.is_additive(model):
        forms.coefficients(features.last_step(model))
    _check_steps(model)
    if isinstance(model, Pipeline):
        model = Pipeline([(name, step) for name, step in model.steps if not features.is_placeholder(step)])
    if not hasattr(X, "columns"):
        return _convert(model, _array_type(features.first_fitted(model), X), target_opset)
    inputs = _frame_inputs(features.first_fitted(model), X)
    if _selects(model) or len({one.inner_type for one in inputs}) == 2:
        types = [(one.name, one.inner_type([None, 1])) for one in inputs]
    else:  # one tensor if possible, because most converters of skl2onnx read only one
        types = [("X", inputs[0].inner_type([None, len(inputs)]))]
    return _column_graph(model, inputs, types, target_opset)


def _convert(
    model: Any, types: list[tuple[str, Any]], target_opset: int | None, prefix: str | None = None
) -> onnx.ModelProto:
    try:
        # Not registered globally: models of other libraries keep skl2onnx's own converters.
        return convert_sklearn(
            model,
            name="apexrank",  # skl2onnx would choose a random name, and no two files would be equal
            initial_types=types,
            target_opset=target_opset,
            custom_conversion_functions={SimpleImputer: convert_imputer, OneHotEncoder: convert_one_hot},
            custom_shape_calculators={
                SimpleImputer: get_shape_calculator("SklearnSimpleImputer"),
                OneHotEncoder: one_hot_shapes,
            },
            naming=prefix,
        )
    except InputError:
        raise
    except (
        RuntimeError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:  # raised by skl2onnx for unsupported models
        raise InputError(f"the pipeline cannot be exported: {str(error).strip().splitlines()[0]}") from None


def _check_steps(model: Any, outermost: bool = True) -> None:
    """Raise InputError for steps that skl2onnx cannot convert, and for steps of this library that need groups."""
    parts: list[Any] = []
    if isinstance(model, Pipeline):
        parts = [step for _, step in model.steps]
        if not outermost and any(map(features.is_placeholder, parts)):
            raise InputError("a passthrough step inside another step cannot be exported: leave it out")
    elif isinstance(model, ColumnTransformer):
        parts = [step for _, step, _ in model.transformers_]
        if any(isinstance(part, slice) and isinstance(part.stop, str) for _, _, part in model.transformers_):
            raise InputError("a ColumnTransformer of a slice of names cannot be exported: list the names")
    elif isinstance(model, FeatureUnion):
        parts = [step for _, step in model.transformer_list]
    elif type(model).__module__.split(".")[0] == "apexrank":
        forms.check_linear(model)
    for part in parts:
        _check_steps(part, outermost=False)


# ---------------------------------------------------------------- inputs


def _array_type(first: Any, X: Any) -> list[tuple[str, Any]]:
    """Type of a single tensor: doubles, or the dtype of X."""
    wanted = [columns for *_, columns in getattr(first, "transformers_", ())]
    lists = [[one] if isinstance(one, str) else one for one in wanted if isinstance(one, str | list)]
    if any(isinstance(name, str) for names in lists for name in names):
        raise InputError("the ColumnTransformer takes columns by their names: give some rows of a frame as X")
    width = first.n_features_in_
    if X is None:
        return [("X", DoubleTensorType([None, width]))]
    array: Any = X if sparse.issparse(X) else np.asarray(X)
    if array.ndim != 2 or array.shape[1] != width:
        raise InputError(f"X must be rows of {width} columns like those of fit, got the shape {array.shape}")
    tensor = _tensor_type("X", array.data[:0] if sparse.issparse(array) else array)
    return [("X", tensor([None, width]))]


def _frame_inputs(first: Any, X: Any) -> list[Input]:
    """Columns that the model was fitted on, in order, with their types in X."""
    given = {str(name): name for name in X.columns}
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
    return [Input(name, _tensor_type(name, np.asarray(X[given[name]]))) for name in names]


def _tensor_type(name: str, values: np.ndarray) -> Any:
    """Type of the tensor of a column."""
    if values.dtype.kind == "f":
        return FloatTensorType if values.itemsize <= 4 else DoubleTensorType
    objects = values.ravel().tolist() if values.dtype.kind == "O" else ()
    present = [value for value in objects if not is_missing(value)]
    is_nullable = bool(present) and all(isinstance(value, int | float | np.number) for value in present)
    # Treat integers as doubles: a column that is integral in a few rows need not be so in all.
    if values.dtype.kind in "iub" or is_nullable:
        return DoubleTensorType
    if values.dtype.kind in "OUT":
        return StringTensorType
    raise InputError(f"{name!r} holds {values.dtype} values, which have no ONNX type: give numbers or text")


def _selects(model: Any) -> bool:
    """Whether the first step selects columns by name or position."""
    first = features.first_fitted(model)
    if isinstance(first, FeatureUnion) and any(_selects(part) for _, part in first.transformer_list):
        raise InputError("a ColumnTransformer inside a FeatureUnion cannot be exported: put it outside")
    return isinstance(first, ColumnTransformer)


def _column_graph(
    model: Any, inputs: list[Input], types: list[tuple[str, Any]], target_opset: int | None
) -> onnx.ModelProto:
    """Graph with one input per column, cast to double and concatenated if the model takes one tensor."""
    names = _input_names(one.name for one in inputs)
    if "" in names:
        raise InputError("a column has an empty name, which ONNX cannot have: rename it")
    prefix = "model_"  # prefix of all inner names, so that none equals a column name
    while any(name.startswith(prefix) for name in names.values()):
        prefix = f"_{prefix}"
    proto = _convert(model, types, target_opset, prefix)
    graph = proto.graph
    inner = {one.name: f"{prefix}input_{j}" for j, one in enumerate(graph.input)}
    for node in graph.node:
        node.input[:] = [inner.get(name, name) for name in node.input]
    parts, nodes, ends = list(inner.values()), list(graph.node), []
    if len(inner) < len(inputs):
        parts = [f"{prefix}column_{j}" for j in range(len(inputs))]
        nodes.insert(0, helper.make_node("Concat", parts, list(inner.values()), axis=1))
    for one, part in zip(inputs, parts, strict=True):
        name = names[one.name]
        if one.tensor is StringTensorType:
            nodes.insert(0, helper.make_node("Identity", [name], [part]))
        else:
            nodes.insert(0, helper.make_node("Cast", [name], [part], to=TensorProto.DOUBLE))
        # The column's own name, for users who have to fill in the input.
        ends.append(helper.make_value_info(name, one.tensor(["rows", 1]).to_onnx_type(), doc_string=one.name))
    graph.CopyFrom(helper.make_graph(nodes, graph.name, ends, graph.output, graph.initializer))
    return proto


def _input_names(names: Iterable[str]) -> dict[str, str]:
    """Input name of each column; a column with the name of an output is renamed.

    Examples
    --------
    >>> _input_names(["amount", "score"])
    {'amount': 'amount', 'score': 'score_input'}
    """
    own = {name: name for name in names}
    for name in own.keys() & set(OUTPUTS):
        free = f"{name}_input"
        while free in own.values():
            free += "_"
        own[name] = free
    return own


# ---------------------------------------------------------------- converters


class Writer:
    """Builder that adds operators with unique names to a graph; arrays among their inputs become constants."""

    def __init__(self, scope: Any, container: Any) -> None:
        self.scope, self.container = scope, container

    def __call__(
        self, kind: str, *inputs: str | np.ndarray, output: str | None = None, **options: Any
    ) -> str:
        """Add an operator and return the name of its output."""
        names = [one if isinstance(one, str) else self._constant(one) for one in inputs]
        output = output or self.scope.get_unique_variable_name(kind.lower())
        name = self.scope.get_unique_operator_name(kind)
        self.container.add_node(kind, names, [output], name=name, **options)
        return output

    def _constant(self, values: np.ndarray) -> str:
        name = self.scope.get_unique_variable_name("constant")
        kind, content = TensorProto.STRING, values.ravel().tolist()
        if values.dtype.kind in _TEXT:
            content = [str(value).encode() for value in content]
        else:
            kind = helper.np_dtype_to_tensor_dtype(values.dtype)
        self.container.add_initializer(name, kind, list(values.shape), content)
        return name

    def joined(self, variables: list[Any], kind: int) -> str:
        """Concatenate the columns of the inputs, as numbers of one type or as text."""
        # skl2onnx would use FeatureVectorizer, which rounds doubles to single precision.
        parts = [variable.full_name for variable in variables]
        if kind != TensorProto.STRING:
            parts = [self("Cast", part, to=kind) for part in parts]
        return parts[0] if len(parts) == 1 else self("Concat", *parts, axis=1)

    def lookup(self, text: str, codes: dict[str, int], default: int) -> str:
        """Map each text to an integer."""
        options: dict[str, Any] = {"keys_strings": list(codes), "values_int64s": list(codes.values())}
        options |= {"default_int64": default, "op_domain": "ai.onnx.ml", "op_version": 2}
        return self("LabelEncoder", text, **options)


def parse_ranker(scope: Any, model: Any, inputs: list[Any], custom_parsers: Any = None) -> Any:
    """Declare the outputs: a label if there are two classes, and the score."""
    operator = scope.declare_local_operator(sklearn_operator_name_map[type(model)], model)
    operator.inputs = list(inputs)
    classes = getattr(model, "classes_", None)
    if classes is not None:
        label = StringTensorType if classes.dtype.kind in _TEXT else Int64TensorType
        operator.outputs.append(scope.declare_local_variable("label", label([None])))
    operator.outputs.append(scope.declare_local_variable("score", DoubleTensorType([None])))
    return operator.outputs


def ranker_shapes(operator: Any) -> None:
    """Set the output shapes to one number per row."""
    for output in operator.outputs:
        output.type.shape = [operator.inputs[0].get_first_dimension()]


def convert_ranker(scope: Any, operator: Any, container: Any) -> None:
    """``score = Cast(X)·w + b`` in doubles; ``label`` tells whether it is above 0."""
    write = Writer(scope, container)
    if forms.is_additive(operator.raw_operator):
        _additive_ranker(write, operator)
        return
    coef, intercept = forms.coefficients(operator.raw_operator)
    X = write.joined(operator.inputs, TensorProto.DOUBLE)
    _write_score(write, operator, [write("MatMul", X, coef[:, None])], intercept)


def _write_score(write: Writer, operator: Any, parts: list[str], intercept: float) -> None:
    """Sum parts of shape (rows, 1) to the score, and derive the label."""
    total = parts[0]
    for part in parts[1:]:
        total = write("Add", total, part)
    # flatten only now: a vector of coefficients would fail if there are no rows
    total = write("Add", write("Reshape", total, np.array([-1])), np.array([intercept]))
    *label, score = (variable.full_name for variable in operator.outputs)
    # The model rejects infinite values: ∞ − ∞ turns their scores into NaN, and adds 0 to all others.
    write("Add", total, write("Sub", total, total), output=score)
    if label:
        classes = operator.raw_operator.classes_
        classes = classes if classes.dtype.kind in _TEXT else classes.astype(np.int64)
        above = write("Cast", write("Greater", score, np.array([0.0])), to=TensorProto.INT64)
        write("Gather", classes, above, output=label[0], axis=0)


def _additive_ranker(write: Writer, operator: Any) -> None:
    """Sum of the functions of the columns of X and of pairs of columns."""
    ranker, parts, columns = operator.raw_operator, [], []
    for shape, (is_text, x) in zip(ranker.shapes_, _each_column(write, operator.inputs), strict=True):
        x = _place(write, x, shape.levels) if is_text else write("Cast", x, to=TensorProto.DOUBLE)
        columns.append(x)
        parts.append(_curve(write, x, forms.pieces(shape.knots, shape.values), shape.missing))
    for pair in ranker.pairs_:
        sides = [(columns[j], knots) for j, knots in zip(pair.features, pair.knots, strict=True)]
        parts.append(_bilinear(write, sides, pair.values))
    intercept = float(np.ravel(getattr(ranker, "intercept_", 0.0))[0])
    _write_score(write, operator, parts, intercept)


def _place(write: Writer, text: str, levels: tuple[str, ...]) -> str:
    """Index of a text among the levels as a double; NaN if it is not a level."""
    found = write.lookup(text, {word: k for k, word in enumerate(levels)}, -1)
    code = write("Cast", found, to=TensorProto.DOUBLE)
    return write("Where", write("Less", code, np.array([0.0])), np.array([np.nan]), code)


def _curve(write: Writer, x: str, parts: forms.Pieces, missing: float | None) -> str:
    """Value of a piecewise linear function, looked up by the number of bounds that x reaches; NaN for an infinite x."""
    bounds, values, slopes = parts
    reached = write("Cast", write("GreaterOrEqual", x, bounds[None, :]), to=TensorProto.DOUBLE)
    piece = write("Cast", write("MatMul", reached, np.ones((len(bounds), 1))), to=TensorProto.INT64)
    tables = np.append(0.0, bounds), values, slopes
    start, height, slope = (write("Gather", table, piece, axis=0) for table in tables)
    value = write("Add", height, write("Mul", slope, write("Sub", x, start)))
    gap = np.nan if missing is None else missing
    return write("Where", write("IsNaN", x), np.array([[gap]]), value)


def _bilinear(write: Writer, sides: list[tuple[str, np.ndarray]], values: np.ndarray) -> str:
    """``Σ_ab C_ab·R_a(x)·S_b(y)`` with ramps R and S, the first of which are 1; 0 if x or y is missing."""
    ramps, C = [], values
    for x, knots in sides:
        rest = write("Div", write("Sub", x, knots[None, :-1]), np.diff(knots)[None, :])
        rest = write("Min", write("Max", rest, np.array([0.0])), np.array([1.0]))
        one = write("Cast", write("Equal", x, x), to=TensorProto.DOUBLE)
        ramps.append(write("Concat", one, rest, axis=1))
        C = np.diff(C, axis=0, prepend=0.0).T  # increments from knot to knot, one side after the other
    total = write("MatMul", write("Mul", write("MatMul", ramps[0], C), ramps[1]), np.ones((len(C.T), 1)))
    return write("Where", write("IsNaN", total), np.array([[0.0]]), total)


def _is_text(column: features.TableColumn) -> bool:
    return column.as_text or any(isinstance(value, str) for value in column.values)


@dataclass(frozen=True, eq=False)
class TableForm:
    """Form of a table's ranker as a model for skl2onnx; its inputs are the table's columns."""

    form: forms.Form
    classes_: np.ndarray | None

    @property
    def columns(self) -> list[features.TableColumn]:
        """Distinct columns in order."""
        return list({column.name: column for column in self.form.columns}.values())


def convert_table(scope: Any, operator: Any, container: Any) -> None:
    """Sum the functions of the columns: straight lines jointly, others and pairs one by one."""
    model, write = operator.raw_operator, Writer(scope, container)
    inputs = {column.name: v for column, v in zip(model.columns, operator.inputs, strict=True)}
    names = {name: variable.full_name for name, variable in inputs.items()}
    effects = model.form.effects
    lines = [effect for effect in effects if isinstance(effect, forms.Curve) and not len(effect.bounds)]
    parts = [_lines(write, lines, [inputs[line.column.name] for line in lines])] if lines else []
    parts += [_effect(write, each, names[each.column.name]) for each in effects if each not in lines]
    parts += [_pair(write, pair, names) for pair in model.form.pairs]
    _write_score(write, operator, parts, model.form.intercept)


def _lines(write: Writer, lines: list[forms.Curve], variables: list[Any]) -> str:
    """Sum of straight lines."""
    X = write.joined(variables, TensorProto.DOUBLE)
    start, slope, center, missing = np.array(
        [[line.values[0], line.slopes[0], line.center, line.missing] for line in lines], dtype=float
    ).T[:, None, :]  # None becomes NaN
    value = write("Add", write("Mul", write("Sub", X, center), slope), start)
    value = write("Where", write("IsNaN", X), missing, value)
    return write("MatMul", value, np.ones((len(lines), 1)))


def _effect(write: Writer, effect: forms.Curve | forms.Levels, x: str) -> str:
    """Function of a table column."""
    if isinstance(effect, forms.Levels):
        return _category(write, effect.column, x, effect.weights, effect.unknown)
    x = _scaled(write, x, effect)
    return _curve(write, x, (effect.bounds, effect.values, effect.slopes), effect.missing)


def _pair(write: Writer, pair: forms.Pair, inputs: dict[str, str]) -> str:
    """Function of two table columns."""
    sides = [(_side(write, side, inputs[side.feature.column.name]), side.knots) for side in pair.sides]
    return _bilinear(write, sides, pair.values)


def _scaled(write: Writer, x: str, units: forms.Curve | forms.Side) -> str:
    """Number in the units of the knots, by the operations of the model."""
    x = write("Sub", x, np.array([units.center])) if units.center else x
    return write("Div", x, np.array([units.scale])) if units.scale != 1 else x


def _side(write: Writer, side: forms.Side, x: str) -> str:
    """Value of a table's column that is compared with the knots of a pair; NaN if missing."""
    if side.levels:
        return _category(write, side.feature.column, x, side.levels, side.unknown)
    return _scaled(write, x, side)


def _category(
    write: Writer, column: features.TableColumn, text: str, own: dict[Any, float], rest: float
) -> str:
    """Weight of each row's category; NaN for a missing one if the model requires a value."""
    known = [value for value in own if isinstance(value, str)]
    keys = {value: j for j, value in enumerate(known)}
    for j, value in enumerate(known):
        for spelling in features.spellings(value, known):
            keys.setdefault(spelling, j)
    keys[""] = len(known)
    missing = np.nan if column.needs_value else own.get(None, rest)
    worth = np.array([*(own[value] for value in known), missing, rest], dtype=float)
    return write("Gather", worth, write.lookup(text, keys, len(known) + 1), axis=0)


def convert_imputer(scope: Any, operator: Any, container: Any) -> None:
    """``Where(missing, fill, X)``.

    A missing number is NaN (or the imputer's ``missing_values``), a missing text is empty.
    """
    imputer, write, inputs = operator.raw_operator, Writer(scope, container), operator.inputs
    features.check_imputer(imputer)
    gap = imputer.missing_values
    if isinstance(inputs[0].type, StringTensorType):
        X, fills = write.joined(inputs, TensorProto.STRING), imputer.statistics_.astype(str)
        found = write.lookup(X, {"" if is_missing(gap) else str(gap): 1}, 0)
        missing = write("Cast", found, to=TensorProto.BOOL)
    else:
        is_double = isinstance(inputs[0].type, DoubleTensorType)
        X = write.joined(inputs, TensorProto.DOUBLE if is_double else TensorProto.FLOAT)
        fills = imputer.statistics_.astype(np.float64 if is_double else np.float32)
        missing = write("IsNaN", X) if is_missing(gap) else write("Equal", X, np.array([gap], fills.dtype))
    write("Where", missing, fills[None, :], X, output=operator.outputs[0].full_name)


def one_hot_shapes(operator: Any) -> None:
    """Set the output type: doubles, one per category that is not dropped."""
    encoder = operator.raw_operator
    width = sum(len(features.kept_categories(encoder, j)) for j in range(len(encoder.categories_)))
    operator.outputs[0].type = DoubleTensorType([operator.inputs[0].get_first_dimension(), width])


def convert_one_hot(scope: Any, operator: Any, container: Any) -> None:
    """``value == category``; a missing value is NaN or empty text.

    An unknown value makes the whole row NaN if the encoder would reject it.
    """
    encoder, write = operator.raw_operator, Writer(scope, container)
    features.check_categories(encoder)
    blocks = []
    for j, (is_text, column) in enumerate(_each_column(write, operator.inputs)):
        found = (_is_text_of if is_text else _is_number_of)(write, column, encoder, encoder.categories_[j])
        block = write("Cast", found, to=TensorProto.DOUBLE)
        if encoder.handle_unknown == "error":
            # 0/0 if no category matches
            block = write("Div", block, write("MatMul", block, np.ones((len(encoder.categories_[j]), 1))))
        blocks.append(write("Gather", block, np.array(features.kept_categories(encoder, j)), axis=1))
    write("Concat", *blocks, output=operator.outputs[0].full_name, axis=1)


def _each_column(write: Writer, variables: list[Any]) -> Iterator[tuple[bool, str]]:
    """Iterate over the columns of the inputs as (rows, 1), each with a flag for text."""
    for variable in variables:
        for j in range(variable.type.shape[1]):
            column = write("Gather", variable.full_name, np.array([j]), axis=1)
            yield isinstance(variable.type, StringTensorType), column


def _is_text_of(write: Writer, column: str, encoder: Any, categories: np.ndarray) -> str:
    words = ["" if is_missing(value) else str(value) for value in categories.tolist()]
    if len(set(words)) < len(words):
        raise features.refusal(
            encoder, "it knows both a missing and an empty text, which are one in ONNX; fill the gaps"
        )
    code = write.lookup(column, {word: k for k, word in enumerate(words)}, -1)
    return write("Equal", code, np.arange(len(words))[None, :])


def _is_number_of(write: Writer, column: str, encoder: Any, categories: np.ndarray) -> str:
    known = [np.nan if is_missing(value) else value for value in categories.tolist()]
    values = np.array([known], dtype=float)
    X = write("Cast", column, to=TensorProto.DOUBLE)
    is_gap = write("And", write("IsNaN", X), np.isnan(values))
    return write("Or", write("Equal", X, values), is_gap)
