"""A model together with its static sizes in a run."""

from __future__ import annotations

from collections.abc import Mapping

from crosschip.ir import InputError, Model, Operand
from crosschip.ir.dataclass import dataclass
from crosschip.passes import Specialize
from crosschip.runtime.shapes.policy import is_open

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class SizedModel:
    """A model, and the same model with static sizes as far as they are known before a run.

    Attributes:
        model: the model.
        static: the model with static sizes; the model itself if it has no other.
        shapes: the shapes of the inputs, by name.
    """

    model: Model
    static: Model
    shapes: Shapes

    @classmethod
    def of(cls, model: Model, shapes: Shapes) -> SizedModel:
        """Infer the sizes of a model for shapes of its inputs; unknown ones remain."""
        if not is_open(model):
            return cls(model, model, shapes)
        try:
            static = Specialize(shapes)(model)
        except InputError:
            static = model
        return cls(model, static, shapes)

    @property
    def is_open(self) -> bool:
        """Whether the model has sizes that its types leave open."""
        return self.static is not self.model

    def originals(self) -> Mapping[Operand, Operand]:
        """Return the operand of the model for each operand of `static`, without constants."""
        pairs = [*zip(self.static.inputs.values(), self.model.inputs.values(), strict=True)]
        for ours, theirs in zip(self.static.operations, self.model.operations, strict=True):
            pairs += zip(ours.outputs, theirs.outputs, strict=True)
        return dict(pairs)
