"""PrefLib files by name, from a folder or from ``APEXRANK_DATA``."""

from __future__ import annotations

from pathlib import Path

from apexrank.datasets.preflib import PreferenceProfile, is_preflib, read_preflib
from apexrank.errors import InputError
from apexrank_papers.data.sources import DATA_VARIABLE, MissingDataError, data_path


def load_preflib(name: str, folder: str | Path | None = None) -> PreferenceProfile:
    r"""Read a PrefLib file of a folder by name, with or without extension.

    Parameters
    ----------
    name : str
        Such as ``"00006-00000029"`` or ``"00006-00000029.soc"``; :func:`preflib_names` lists them.
    folder : str or Path, optional
        Folder of the files; default: ``aggregation/preflib`` below the folder named by the environment variable
        ``APEXRANK_DATA``.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank_papers.data import load_preflib, preflib_names
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "00001-00000001.soc").write_text("2\n1,tea\n2,milk\n4,4,1\n4,2,1\n")
    ...     preflib_names(folder), load_preflib("00001-00000001", folder)
    (['00001-00000001.soc'], PreferenceProfile('', 2 items, 1 orders, 4 voters))
    """
    where, names = _folder(folder), preflib_names(folder)
    found = [file for file in names if name in (file, file.removesuffix(".gz"), file.split(".")[0])]
    if len(found) > 1:
        raise InputError(f"{name!r} is the name of several files: give one of {', '.join(found)}")
    if not found:
        raise InputError(f"{where} has no PrefLib file {name!r}: preflib_names() lists its {len(names)}")
    return read_preflib(where / found[0])


def preflib_names(folder: str | Path | None = None) -> list[str]:
    """Sorted names of the PrefLib files of a folder; see :func:`load_preflib`.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank_papers.data import preflib_names
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     preflib_names(folder)
    []
    """
    files = _folder(folder).iterdir()
    return sorted(file.name for file in files if is_preflib(file))


def _folder(folder: str | Path | None) -> Path:
    found = data_path("aggregation", "preflib") if folder is None else Path(folder)
    if found is None or not found.is_dir():
        raise MissingDataError(
            "the PrefLib files are missing: put them into a folder aggregation/preflib below "
            f"{DATA_VARIABLE}, or name their folder"
        )
    return found
