"""Detection of foreign file formats by their first bytes, so that readers can reject them with a useful message.

Text readers get the check from :func:`apexrank.textfile.opened`; readers of binary formats and graphs call
:func:`seems`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

HEAD = 1 << 13  # bytes to inspect
BINARY = "binary data: give the text file that it was made from"
_UNPACK = "unpack it"
_TABLE = "export its table as CSV or Parquet"

# The first pattern that matches at the start of a file determines its format and the advice.
_FOREIGN = (
    (rb"PK\x03\x04[\0-\xff]*?(?:xl/|\[Content_Types\])", f"an Excel workbook or Office document: {_TABLE}"),
    (rb"PK\x03\x04[\0-\xff]*?\.npy", "an archive of NumPy arrays (.npz): save its table as CSV or Parquet"),
    (rb"PK[\x03\x05]", f"a zip archive: {_UNPACK}"),
    (rb"\xd0\xcf\x11\xe0", f"an Excel workbook or Office document (before 2007): {_TABLE}"),
    (rb"PAR1", "a Parquet file: give it a name that ends in .parquet"),
    (rb"ARROW1|\xff\xff\xff\xff.\0\0\0", "an Arrow or Feather file: save its table as CSV or Parquet"),
    (rb"\x93NUMPY", "a NumPy array (.npy): save it as CSV or Parquet"),
    (
        rb"\x80[\x02-\x05]|\((?:dp|lp)\d+\n|c(?:copy_?reg|numpy|pandas|builtins|__main__)[\w.]*\n",
        "a pickle, which can run code: save its table as CSV or Parquet",
    ),
    (rb"SQLite format 3", f"an SQLite database: {_TABLE}"),
    (
        rb"\x89HDF|ORC[\0-\x08]|Obj\x01|<stata_dta>|\$FL[23]|RD[AX]\d\n",
        f"another program's data file: {_TABLE}",
    ),
    (rb"\x1f\x8b", f"compressed by gzip twice: {_UNPACK} once"),
    (
        rb"BZh\d1AY|\xfd7zXZ|\x28\xb5\x2f\xfd|7z\xbc\xaf|x[\x01\x9c\xda]|Rar!",
        f"compressed by a program other than gzip: {_UNPACK}",
    ),
    (rb"[\0-\xff]{257}ustar", f"a tar archive: {_UNPACK}"),
    (rb"%PDF-|\{\\rtf", "a document (PDF or RTF): export its table as CSV"),
    (
        rb"\x89PNG|\xff\xd8\xff|GIF8[79]a|BM....\0\0\0\0|II\*\0|MM\0\*|RIFF....WEBP",
        "an image: give the data behind it",
    ),
    (rb"\x7fELF|MZ[\0-\xff]{2}[\0-\x08]", "a program: give a file of data"),
    (
        rb"\xff\xfe\0\0|\0\0\xfe\xff|\xff\xfe|\xfe\xff|(?:[\t\n\r -~]\0){8}|(?:\0[\t\n\r -~]){8}",
        "UTF-16 or UTF-32 text: save the file as UTF-8",
    ),
    (rb"version https://git-lfs", "a pointer of Git LFS: fetch the file itself with git lfs pull"),
    (rb"apexrank model \d", "a model file of apexrank: give it where a model is expected"),
    (
        rb"\s*<[^<>\s]+>\s+<[^<>\s]+>\s+[<\"_][^\n]*\.\s",
        "RDF N-Triples: write its links as CSV, source and target",
    ),
    (
        rb"(?i)\s*<(?:\?xml\b[^>]*>\s*)?(?:<!--.*?-->\s*)?<?(?:graphml|gexf)\b",
        "a graph (GraphML or GEXF): use it with apexrank graph",
    ),
    (
        rb"(?i)\s*<(?:!doctype\s+html|html|head|body|title|meta|script|div|p|h1|pre|center|table)\b",
        "an HTML page, perhaps an error page in place of a download: download the file again",
    ),
    (rb"(?i)\s*<(?:\?xml|!doctype|!--|svg|rss|feed|kml)", f"XML: {_TABLE}"),
    (
        rb"(?i)\s*(?:strict\s+)?(?:di)?graph\b[^\n\[{]*+\s*\{",
        "a Graphviz file: write its links as CSV, source and target",
    ),
    (
        rb"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S*\s+\S*\s?\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|ERROR|FATAL|CRIT)"
        rb"|\S+ \S+ \S+ \[\d\d?/[A-Z][a-z]{2}/\d{4}:|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [^\s,;]+:",
        "a log file: extract a table from it",
    ),
    (rb"\s*\{\s*(?:\"|\}|\Z)", "JSON or JSON lines: write its records as CSV or Parquet"),
    (
        rb"\s*\[(?:\s*[\[{\"]|\s*-?\d[\d.eE+-]*\s*[,\n]|\s*\Z)",
        "a JSON array: write its records as CSV or Parquet",
    ),
    (rb"(?:%[^\n]*\n|\s)*(?i:@relation)\b", f"an ARFF file: {_TABLE}"),
    (rb"---\s*\n", "YAML or Markdown: write its table as CSV"),
    (rb"(?:[^\n]*\n){0,20}[ |:]*-{3,}[ :-]*\|[ |:-]*\n", "Markdown: write its table as CSV"),
    (rb"#!", "a script: give a file of data"),
    (
        rb"(?i)(?:--[^\n]*\n|\s)*(?:create\s+table|insert\s+into|drop\s+table|begin\s+transaction|pragma)\b",
        f"SQL: {_TABLE}",
    ),
)
# Text formats of apexrank, for readers that expect a different one.
OURS = (
    (
        rb"\S+[ \t]+qid:\S+[ \t]+\d+:",
        "a LETOR file of rows to rank: give it where such tables are read, under a name that ends in .txt",
    ),
    (rb"\S+[ \t]+Q0[ \t]+\S+[ \t]+\d+[ \t]+\S+[ \t]+\S+\s", "a TREC run: evaluate it with `qrels`"),
    (
        rb"(?:\S+[ \t]+0[ \t]+(?=\S*[A-Za-z])\S+[ \t]+-?\d+\r?\n){3}",
        "TREC relevance judgements: evaluate a run with them as `qrels`",
    ),
    (
        rb"# (?:FILE NAME|TITLE|NUMBER ALTERNATIVES|ALTERNATIVE NAME \d+):",
        "a PrefLib file of ballots: give it to aggregate or cluster, under a name such as .soc or .toi",
    ),
)


def seems(head: bytes, ours: bool = False, but: Sequence[str] = ()) -> str | None:
    r"""Identify a foreign format from the first bytes of a file, with advice; None for plain text.

    ``ours`` also reports the text formats of this package. Formats whose description begins with an entry of ``but``
    are accepted.

    Examples
    --------
    >>> seems(b"PK\x05\x06")
    'a zip archive: unpack it'
    >>> seems(b"id,amount\n1,2.5\n") is None
    True
    """
    head = head[:HEAD]
    for mark, what in (*_FOREIGN, *(OURS if ours else ())):
        if re.match(mark, head, re.DOTALL):
            return None if what.startswith(tuple(but)) else what
    return BINARY if b"\0" in head and "binary" not in but else None
