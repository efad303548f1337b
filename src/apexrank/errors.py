"""The errors apexrank raises on purpose: one line that says what is wrong and what to do."""


class ApexrankError(Exception):
    """Base class of every error apexrank raises on purpose."""


class InputError(ApexrankError, ValueError):
    """The data or an argument cannot be used as given."""


class MissingExtraError(ApexrankError, ImportError):
    """A feature needs an optional dependency that is not installed."""
