"""Descriptions of operators for stubs: slots, signatures and undetermined properties."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crosschip.ir import InputError
from crosschip.ir.text import legible
from crosschip.opdef.custom.inference import OutputRules
from crosschip.opdef.custom.operator import CustomOperator
from crosschip.opdef.custom.package import Package
from crosschip.opdef.custom.slots import DefinedSlot, datatypes_of, default_array, describe_types
from crosschip.opdef.datatypes import Datatype
from crosschip.opdef.definitions import Input, OpDef, OpDefCollection, Parameter, Rank, Tensor
from crosschip.opdef.generation.names import class_name, module_name
from crosschip.opdef.generation.texts import join_words, paragraphs, sentence
from crosschip.ops.definition.slots import Slot

_AXES = {Rank.SCALAR: "a scalar", Rank.ONE: "1 axis", Rank.ANY: "any number of axes"}


class _Blank(CustomOperator):
    """Operator class that overrides all methods, so that no definition is incomplete."""

    __slots__ = ()

    def reference(self, **arrays: Any) -> Any:
        raise NotImplementedError

    def infer_shape(self) -> Any:
        raise NotImplementedError

    def infer_element_type(self) -> Any:
        raise NotImplementedError

    def output_count(self) -> int:
        raise NotImplementedError


@dataclass(frozen=True)
class Sketch:
    """Operator to generate a stub for.

    Attributes:
        collection: the definitions of the package.
        op_def: the operator's definition.
        operator: a class with the definition's slots and rules.
        module: the name of the module.
        class_name: the name of the class.
    """

    collection: OpDefCollection
    op_def: OpDef
    operator: type[CustomOperator]
    module: str
    class_name: str

    @cached_property
    def inputs(self) -> Sequence[tuple[Input, Slot]]:
        """The inputs, each with its slot."""
        return [(tensor, self._slot(tensor)) for tensor in self.op_def.inputs]

    @cached_property
    def parameters(self) -> Sequence[tuple[Parameter, Slot]]:
        """The parameters, each with its slot."""
        return [(tensor, self._slot(tensor)) for tensor in self.op_def.parameters]

    @property
    def has_shape(self) -> bool:
        """Whether the definition determines the outputs' shapes."""
        return self._follows(OutputRules.check_shape)

    @property
    def has_type(self) -> bool:
        """Whether the definition determines the outputs' element types."""
        return self._follows(OutputRules.check_type)

    @property
    def has_count(self) -> bool:
        """Whether the definition determines the number of outputs."""
        return self._follows(OutputRules.check_count)

    def arguments(self) -> Iterator[str]:
        """Yield the annotated arguments of the reference."""
        for tensor, slot in self.inputs:
            if tensor.repeated:
                yield f"{slot.name}: Sequence[Array]"
            elif isinstance(slot, DefinedSlot) and slot.optional:
                default = default_array(tensor, slot.stored)
                yield f"{slot.name}: Array{' | None' if default is None else ''}"
            else:
                yield f"{slot.name}: Array"

    def result_annotation(self) -> str:
        """Return the annotation of the reference's result."""
        outputs = self.op_def.outputs
        if outputs[-1].repeated:
            return "Sequence[Array]"
        return "Array" if len(outputs) == 1 else f"tuple[{', '.join(['Array'] * len(outputs))}]"

    def outputs_in_words(self) -> str:
        """Return the names of the outputs as a phrase."""
        names = [f"`{legible(output.name)}`" for output in self.op_def.outputs]
        return join_words(names) + (", which repeats" if self.op_def.outputs[-1].repeated else "")

    def description(self, width: int) -> list[str]:
        """Return the lines that describe the operator and its tensors."""
        lines: list[str] = []
        for part in paragraphs(self.op_def.description, width):
            lines += [*part, ""]
        for tensor, slot in (*self.inputs, *self.parameters):
            role = "an input" if isinstance(tensor, Input) else "a parameter"
            name = "" if tensor.name == slot.name else f"`{legible(tensor.name)}`, "
            lines += self._tensor_lines(f"{slot.name}: {name}{role}", tensor, slot.optional, width)
        for output in self.op_def.outputs:
            head = f"{legible(output.name)}: an output"
            lines += self._tensor_lines(head, output, not output.mandatory, width)
        return lines

    def _tensor_lines(self, head: str, tensor: Tensor, optional: bool, width: int) -> Iterator[str]:
        """Yield the lines about a tensor: a sentence, its description, and its constraints."""
        types = [(d.element_type, d.quantized) for d in self._datatypes(tensor)]
        type_text = describe_types(
            [(type_, quantized) for type_, quantized in types if type_ is not None]
        )
        facts = [head, type_text or "any type", *_facts(tensor, optional)]
        yield from sentence("; ".join(facts) + ".", width, "    ")
        for lines in paragraphs(tensor.description, width - 4):
            yield from (f"    {line}" for line in lines)
        for constraint in tensor.constraints:
            text = f"{constraint.type.value}: {constraint.text}"
            yield from (f"    {line}" for line in sentence(text, width - 4, "    "))

    def _datatypes(self, tensor: Tensor) -> Sequence[Datatype]:
        return datatypes_of(self.collection, self.op_def, tensor)

    def _slot(self, tensor: Tensor) -> Slot:
        slot = getattr(self.operator, self.operator.tensors[tensor.name])
        assert isinstance(slot, Slot)
        return slot

    def _follows(self, check: Callable[[OutputRules, str], None]) -> bool:
        try:
            for output in self.operator.output_rules:
                check(output, "")
        except InputError:
            return False
        return True


def make_sketch(package: Package, op_def: OpDef) -> Sketch:
    """Return the sketch of an operator.

    Raises:
        InputError: the definition yields no operator.
    """
    blank = type(op_def.name, (_Blank,), {"__slots__": (), "__module__": _Blank.__module__})
    operator = package.defines(op_def.name)(blank)
    return Sketch(
        package.collection, op_def, operator, module_name(op_def.name), class_name(op_def.name)
    )


def _facts(tensor: Tensor, optional: bool) -> Iterator[str]:
    rank, layout = tensor.shape.rank, tensor.shape.layout
    yield _AXES.get(rank, f"{rank.axes} axes") + (f", {layout.value}" if layout else "")
    if getattr(tensor, "repeated", False):
        yield "any number of them"
    enumeration = getattr(tensor, "enumeration", None)
    if enumeration is not None:
        yield f"one of {legible(', '.join(enumeration.names))}"
    default = getattr(tensor, "default", None)
    if default is not None:
        yield f"{legible(default.strip())} if it is left out"
    elif optional:
        yield "may be left out"
