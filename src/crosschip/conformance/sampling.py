"""Random uses of an operator: random walks that start from an example and stay valid.

Each step makes a random change, which is undone if inference rejects the result. All uses are
therefore valid, however rare valid ones are, and combine conditions that no example has.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from crosschip.conformance.draw import Draw
from crosschip.conformance.random_changes import RANDOM_CHANGES, redraw, resize
from crosschip.conformance.uses import Use, draws, is_small, is_valid, replaced, use_of
from crosschip.ops import Operator, examples_of
from crosschip.ops.definition.examples import Example, Sample

_LENGTHS = (2, 5, 8, 12, 20, 30)
_WEIGHTS, _FUNCTIONS = zip(*RANDOM_CHANGES, strict=True)
_TRIES = 30
_UNFIT = 0.15
"""The share of later runs whose sizes may be inconsistent, so that they must be refused."""


def random_use(operator: type[Operator], seed: str) -> Use:
    """Return the random use of a seed, always the same one."""
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
    """Return the use after one to three random changes; the same use if that is invalid."""
    moved: Use | None = use
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        (move,) = random.choices(_FUNCTIONS, _WEIGHTS)
        moved = move(moved or use, random) or moved
    return use if moved is None else _if_valid(moved, use)


def other_run(operator: type[Operator], arguments: Example, *, named: bool) -> Example:
    """Return samples for another run: other sizes where they are dynamic, else other data.

    Equal arguments give equal samples.
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
    """Return whether no tensor is empty."""
    return all(0 not in (draw.type.shape or ()) for draw in draws(use.arguments).values())


def _if_valid(moved: Use, otherwise: Use) -> Use:
    return moved if is_valid(moved) else otherwise


def _later(use: Use, random: Random) -> Example:
    """Return samples for another run, with other sizes of random inputs if they are dynamic."""
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
            other = redraw(draws(later.arguments)[name], later, random)
            changed = replaced(later.arguments, {name: other})
            if is_small(use.operator, changed):
                later = replace(later, arguments=changed)
    return samples_only(later.arguments)


def samples_only(arguments: Example) -> dict[str, Any]:
    """Return the arguments that are samples, or lists that contain samples."""
    return {n: v for n, v in arguments.items() if isinstance(v, Sample | list)}


def _within(use: Use, resized: Example) -> dict[str, Any]:
    """Return the arguments with the sizes of another use on all dynamic dimensions."""
    sizes: dict[str, Sample] = {}
    for name, draw in draws(resized).items():
        own = draws(use.arguments)[name]
        scales = own.type.quantization
        if _is_open(own) and (scales is None or scales.axis is None):
            sizes[name] = draw
    return replaced(use.arguments, sizes)


def _is_open(draw: Draw) -> bool:
    return draw.value is None and not draw.constant
