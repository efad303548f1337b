"""Figures to files."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apexrank.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import numpy as np

_FORMATS = (".png", ".svg", ".pdf")


def check_picture(path: Path) -> None:
    """Say early why a picture could not be written."""
    from apexrank.atomic import check_writable

    if path.suffix.lower() not in _FORMATS:
        raise InputError(f"cannot tell the format of {str(path)!r}: use one of {', '.join(_FORMATS)}")
    check_writable(path)
    use_files_only()


def prepare_folder(out: Path, *names: str) -> None:
    """Make a folder, and say early why one of the files could not be written into it."""
    from apexrank.atomic import check_writable

    if out.exists() and not out.is_dir():
        raise InputError(f"cannot write into {str(out)!r}: it is not a folder")
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        check_writable(out / name)


def use_files_only() -> None:
    """Draw without a screen, which a server has none of."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError('pictures need matplotlib: pip install "apexrank[plot]"') from None
    matplotlib.use("Agg")


def save_figure(figure: Any, path: Path) -> None:
    """Write a matplotlib figure, whole or not at all."""
    from apexrank.atomic import write_bytes

    picture = BytesIO()
    figure.savefig(picture, format=path.suffix.lower().lstrip("."), dpi=150)
    write_bytes(path, picture.getvalue())


def save_roc(
    scores: Mapping[str, np.ndarray], y: np.ndarray, path: Path, sample_weight: np.ndarray | None = None
) -> None:
    """Write the ROC curves of several rankers, whole and leftmost."""
    use_files_only()
    from matplotlib import pyplot as plt

    from apexrank.plot import RocTopDisplay

    figure = RocTopDisplay.from_scores(scores, y, sample_weight=sample_weight).figure_
    save_figure(figure, path)
    plt.close(figure)
