"""Model files taken apart, edited and put together again, with checksums that are right."""

import copy
import io
import json
import zipfile

import numpy as np

DELETED = object()


def unpack(data):
    """JSON and arrays of a model file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        tree = json.loads(archive.read("model.json"))
        names = [name for name in archive.namelist() if name != "model.json"]
        return tree, [np.load(io.BytesIO(archive.read(name)), allow_pickle=False) for name in names]


def pack(tree, arrays):
    """Model file of any JSON, or text instead of it, and arrays, or bytes instead of them."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("model.json", tree if isinstance(tree, str | bytes) else json.dumps(tree))
        for i, array in enumerate(arrays):
            archive.writestr(f"{i}.npy", array if isinstance(array, bytes) else npy(array))
    return packed.getvalue()


def npy(array):
    packed = io.BytesIO()
    np.save(packed, array)
    return packed.getvalue()


def places(value, path=()):
    """Paths of all parts of JSON."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, part in entries:
        yield (*path, key)
        yield from places(part, (*path, key))


def edited(tree, path, value):
    """Copy of JSON in which a part is another, or ``DELETED``."""
    changed = copy.deepcopy(tree)
    part = changed
    for key in path[:-1]:
        part = part[key]
    if value is DELETED:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return changed


def number(tree, *names):
    """Number of the first array that a model file holds under these names, such as the name of an attribute."""
    return next(at(tree, path) for path in places(tree) if path[-len(names) - 1 :] == (*names, "array"))


def at(tree, path):
    """A part of JSON."""
    for key in path:
        tree = tree[key]
    return tree
