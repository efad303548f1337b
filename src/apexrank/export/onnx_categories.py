"""OneHotEncoder for skl2onnx, whose own knows neither missing values nor fractions, and stops at unknown ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto
from skl2onnx.common.data_types import DoubleTensorType

from apexrank.export.features import check_categories, is_missing, refusal
from apexrank.export.onnx_writer import Writer, is_text


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
    for j, (text, column) in enumerate(_columns(write, operator.inputs)):
        found = _texts(write, column, encoder, j) if text else _numbers(write, column, encoder.categories_[j])
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


def _columns(write: Writer, variables: list[Any]) -> Iterator[tuple[bool, str]]:
    """Each column of the inputs as (rows, 1), and whether it is text."""
    for variable in variables:
        width, name = variable.type.shape[1], variable.full_name
        for j in range(width):
            place = [] if width == 1 else [write.constant("place", TensorProto.INT64, [j])]
            yield is_text(variable), write.node("Gather", [name, *place], axis=1) if place else name


def _texts(write: Writer, column: str, encoder: Any, j: int) -> str:
    words = ["" if is_missing(value) else str(value) for value in encoder.categories_[j].tolist()]
    if len(set(words)) < len(words):
        raise refusal(
            encoder, "it knows both a missing and an empty text, which are one in ONNX; fill the gaps"
        )
    code = write.lookup(column, {word: k for k, word in enumerate(words)}, -1)
    return write.node("Equal", [code, write.row("codes", TensorProto.INT64, list(range(len(words))))])


def _numbers(write: Writer, column: str, categories: np.ndarray) -> str:
    values = np.array([np.nan if is_missing(value) else float(value) for value in categories.tolist()])
    X = write.node("Cast", [column], to=TensorProto.DOUBLE)
    found = write.node("Equal", [X, write.row("categories", TensorProto.DOUBLE, values)])
    if not np.isnan(values).any():
        return found
    gaps = write.row("gaps", TensorProto.BOOL, np.isnan(values).tolist())
    return write.node("Or", [found, write.node("And", [write.node("IsNaN", [X]), gaps])])
