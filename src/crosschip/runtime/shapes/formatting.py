"""Formatting of shapes of inputs: for messages, as arguments, and as command-line options."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from crosschip.ir import TensorType
from crosschip.ir.dimension import is_unknown
from crosschip.ir.shape_binding import bind, open_names

ShapesArgument = Mapping[str, int | tuple[int, ...]]
"""The type of `shapes=`: shapes by the names of inputs, and sizes by their names."""


def shapes_in_words(shapes: Mapping[str, Sequence[int]]) -> str:
    """Format shapes as `x=1x3x48x320, n=4`, without scalars."""
    return ", ".join(f"{name}={'x'.join(map(str, s))}" for name, s in shapes.items() if s)


def shortest(
    types: Mapping[str, TensorType], shapes: Mapping[str, tuple[int, ...]]
) -> ShapesArgument:
    """Return the shortest argument `shapes=` that gives all inputs these shapes.

    It has sizes by name, and whole shapes of inputs with an unnamed dynamic size or dynamic rank.

    Args:
        types: the types of the inputs, by name.
        shapes: the shapes of the inputs, by name.
    """
    unnamed = [n for n, t in types.items() if t.shape is None or any(map(is_unknown, t.shape))]
    whole = {name: shapes[name] for name in unnamed if name in shapes}
    bound_sizes = bind(types, whole)
    all_sizes = bind(types, {name: shape for name, shape in shapes.items() if name in types})
    remaining = {
        name: type_.substitute(bound_sizes) for name, type_ in types.items() if name not in whole
    }
    sizes: dict[str, int] = {}
    for name in open_names(remaining.values()):
        size = all_sizes.get(name)
        if name in types or not isinstance(size, int):
            return {name: shapes[name] for name, type_ in types.items() if _is_open(type_)}
        sizes[name] = size
    return {**whole, **sizes}


def as_argument(shapes: ShapesArgument) -> str:
    """Format the argument of `crosschip.compile`: `shapes={'x': (1, 3, 48, 320)}`."""
    return f"shapes={dict(shapes)!r}"


def as_options(shapes: ShapesArgument) -> str:
    """Format options of commands, quoted for a shell: `--shape x=1x3x48x320`."""
    texts = {
        name: str(value) if isinstance(value, int) else "x".join(map(str, value))
        for name, value in shapes.items()
    }
    return " ".join(f"--shape {shlex.quote(f'{name}={text}')}" for name, text in texts.items())


def _is_open(type_: TensorType) -> bool:
    return type_.static_shape is None
