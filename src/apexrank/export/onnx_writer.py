"""Adding nodes and constants to a graph of skl2onnx."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import TensorProto
from skl2onnx.common.data_types import StringTensorType


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
