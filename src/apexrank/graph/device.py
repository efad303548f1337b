"""Graphs whose links are on a device: PageRank and L_pq ranks step there, for several teleport vectors at once."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

import numpy as np

from apexrank.errors import InputError
from apexrank.graph.graph import DeviceGraph, Graph, SignedGraph
from apexrank.graph.reading import as_graph
from apexrank.kernels.device_links import DeviceLinks
from apexrank.validation import check_choice


def to_device(
    graph: Any, device: Any = "cuda", dtype: Literal["float64", "float32"] = "float64"
) -> DeviceGraph | SignedGraph:
    """Copy the links of a graph to a device, where PageRank and L_pq ranks then iterate; needs PyTorch.

    `PageRank`, `TruncatedPageRank` and `LpqRank` (without weak links, and with a ratio above 1 or p = 1) keep links and
    vectors on the device and bring the scores back as NumPy arrays, with the same bounds on their error. Other ranks,
    and the spread of labels, take the links on the host. CUDA devices with Triton have a kernel for it, all others use
    operations of PyTorch.

    Parameters
    ----------
    graph : Graph, or anything :func:`apexrank.graph.as_graph` reads
        Of a signed graph the positive part is copied.
    device : str or torch.device
        As PyTorch names it: "cuda", "cuda:1", "cpu".
    dtype : {"float64", "float32"}
        Precision of scores. Single precision takes half the memory traffic, and its ``error_bound_`` is about 1e-5: set
        ``tol`` to match.

    Returns
    -------
    DeviceGraph
        For ``fit`` of a rank. The links on the device take 4 to 5 bytes each, with weights 12 to 15.

    Examples
    --------
    >>> from apexrank.graph import PageRank, to_device
    >>> there = to_device((["a", "b", "c"], ["b", "c", "b"]), "cpu")
    >>> PageRank().fit(there).ranking_.tolist()
    ['b', 'c', 'a']
    """
    check_choice("dtype", dtype, Literal["float64", "float32"])
    try:
        torch = import_module("torch")
    except ImportError:
        raise InputError("a graph on a device needs PyTorch: pip install torch") from None
    read = as_graph(graph)
    if isinstance(read, SignedGraph):
        return read._replace(positive=_moved(read.positive, device, dtype, torch))
    return _moved(read, device, dtype, torch)


def _moved(graph: Graph, device: Any, dtype: str, torch: Any) -> DeviceGraph:
    if not isinstance(graph, Graph):
        raise InputError("only a graph in memory can be copied to a device; rank this one where it is")
    if graph.indices.dtype != np.int32:
        raise InputError(f"a graph on a device has fewer than 2³¹ vertices, got {graph.n}")
    shares = None if graph.weights is None else graph.weights / graph.out_weight[graph.indices]
    try:
        indptr, indices, weights = [
            None if each is None else torch.from_numpy(np.array(each)).to(device)
            for each in (graph.indptr, graph.indices, shares)
        ]
    except (RuntimeError, AssertionError) as error:  # no such device, or not enough of its memory
        reason = str(error).strip().split("\n")[0]
        raise InputError(f"the graph cannot be copied to the device {str(device)!r}: {reason}") from None
    return DeviceGraph(graph, DeviceLinks(indptr, indices, weights, getattr(torch, dtype)))
