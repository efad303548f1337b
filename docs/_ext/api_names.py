"""Resolve names of the library in docstrings, and leave out methods inherited from other packages.

A class lives in a module (``apexrank.rankers.push.PNormPush``) and is documented under the name that users import
(``apexrank.PNormPush``). Docstrings may use either, or the bare name where it is clear.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment


def resolve(target: str) -> Any:
    """Import the object with this dotted name; None if there is none."""
    parts = target.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part, None)
        return found
    return None


def candidates(node: pending_xref) -> Iterator[str]:
    """Full names that a reference may mean, from the innermost scope outwards."""
    target, module, owner = node["reftarget"].lstrip("."), node.get("py:module"), node.get("py:class")
    yield target
    if module and owner:
        home = getattr(resolve(f"{module}.{owner}"), "__module__", module)
        yield from (f"{module}.{owner}.{target}", f"{home}.{target}")
    while module:
        yield f"{module}.{target}"
        module = module.rpartition(".")[0]


def is_attribute(node: pending_xref) -> bool:
    """Whether the reference names an attribute that the enclosing class annotates or documents."""
    owner = resolve(f"{node.get('py:module')}.{node.get('py:class')}")
    name = node["reftarget"]
    return name in getattr(owner, "__annotations__", {}) or name in (getattr(owner, "__doc__", None) or "")


def documented(env: BuildEnvironment) -> dict[int, str]:
    """Documented names, by the ``id`` of their object."""
    names = {}
    for name in env.get_domain("py").objects:
        found = resolve(name)
        if found is not None:
            names[id(found)] = name
    return names


def find_documented(app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.Element) -> Any:
    """Point a reference to the page of the same object under another name."""
    if node.get("refdomain") != "py":
        return None
    if not hasattr(app, "_documented_names"):
        app._documented_names = documented(env)  # type: ignore[attr-defined]
    names = app._documented_names  # type: ignore[attr-defined]
    for candidate in candidates(node):
        found = resolve(candidate)
        if found is None:
            continue
        if id(found) in names:
            domain = env.get_domain("py")
            kind = domain.objects[names[id(found)]].objtype
            return domain.resolve_xref(env, node["refdoc"], app.builder, kind, names[id(found)], node, text)
        if getattr(found, "__module__", getattr(found, "__name__", "")).startswith("apexrank"):
            return text  # exists, inside a module without a page: shown, not linked
    return text if node["reftype"] == "attr" and is_attribute(node) else None


def skip_foreign(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Skip members that a class inherits from scikit-learn, NumPy or Python itself."""
    function = getattr(obj, "fget", obj)
    home = getattr(function, "__module__", None) or getattr(
        getattr(obj, "__objclass__", None), "__module__", ""
    )
    if what == "class" and not home.startswith("apexrank"):
        return True
    return None


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to unresolved references and to members of classes."""
    app.connect("missing-reference", find_documented)
    app.connect("autodoc-skip-member", skip_foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
