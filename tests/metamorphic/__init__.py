"""Metamorphic tests: relations that must hold between two runs, for every verb of the command line and every estimator.

A *subject* (a verb or an estimator) turns a generated case into numbers. A *relation* changes the case in a way that
must not change those numbers: rows shuffled, ids renamed, weights instead of repeated rows, another file format. Each
pair of a relation and a subject is a cell, and each cell is a test. `python -m tests.metamorphic` prints the cells, and
the reasons why some pairs have none; `python -m tests.metamorphic.mutants` measures which wrong programs they catch.
"""
