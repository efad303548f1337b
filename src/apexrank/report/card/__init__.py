"""The page of a scorecard, to print and to look up."""
