"""Shapes of inputs in words: for messages, as arguments, and as options of commands."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from crosschip.ir import TensorType
from crosschip.ir.dimension import is_unknown
from crosschip.ir.shape_binding import bind, open_names

Given = Mapping[str, int | tuple[int, ...]]
"""What `shapes=` takes: shapes by the names of inputs, and sizes by their own."""


def shapes_in_words(shapes: Mapping[str, Sequence[int]]) -> str:
    """Shapes as in `x=1x3x48x320, n=4`; an input without axes is left out."""
    return ", ".join(f"{name}={'x'.join(map(str, s))}" for name, s in shapes.items() if s)


def shortest(types: Mapping[str, TensorType], shapes: Mapping[str, tuple[int, ...]]) -> Given:
    """What to give as `shapes=` so that all inputs have these shapes.

    Single sizes are given by name, but the whole shape of an input that leaves a size without a
    name, or the number of its axes, open; nothing is given twice.

    Args:
        types: those of the inputs, by name.
        shapes: those that they are to have, by name.
    """
    unnamed = [n for n, t in types.items() if t.shape is None or any(map(is_unknown, t.shape))]
    whole = {name: shapes[name] for name in unnamed if name in shapes}
    known = bind(types, whole)
    all_sizes = bind(types, {name: shape for name, shape in shapes.items() if name in types})
    left = {name: type_.substitute(known) for name, type_ in types.items() if name not in whole}
    sizes: dict[str, int] = {}
    for name in open_names(left.values()):
        size = all_sizes.get(name)
        if name in types or not isinstance(size, int):
            return {name: shapes[name] for name, type_ in types.items() if _is_open(type_)}
        sizes[name] = size
    return {**whole, **sizes}


def as_argument(shapes: Given) -> str:
    """What is given as the argument of `crosschip.compile`: `shapes={'x': (1, 3, 48, 320)}`."""
    return f"shapes={dict(shapes)!r}"


def as_options(shapes: Given) -> str:
    """What is given as options of commands, quoted for a shell: `--shape x=1x3x48x320`."""
    texts = {
        name: str(value) if isinstance(value, int) else "x".join(map(str, value))
        for name, value in shapes.items()
    }
    return " ".join(f"--shape {shlex.quote(f'{name}={text}')}" for name, text in texts.items())


def _is_open(type_: TensorType) -> bool:
    return type_.static_shape is None
