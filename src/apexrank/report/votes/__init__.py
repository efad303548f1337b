"""The report on merged ballots: how settled an aggregation is.

``methods`` merges the same ballots by other methods, ``voters`` looks at majorities, agreement and camps, ``summary``
is what was found with its verdict, and ``page`` draws it.
"""
