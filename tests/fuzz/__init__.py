"""Every reader against files that nobody would write on purpose: ``python -m tests.fuzz --help``."""
