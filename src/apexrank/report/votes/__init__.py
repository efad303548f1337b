"""Report on aggregated ballots: how settled the result is.

``methods`` aggregates the same ballots by other methods, ``voters`` analyses majorities, agreement and camps,
``summary`` holds the findings with a verdict, and ``page`` renders them.
"""
