"""The ranker of a model file as an ONNX graph: one input for each column of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from apexrank.errors import InputError
from apexrank.export.features import CategoryColumn, NumberColumn, spellings
from apexrank.export.linear import LinearForm, as_table, linear_form
from apexrank.export.onnx_inputs import check_names, input_names
from apexrank.io.table_ranker import TableRanker

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8  # old enough for most runtimes
_OLDEST = 13


def table_graph(model: TableRanker, X: Any = None, target_opset: int | None = None) -> onnx.ModelProto:
    """Build the graph by hand: fill, centre, scale and add up the numbers, look up the categories.

    Examples
    --------
    >>> import polars as pl
    >>> from apexrank import PNormPush
    >>> from apexrank.io import Recipe, Table
    >>> table = Table(pl.DataFrame({"x": [0.0, 1.0, 2.0, 1.5], "fraud": [0, 0, 1, 0]}))
    >>> ranker = TableRanker.fit(table, Recipe(target="fraud"), PNormPush(p=2, alpha=0.1))
    >>> [one.name for one in table_graph(ranker).graph.input]
    ['x']
    """
    opset = OPSET if target_opset is None else target_opset
    if opset < _OLDEST:
        raise InputError(f"target_opset must be at least {_OLDEST}, got {opset}")
    form = linear_form(model)
    builder = _Builder(form, _single(X))
    parts = [builder.numbers(), *builder.categories()]
    total = builder.constant("intercept", np.array([[form.intercept]]))
    for part in filter(None, parts):
        total = builder.node("Add", [total, part])
    shape = builder.constant("flat", np.array([-1]))
    flat = builder.node("Reshape", [total, shape])
    # The model refuses infinite values: ∞ − ∞ makes their scores NaN, and adds 0 to all the others.
    score = builder.output("score", "Add", [flat, builder.node("Sub", [flat, flat])])
    outputs = [helper.make_tensor_value_info(score, TensorProto.DOUBLE, ["rows"])]
    if model.positive is not None:
        above = builder.node("Greater", [score, builder.constant("zero", np.zeros(1))])
        label = builder.output("label", "Cast", [above], to=TensorProto.INT64)
        outputs.insert(0, helper.make_tensor_value_info(label, TensorProto.INT64, ["rows"]))
    graph = helper.make_graph(builder.nodes, "apexrank", builder.inputs, outputs, builder.constants)
    versions = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    version = max(IR_VERSION, helper.find_min_ir_version_for(versions))
    proto = helper.make_model(graph, opset_imports=versions, ir_version=version, producer_name="apexrank")
    return proto


def _single(X: Any) -> set[str]:
    """Columns in single precision."""
    import polars as pl

    if X is None:
        return set()
    schema = as_table(X).frame.schema
    return {name for name, kind in schema.items() if kind == pl.Float32}


class _Builder:
    """Collects inputs, nodes and constants; no name is given twice."""

    def __init__(self, form: LinearForm, single: set[str]) -> None:
        self.form = form
        self.columns = list(dict.fromkeys(feature.column for feature in form.features))
        check_names(column.name for column in self.columns)
        self.own = input_names(column.name for column in self.columns)
        self.taken = set(self.own.values())
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs = [self._input(column, single) for column in self.columns]

    def _input(self, column: NumberColumn | CategoryColumn, single: set[str]) -> Any:
        kind = TensorProto.FLOAT if column.name in single else TensorProto.DOUBLE
        kind = kind if isinstance(column, NumberColumn) else TensorProto.STRING
        name = self.own[column.name]
        return helper.make_tensor_value_info(name, kind, ["rows", 1], doc_string=column.name)

    def name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        return name

    def constant(self, name: str, values: np.ndarray) -> str:
        name = self.name(name)
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def node(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        return self.output(kind.lower(), kind, inputs, **attributes)

    def output(self, name: str, kind: str, inputs: list[str], **attributes: Any) -> str:
        name = self.name(name)
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def numbers(self) -> str | None:
        """``Σ_j weight_j·(x_j − center_j)`` of the columns of numbers, as (rows, 1)."""
        own = [(f, w) for f, w in zip(self.form.features, self.form.weights, strict=True) if f.is_number]
        if not own:
            return None
        casts = [self.node("Cast", [self.own[f.column.name]], to=TensorProto.DOUBLE) for f, _ in own]
        X = self.node("Concat", casts, axis=1)
        fills = [np.nan if f.column.fill is None else f.column.fill for f, _ in own]
        missing = self.node("IsNaN", [X])
        X = self.node("Where", [missing, self.constant("fill", np.array([fills])), X])
        X = self.node("Sub", [X, self.constant("center", np.array([[f.center for f, _ in own]]))])
        return self.node("MatMul", [X, self.constant("weight", np.array([[w] for _, w in own]))])

    def categories(self) -> list[str]:
        """Weight of each row's category, as (rows, 1), for every column of categories."""
        return [self._category(column) for column in self.columns if isinstance(column, CategoryColumn)]

    def _category(self, column: CategoryColumn) -> str:
        pairs = zip(self.form.features, self.form.weights, strict=True)
        own = {f.value: float(w) for f, w in pairs if f.column == column}
        keys = {value: j for j, value in enumerate(own)}
        for j, value in enumerate(own):
            for text in spellings(value, column.values):
                keys.setdefault(text, j)
        worth = [*own.values(), np.nan if column.needs_value else 0.0, 0.0]
        keys[""] = len(own)
        code = self.node(
            "LabelEncoder",
            [self.own[column.name]],
            domain="ai.onnx.ml",
            keys_strings=list(keys),
            values_int64s=list(keys.values()),
            default_int64=len(own) + 1,
        )
        return self.node("Gather", [self.constant("worth", np.array(worth)), code], axis=0)
