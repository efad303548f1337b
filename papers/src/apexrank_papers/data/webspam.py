"""Reader for the WEBSPAM-UK2006 and WEBSPAM-UK2007 collections: links between hosts, and spam labels of hosts.

Neither collection may be redistributed with this package: get the files from Carlos Castillo's page of the collections.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from inspect import cleandoc
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array
from sklearn.utils import Bunch

from apexrank.errors import InputError
from apexrank.files import numbered_lines

_LABELS = {b"spam": 1, b"nonspam": 0, b"normal": 0, b"undecided": -1, b"borderline": -1, b"unknown": -1}
_WHERE = "get it from the pages of the collection (Carlos Castillo, Web spam detection, datasets)"
_MOST = 2**31 - 1
_FEW_HOSTS = 1_000_000


class _Links(NamedTuple):
    """Links in file order; ``n`` is the number of hosts stated in the file, or ``None``."""

    sources: array
    targets: array
    counts: array
    n: int | None


def load_webspam(
    folder: str | Path,
    *,
    graph: str | Path | None = None,
    labels: str | Path | Sequence[str | Path] | None = None,
    names: str | Path | None = None,
) -> Bunch:
    r"""Read the host graph, labels and host names of WEBSPAM-UK2006 or WEBSPAM-UK2007, as distributed.

    The files are found by name anywhere below the folder, plain or gzip-compressed:

    - ``*hostgraph*``: for 2007, the number of hosts in the first line, then one line per host from 0 on,
      ``dest:nlinks dest:nlinks ...``, empty for a host without links; for 2006, lines ``source -> dest:nlinks ...``. A
      weight is the number of links between the pages of two hosts; counts of duplicate links are summed.
    - ``*labels*`` (all of them, training set 1 and test set 2): a host's number or name in the first column, and
      ``spam``, ``nonspam`` or ``normal``, ``undecided`` or ``borderline`` in any later one; other columns are ignored.
      Columns are separated by blanks or commas. UK2006's shorter lists ``*DomainOrTwoHumans*`` are read only if there
      are no others; pass ``labels`` to choose them.
    - ``*hostnames*``, optional unless the labels refer to hosts by name: lines ``number name``, or names alone, in
      order of host number from 0 on.

    Parameters
    ----------
    folder : str or Path
        Folder that contains the files, also in subfolders.
    graph, names : str or Path, optional
        The file to read instead of the one found; relative to the folder.
    labels : str, Path or list of them, optional
        The files to read instead of those found; relative to the folder.

    Returns
    -------
    Bunch
        With ``adjacency`` (CSR, int32), ``names`` (text; the numbers if there is no file), ``labels`` (1 spam, 0 not
        spam, -1 undecided or not judged), ``label_set`` (1 or 2 for hosts of the files named ``set1`` and ``set2``, 0
        for the others), ``source`` and ``DESCR``, which includes the number of spam hosts.

    Raises
    ------
    InputError
        For lines that cannot be parsed, naming file and line.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank_papers.data.webspam import load_webspam
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "uk.hostgraph.txt").write_text("3\n1:4 2:1\n\n0:2\n")
    ...     _ = (Path(folder) / "SET1-labels.txt").write_text("0 nonspam 0.0 j1:N\n2 spam 1.0 j1:S,j2:S\n")
    ...     hosts = load_webspam(folder)
    >>> hosts.adjacency.toarray().tolist(), hosts.labels.tolist(), hosts.label_set.tolist()
    ([[0, 4, 1], [0, 0, 0], [2, 0, 0]], [0, -1, 1], [1, 0, 1])
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"{root} is not a folder: give the folder that holds the collection's files")
    graph_file = _one(root, "hostgraph", "graph") if graph is None else root / graph
    label_files = _label_files(root) if labels is None else [root / file for file in _listed(labels)]
    found = _plain_first(root, "hostnames")
    names_file = root / names if names is not None else next(iter(found), None)
    links = _read_graph(graph_file)
    known = {} if names_file is None else _read_names(names_file, links.n)
    n = links.n
    if n is None:
        n = 1 + max(max(links.sources), max(links.targets), max(known.values(), default=0))
    if n > _FEW_HOSTS + 100 * (len(links.sources) + len(known)):
        raise InputError(
            f"{graph_file} goes up to host {n - 1}, but has {len(links.sources)} links: correct it"
        )
    values, sets = _read_labels(label_files, known, n)
    return Bunch(
        adjacency=_matrix(links, n),
        names=_name_array(known, n),
        labels=values,
        label_set=sets,
        source=str(root),
        DESCR=f"{cleandoc(load_webspam.__doc__ or '')}\n\n{_summary(values, len(links.sources))}",
    )


def _plain_first(root: Path, part: str) -> list[Path]:
    """Files whose name contains ``part``, in order; the plain file if it exists both plain and compressed."""
    files = sorted(path for path in root.rglob("*") if path.is_file() and part in path.name.lower())
    return [path for path in files if path.suffix != ".gz" or path.with_suffix("") not in files]


def _one(root: Path, part: str, argument: str) -> Path:
    files = _plain_first(root, part)
    if not files:
        raise InputError(f"there is no file *{part}* below {root}: {_WHERE}")
    if len(files) > 1:
        listed = ", ".join(str(file.relative_to(root)) for file in files)
        raise InputError(f"several files are named *{part}* below {root} ({listed}): choose with {argument}=")
    return files[0]


def _label_files(root: Path) -> list[Path]:
    files = _plain_first(root, "labels")
    if not files:
        raise InputError(f"there is no file *labels* below {root}: {_WHERE}")
    return [file for file in files if "domainortwohumans" not in file.name.lower()] or files


def _listed(files: str | Path | Sequence[str | Path]) -> list[str | Path]:
    return [files] if isinstance(files, str | Path) else list(files)


def _read_graph(file: Path) -> _Links:
    lines = numbered_lines(file)
    number, first = next(((number, line) for number, line in lines if line.strip()), (0, b""))
    has_arrows = b"->" in first
    n = None if has_arrows else _whole(first.strip(), _MOST)
    if not (has_arrows or n):
        raise InputError(
            f"{file} line {number or 1}: this is not a host graph, which starts with the number of hosts, "
            "or with source -> dest:nlinks"
        )
    links = _Links(array("i"), array("i"), array("i"), n)
    if n is None:
        for place, line in [(number, first), *lines]:
            if line.strip():
                _add_arrow(file, place, links, line)
        if not len(links.sources):
            raise InputError(f"{file} has no links: it needs lines source -> dest:nlinks dest:nlinks ...")
        return links
    host = 0
    for number, line in lines:
        if host < n:
            _add(file, number, links, host, line)
        elif line.strip():
            raise InputError(
                f"{file} line {number}: the file continues after the {n} hosts of its first line"
            )
        host += 1
    # the empty line of a last host without links may lack its line end, and is then not a line
    if host < n - 1:
        raise InputError(f"{file} ends after {host} of the {n} hosts of its first line: copy it again")
    return links


def _add_arrow(file: Path, number: int, links: _Links, line: bytes) -> None:
    source, arrow, rest = line.partition(b"->")
    host = _whole(source.strip(), _MOST - 1)
    if not arrow or host is None:
        raise InputError(f"{file} line {number}: {_shown(line)} is not source -> dest:nlinks ...")
    _add(file, number, links, host, rest)


def _add(file: Path, number: int, links: _Links, host: int, text: bytes) -> None:
    for field in text.replace(b",", b" ").split():
        target, colon, count = field.partition(b":")
        destination, weight = _whole(target, _MOST - 1), _whole(count, _MOST) if colon else 1
        if destination is None or not weight:
            raise InputError(f"{file} line {number}: {_shown(field)} is not dest:nlinks with whole numbers")
        if links.n is not None and destination >= links.n:
            raise InputError(
                f"{file} line {number}: host {destination} is beyond the {links.n} hosts of the first line"
            )
        links.sources.append(host)
        links.targets.append(destination)
        links.counts.append(weight)


def _read_names(file: Path, n: int | None) -> dict[str, int]:
    known: dict[str, int] = {}
    for number, line in numbered_lines(file):
        fields = line.split()
        if not fields:
            continue
        host = number - 1 if len(fields) == 1 else _whole(fields[0], _MOST - 1)
        if host is None:
            raise InputError(f"{file} line {number}: {_shown(line)} is not a host's number and its name")
        if n is not None and host >= n:
            raise InputError(f"{file} line {number}: host {host} is beyond the {n} hosts of the graph")
        known[fields[-1].decode(errors="replace")] = host
    return known


def _read_labels(files: list[Path], known: dict[str, int], n: int) -> tuple[np.ndarray, np.ndarray]:
    values, sets = np.full(n, -1, dtype=np.int8), np.zeros(n, dtype=np.int8)
    for file in files:
        part = next((k for k in (1, 2) if f"set{k}" in file.name.lower()), 0)
        for number, line in numbered_lines(file):
            fields = line.replace(b",", b" ").split()
            if not fields or line.startswith(b"#"):
                continue
            host = _host(file, number, fields[0], known, n)
            value = next((_LABELS[field.lower()] for field in fields[1:] if field.lower() in _LABELS), None)
            if value is None:
                raise InputError(
                    f"{file} line {number}: there is no label after the host; write one of "
                    f"{', '.join(label.decode() for label in _LABELS)}"
                )
            if value >= 0 and values[host] == 1 - value:
                raise InputError(
                    f"{file} line {number}: host {fields[0].decode()} is both spam and not spam; remove one"
                )
            values[host] = max(value, values[host])
            sets[host] = part
    return values, sets


def _host(file: Path, number: int, field: bytes, known: dict[str, int], n: int) -> int:
    host = _whole(field, n - 1)
    if host is None:
        host = known.get(field.decode(errors="replace"))
    if host is None:
        why = "not among the names" if known else "not a host of the graph, and there is no file *hostnames*"
        why = f"beyond the {n} hosts of the graph" if field.isdigit() else why
        raise InputError(f"{file} line {number}: host {_shown(field)} is {why}")
    return host


def _whole(text: bytes, most: int) -> int | None:
    """Parse a whole number from 0 to ``most``, or return ``None``."""
    return int(text) if text.isdigit() and len(text) < 20 and int(text) <= most else None


def _shown(text: bytes) -> str:
    text = text.strip()
    return repr(text[:40].decode(errors="replace") + ("..." if len(text) > 40 else ""))


def _matrix(links: _Links, n: int) -> csr_array:
    ends = np.frombuffer(links.sources, np.intc), np.frombuffer(links.targets, np.intc)
    matrix = csr_array(coo_array((np.frombuffer(links.counts, np.intc), ends), shape=(n, n)))
    matrix.sum_duplicates()
    return matrix


def _name_array(known: dict[str, int], n: int) -> np.ndarray:
    names = np.array([str(host) for host in range(n)], dtype=object)
    names[list(known.values())] = list(known)
    return names


def _summary(values: np.ndarray, links: int) -> str:
    spam, honest = int((values == 1).sum()), int((values == 0).sum())
    share = f" ({100 * spam / (spam + honest):.1f} % of the judged ones)" if spam + honest else ""
    return (
        f"{len(values):,} hosts, {links:,} links; {spam:,} hosts are spam{share}, {honest:,} are not, "
        f"{len(values) - spam - honest:,} are undecided or not judged."
    )
