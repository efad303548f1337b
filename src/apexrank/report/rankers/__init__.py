"""Report of a comparison of rankers."""
