"""Triton kernels run by NumPy, one program after another: their arithmetic is tested where there is no device."""

import numpy as np


class Block(np.ndarray):
    """Triton tile with the operations that the kernels need; a scalar is a tile without axes."""

    def to(self, dtype):
        return self.astype(dtype).view(Block)

    def __iadd__(self, other):  # names are not shared with what they were before
        return self + other


def block(values):
    return np.asarray(values).view(Block)


class Pointer:
    """Address of an element of a flat array, or a tile of addresses."""

    def __init__(self, memory, offset=0):
        self.memory, self.offset = memory, offset
        self.dtype = self
        self.element_ty = memory.dtype

    def __add__(self, offset):
        return Pointer(self.memory, self.offset + offset)

    def __getitem__(self, index):
        return Pointer(self.memory, self.offset[index])


class Language:
    """``triton.language`` in NumPy, for one program at a time."""

    float64, int64 = np.float64, np.int64

    def __init__(self, program, programs):
        self.program, self.programs = program, programs

    def program_id(self, axis):
        return block(self.program[axis])

    def num_programs(self, axis):
        return self.programs[axis]

    def load(self, pointer, mask=True, other=None, eviction_policy=None):
        offset, mask = np.broadcast_arrays(pointer.offset, mask)
        assert np.all(offset[mask] >= 0)
        safe = np.where(mask, offset, 0)
        assert safe.max(initial=0) < len(pointer.memory), "read outside of the array"
        fill = 0 if other is None else other
        return block(np.where(mask, pointer.memory[safe], np.asarray(fill, pointer.memory.dtype)))

    def store(self, pointer, values, mask=True):
        offset, values, mask = np.broadcast_arrays(pointer.offset, values, mask)
        assert np.all((offset[mask] >= 0) & (offset[mask] < len(pointer.memory))), "written outside"
        pointer.memory[offset[mask]] = values[mask]

    def arange(self, first, last):
        return block(np.arange(first, last, dtype=np.int32))

    def zeros(self, shape, dtype):
        return block(np.zeros(shape, dtype))

    def full(self, shape, value, dtype):
        return block(np.full(shape, value, dtype))

    def range(self, first, last, step, num_stages):
        return range(first, last, step)

    def cdiv(self, a, b):
        return -(-a // b)

    def where(self, condition, a, b):
        kind = next((x.dtype for x in (a, b) if isinstance(x, np.ndarray)), None)
        return block(np.asarray(np.where(condition, a, b), kind))


def _wrapped(function):
    return staticmethod(lambda *args, **options: block(function(*args, **options)))


for _name in ("sum", "max", "maximum", "exp", "log"):
    setattr(Language, _name, _wrapped(getattr(np, _name)))


class Kernel:
    """Kernel launched on host tensors."""

    def __init__(self, function, module):
        self.function, self.module = function, module

    def __getitem__(self, grid):
        def start(*args, num_warps=None, **constants):
            pointers = [
                Pointer(each.numpy().reshape(-1)) if hasattr(each, "numpy") else each for each in args
            ]
            for program in np.ndindex(*grid):
                self.module.tl = Language(program, grid)
                with np.errstate(all="ignore"):
                    self.function(*pointers, **constants)

        return start


def emulate(monkeypatch, *modules):
    """Run the kernels of modules in NumPy on host tensors, whether or not Triton is installed."""
    for module in modules:
        monkeypatch.setattr(module, "tl", None)
        for name, value in list(vars(module).items()):
            function = getattr(value, "fn", value)  # what triton.jit was given
            annotations = getattr(function, "__annotations__", {}).values()
            if "tl.constexpr" in annotations:
                monkeypatch.setattr(module, name, Kernel(function, module))
