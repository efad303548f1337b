"""Names for atoms: ``loss="hinge"`` and ``loss=Hinge()`` mean the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from apexrank.errors import InputError

Atom = TypeVar("Atom")


class Registry(Generic[Atom]):
    """The named members of one family of atoms."""

    def __init__(self, kind: str, base: type[Atom], members: Iterable[type[Any]]) -> None:
        self.kind = kind
        self.base = base
        self.members: dict[str, type[Any]] = {member.name: member for member in members}

    def get(self, spec: str | Atom, **arguments: Any) -> Atom:
        """Return ``spec`` itself, or make the atom it names, passing the arguments it knows."""
        if isinstance(spec, self.base):
            return spec
        if not isinstance(spec, str) or spec not in self.members:
            raise InputError(f"unknown {self.kind} {spec!r}: use one of {', '.join(self.members)}")
        member = self.members[spec]
        known = getattr(member, "__dataclass_fields__", {})
        return member(**{name: value for name, value in arguments.items() if name in known})
