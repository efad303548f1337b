"""Export to ONNX with skl2onnx; the graphs are built in :mod:`.onnx_graph`, which needs the extra packages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from apexrank.errors import MissingExtraError
from apexrank.export.features import found
from apexrank.files import check_writable, write_bytes
from apexrank.io.table_ranker import TableRanker

if TYPE_CHECKING:
    import onnx


def to_onnx(
    model: Any, X: Any = None, *, path: str | Path | None = None, target_opset: int | None = None
) -> onnx.ModelProto:
    """Convert a linear or additive ranker, a pipeline that ends in one, a model file's ranker or a card to ONNX.

    The output ``score`` is the ranking score of each row. For a two-class ranker, ``label`` is the result of
    ``predict``; for a TableRanker it is 1 for the positive value of the target, else 0. Scores are doubles and agree
    with those of the ranker to about 1e-12 of their scale. If a pipeline receives a single-precision array, its steps
    round to that precision, and scores agree to about 1e-6.

    Parameters
    ----------
    model : fitted ranker, Pipeline, TableRanker or scorecard
        A pipeline may contain any step that skl2onnx can convert. A card has one input per column, and no label.
    X : array, sparse array or frame, optional
        Some rows that define the input types: one tensor for an array (a dense one also for a sparse X), one input
        ``(rows, 1)`` per column of a frame. A frame must have the columns that the model was fitted on, in any order.
        By default one tensor of doubles; for a TableRanker always one input per column.
    path : str or Path, optional
        File to write, atomically, in addition to returning the model.
    target_opset : int, optional
        Version of the ONNX operator set.

    Returns
    -------
    onnx.ModelProto

    Notes
    -----
    Column inputs are doubles (floats if X has single precision) or strings. A missing number is NaN, a missing string
    is empty. A column called "score" or "label" becomes the input "score_input" or "label_input", because the outputs
    keep their names; the ``doc_string`` of each input is its column. If the model would reject a row, because a value
    is missing, infinite or unknown, its score is NaN, and its label that of a low score.

    Categories of a TableRanker are strings as in its table, without surrounding blanks; a whole number may have a point
    and up to two zeros, and a number may be in Python's notation.

    Examples
    --------
    >>> import numpy as np
    >>> from apexrank import PNormPush
    >>> X, y = np.array([[0.0], [1.0], [2.0], [1.5]]), [0, 0, 1, 0]
    >>> graph = to_onnx(PNormPush(p=2, alpha=0.1).fit(X, y), X)
    >>> [output.name for output in graph.graph.output]
    ['label', 'score']
    """
    register_onnx()
    import onnx

    from apexrank.export.onnx_graph import model_graph, table_graph

    if path is not None:
        check_writable(path)
    model = found(model)
    by_columns = isinstance(model, TableRanker) or hasattr(model, "points_form")
    make = table_graph if by_columns else model_graph
    graph = make(model, X, target_opset)
    onnx.checker.check_model(graph, full_check=True)
    if path is not None:
        write_bytes(path, graph.SerializeToString())
    return graph


def register_onnx() -> None:
    """Register converters of the linear rankers with skl2onnx, for ``skl2onnx.to_onnx``; may be called repeatedly.

    Examples
    --------
    >>> import numpy as np
    >>> register_onnx()
    >>> from skl2onnx import to_onnx
    >>> from apexrank import IRPush
    >>> X, y = np.array([[0.0], [1.0], [2.0], [1.5]]), [0, 0, 1, 1]
    >>> graph = to_onnx(IRPush().fit(X, y), X)
    >>> graph.graph.input[0].type.tensor_type.elem_type  # double
    11
    """
    try:
        import skl2onnx  # noqa: F401
    except ImportError as error:
        raise MissingExtraError('ONNX needs onnx and skl2onnx: pip install "apexrank[export]"') from error
    from apexrank.export.onnx_graph import register_converters

    register_converters()
