"""Linear features of a table, for tests of the encoding."""

from apexrank.io import Recipe
from apexrank.io.encode import LinearFeatures
from apexrank.io.types import parse_columns


def linear_features(table, columns, sample_weight=None, **options):
    """Features fitted on the table, and its matrix; ``options`` are those of a recipe."""
    cells = parse_columns(table, columns, training=True)
    encoder = LinearFeatures.of_cells(cells, columns, Recipe("y", **options), table.source, sample_weight)
    return encoder, encoder.transform(cells)
