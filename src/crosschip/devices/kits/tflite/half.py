"""Models of float16 in float32: TensorFlow Lite's kernels compute in float32."""

from __future__ import annotations

from crosschip.ir import ElementType, Model, Operand, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.lowering.type_conversion import retype
from crosschip.ops.standard.conversion import Cast
from crosschip.passes.base import Pass

_TYPES = {ElementType.FLOAT16: ElementType.FLOAT32}


@dataclass(frozen=True)
class ComputeInFloat32(Pass):
    """Replaces float16 by float32, with more digits than the model asks for.

    Inputs and outputs of the model stay float16.
    """

    exact = False

    def rewrite(self, model: Model) -> Model:
        if not any(_is_half(o) for operation in model.operations for o in operation.outputs):
            return model
        wide = retype(model, _TYPES)
        if wide is None:
            return model
        before, after = [], []
        for name, operand in model.inputs.items():
            if _is_half(operand):
                before.append(_cast(f"{name}.wide", operand, wide.inputs[name]))
        outputs = {}
        for name, operand in model.outputs.items():
            outputs[name] = wide.outputs[name]
            if _is_half(operand):
                outputs[name] = Operand(operand.name, operand.type)
                after.append(_cast(f"{name}.half", wide.outputs[name], outputs[name]))
        return Model(model.name, model.inputs, [*before, *wide.operations, *after], outputs)


def _is_half(operand: Operand) -> bool:
    return operand.type.element_type is ElementType.FLOAT16


def _cast(name: str, source: Operand, output: Operand) -> Operation:
    return Cast(name, Cast.bind(name, (source, output.type.element_type), {}), (output,))
