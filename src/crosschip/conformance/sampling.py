"""Random uses of an operator: walks that begin at an example and stay among the valid ones.

Every step makes a random move and is taken back where inference refuses what it leads to. So all
that is reached is valid, however rare validity is, and conditions meet that no example has.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from crosschip.conformance.draw import Draw
from crosschip.conformance.moves import MOVES, redrawn, resize
from crosschip.conformance.uses import Use, draws, is_small, is_valid, replaced, use_of
from crosschip.ops import Operator, examples_of
from crosschip.ops.definition.examples import Example, Sample

_LENGTHS = (2, 5, 8, 12, 20, 30)
_WEIGHTS, _FUNCTIONS = zip(*MOVES, strict=True)
_TRIES = 30
_UNFIT = 0.15
"""The share of later runs whose sizes need not fit; what does not is refused when it runs."""


def random_use(operator: type[Operator], seed: str) -> Use:
    """The use of an operator that a seed stands for, always the same one."""
    random = Random(seed)
    use = use_of(operator, random.choice(examples_of(operator)))
    for _ in range(random.choice(_LENGTHS) * (2 + len(operator.slots)) // 4):
        use = step(use, random)
    if random.random() < 0.4:
        use = _if_valid(replace(use, named=True), use)
    if random.random() < 0.1:
        use = replace(use, loaded=True)
    count = random.choice((0, 1, 1, 2))
    return replace(use, runs=tuple(_later(use, random) for _ in range(count)))


def step(use: Use, random: Random) -> Use:
    """The use after a move, now and then after two or three at once; the same if it is invalid."""
    moved: Use | None = use
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        (move,) = random.choices(_FUNCTIONS, _WEIGHTS)
        moved = move(moved or use, random) or moved
    return use if moved is None else _if_valid(moved, use)


def other_run(operator: type[Operator], arguments: Example, *, named: bool) -> Example:
    """Samples for a second run: of other sizes where they are open, else the same with other data.

    The same for the same arguments, whenever it is asked for.
    """
    random, use = Random(operator.type), use_of(operator, arguments)
    for _ in range(_TRIES if named else 0):
        moved = resize(use, random)
        if moved is not None:
            moved = replace(use, arguments=_within(use, moved.arguments))
            if moved.arguments != use.arguments and _is_filled(moved) and is_valid(moved):
                return samples_only(moved.arguments)
    return samples_only(arguments)


def _is_filled(use: Use) -> bool:
    """Tell whether all tensors have elements."""
    return all(0 not in (draw.type.shape or ()) for draw in draws(use.arguments).values())


def _if_valid(moved: Use, otherwise: Use) -> Use:
    return moved if is_valid(moved) else otherwise


def _later(use: Use, random: Random) -> Example:
    """Samples for another run: other data, and other sizes of random inputs if they are open."""
    later = replace(use, named=False, runs=())
    for _ in range(random.choice((0, 1, 1, 2))):
        if use.named and random.random() < 0.7:
            moved = resize(later, random)
            if moved is not None:
                moved = replace(later, arguments=_within(later, moved.arguments))
                fits = random.random() < _UNFIT or is_valid(moved)
                later = moved if fits and is_small(use.operator, moved.arguments) else later
            continue
        inputs = [name for name, draw in draws(later.arguments).items() if not draw.constant]
        if inputs:
            name = random.choice(inputs)
            other = redrawn(draws(later.arguments)[name], later, random)
            changed = replaced(later.arguments, {name: other})
            if is_small(use.operator, changed):
                later = replace(later, arguments=changed)
    return samples_only(later.arguments)


def samples_only(arguments: Example) -> dict[str, Any]:
    """The arguments that are samples, or lists with some in them."""
    return {n: v for n, v in arguments.items() if isinstance(v, Sample | list)}


def _within(use: Use, resized: Example) -> dict[str, Any]:
    """The arguments with the sizes of another, where the model leaves them open."""
    sizes: dict[str, Sample] = {}
    for name, draw in draws(resized).items():
        own = draws(use.arguments)[name]
        scales = own.type.quantization
        if _is_open(own) and (scales is None or scales.axis is None):
            sizes[name] = draw
    return replaced(use.arguments, sizes)


def _is_open(draw: Draw) -> bool:
    return draw.value is None and not draw.constant
