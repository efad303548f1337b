"""Mutation testing of kernels, atoms and objectives: ``python -m tests.mutation``.

The mutants are those of cosmic-ray's operators. Its own runner starts a new interpreter for each of them, which would
take days; here a mutant is a fork of a process that has imported everything but the package, and it runs only the tests
that run its line. Nothing is changed on disk.
"""
