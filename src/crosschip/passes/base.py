"""What a pass is, and how passes are run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import ClassVar

from crosschip.ir import Model
from crosschip.ir.garbage import collection_paused


class Keeps(Enum):
    """What a pass leaves as it was, besides the names and types of inputs and outputs.

    `VALUES`: every output, bit for bit. `MEANING`: every output, up to floating-point rounding.
    """

    VALUES = "values"
    MEANING = "meaning"


class Pass(ABC):
    """A rewriting of models.

    A pass gets a model that `Model.check` accepts and returns one, without changing the first; the
    names and element types of inputs and outputs stay. It is linear in the number of operations.

    Attributes:
        requires: passes that must have run before, for this one to find what it looks for.
        keeps: what else it leaves as it was.
    """

    requires: ClassVar[tuple[type[Pass], ...]] = ()
    keeps: ClassVar[Keeps]

    @abstractmethod
    def __call__(self, model: Model) -> Model:
        """The rewritten model."""


@collection_paused()
def run(model: Model, passes: Sequence[Pass]) -> Model:
    """Apply passes in order.

    Raises:
        ValueError: a pass stands before one that it requires.
    """
    done: set[type[Pass]] = set()
    for step in passes:
        for required in step.requires:
            if required not in done:
                raise ValueError(f"{type(step).__name__} must come after {required.__name__}")
        model = step(model)
        done.add(type(step))
    return model
