"""Fuzzing of every file reader: ``python -m tests.fuzz --help``."""
