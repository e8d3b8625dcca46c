"""The standard operators as one OpDef collection, with a supplement for each device.

The definitions are derived from the operators' slots. The supplements come from `supports`: each
device is queried about the operators' examples with all element types and other parameter values;
nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import crosschip
from crosschip.conformance.variations import (
    QUANTIZATIONS,
    interesting,
    leading_quantized,
    replaced,
    retyped,
)
from crosschip.hal import Options
from crosschip.ir import ElementType, Error, Model, Operand
from crosschip.ir.types import ALL_TYPES, QUANTIZABLE
from crosschip.lowering.decomposition import Ask
from crosschip.mapping.opsets import opset_mapping
from crosschip.opdef.datatypes import Datatype
from crosschip.opdef.definitions import (
    Code,
    Constraint,
    ConstraintType,
    Content,
    Description,
    Enumeration,
    Input,
    OpDef,
    OpDefCollection,
    OpDefList,
    Output,
    Parameter,
    Rank,
    Reference,
    Shape,
    SupplementalOpDef,
    SupplementalOpDefList,
    SupplementalTensor,
    SupportedOps,
)
from crosschip.ops import Operator, examples_of, operators
from crosschip.ops.definition import slots
from crosschip.ops.definition.examples import Example, model_of, samples
from crosschip.runtime.catalog import documentation
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.queries import device_query

_OPTIONS = Options()
_ONNX = "https://onnx.ai/onnx/operators/onnx__{}.html"


def standard_collection(devices: Sequence[GuardedDevice] = ()) -> OpDefCollection:
    """Return the standard operators as OpDefs, with a supplement for each device.

    A supplement lists the operators of which the device supports an example, the datatypes of each
    tensor if it supports fewer than the operator has, and the parameters that it supports at their
    defaults only. Element types for which OpDef has no word (bfloat16, narrow floats, …) are
    omitted.

    Args:
        devices: the devices to query.
    """
    all_uses = [uses for uses in map(_Uses, operators().values()) if uses.op_def]
    return OpDefCollection(
        package_name="crosschip",
        domain="crosschip",
        version=crosschip.__version__,
        definitions=OpDefList(op_defs=tuple(uses.op_def for uses in all_uses)),
        supplements=tuple(_supplement(device, all_uses) for device in devices),
    )


@dataclass
class _Uses:
    """The uses of an operator from which its definition and its supplements are derived.

    Attributes:
        operator: the operator.
        plain: the models of its examples.
        typed: those of its examples with tensors of other types.
        settings: those of its examples with a parameter at another value than its default.
        op_def: the definition.
    """

    operator: type[Operator]
    plain: list[Model] = field(init=False)
    typed: list[Model] = field(init=False)
    settings: dict[str, list[Model]] = field(init=False)
    op_def: OpDef = field(init=False)

    def __post_init__(self) -> None:
        operator, examples = self.operator, examples_of(self.operator)
        self.plain = [model_of(operator, arguments) for arguments in examples]
        self.typed = [m for e in examples for m in _models(operator, _in_other_types(operator, e))]
        self.settings = {
            slot.name: [m for e in examples for m in _models(operator, _at_other_values(slot, e))]
            for slot in operator.slots
            if isinstance(slot, slots.Parameter) and slot.optional and slot.default is not None
        }
        self.op_def = _op_def(operator, [*self.plain, *self.typed])


def _models(operator: type[Operator], uses: Iterator[Example]) -> Iterator[Model]:
    """Return the models of the examples that are valid uses."""
    for arguments in uses:
        try:
            yield model_of(operator, arguments)
        except (Error, ValueError):
            continue


def _in_other_types(operator: type[Operator], arguments: Example) -> Iterator[Example]:
    """Vary the element type of each input of an example, with the tensors that share its type."""
    tensors = [slot for slot in operator.slots if not slot.parameter]
    for slot in tensors:
        if slot.like is not None:
            continue
        alike = {other.name for other in tensors if slot.name in (other.name, other.like)}
        own = {n: s for n, s in samples(arguments) if n.partition(".")[0] in alike}
        for element_type in sorted(slot.types, key=str) if own else ():
            yield replaced(arguments, {n: retyped(s, element_type) for n, s in own.items()})
    for words in QUANTIZATIONS:
        quantized = leading_quantized(operator, arguments, words)
        if quantized is not None:
            yield quantized


def _at_other_values(slot: slots.Parameter[Any], arguments: Example) -> Iterator[Example]:
    if arguments.get(slot.name, slot.default) != slot.default:
        yield arguments
    for value in interesting(slot, arguments):
        if value != slot.default:
            yield {**arguments, slot.name: value}


def _op_def(operator: type[Operator], models: Sequence[Model]) -> OpDef:
    inputs = [_input(slot) for slot in operator.slots if not slot.parameter]
    settings = [slot for slot in operator.slots if isinstance(slot, slots.Parameter)]
    return OpDef(
        name=operator.type,
        description=Description(parts=(Content(text=documentation(operator)),)),
        references=tuple(
            Reference(source="ONNX", url=_ONNX.format(name))
            for name in opset_mapping(operator).onnx
        ),
        inputs=tuple(inputs),
        outputs=tuple(_outputs(models, inputs[0])),
        parameters=tuple(map(_parameter, settings)),
    )


def _datatypes(types: Sequence[tuple[ElementType, bool]]) -> tuple[Datatype, ...]:
    """Return the datatypes of (element type, quantized) pairs, in the document's order."""
    datatypes = {Datatype.of(element_type, quantized) for element_type, quantized in types}
    return tuple(datatype for datatype in Datatype if datatype in datatypes)


def _types(slot: slots.Slot) -> list[tuple[ElementType, bool]]:
    quantized = QUANTIZABLE if slot.takes_reals else frozenset()
    return [(t, False) for t in slot.types] + [(t, True) for t in quantized & ALL_TYPES]


def _input(slot: slots.Slot) -> Input:
    alike = f"dtype({slot.name}) == dtype({slot.like})"
    rule = Constraint(id=0, type=ConstraintType.DATATYPE, text=alike)
    return Input(
        name=slot.name,
        mandatory=not slot.optional,
        constraints=(rule,) if slot.like else (),
        datatypes=_datatypes(_types(slot)),
        shape=Shape(rank=Rank.ANY),
        repeated=slot.variadic,
    )


def _parameter(slot: slots.Parameter[Any]) -> Parameter:
    choices = list(slot.options or ())
    counted = [choice.value for choice in choices] == list(range(len(choices)))
    numbers = tuple(Code(text=f"{choice.name} = {choice.value}") for choice in choices)
    length = None if slot.length is None else f"[{slot.length}]"
    named = bool(choices) and counted and slot.rank == 0
    return Parameter(
        name=slot.name,
        description=Description(parts=(Content(text=slot.kind), *(() if named else numbers))),
        mandatory=not slot.optional,
        datatypes=_datatypes(_types(slot)),
        shape=Shape(rank=Rank.ONE if slot.rank else Rank.SCALAR, text=length),
        default=None if slot.default is None else _text(slot.default, named),
        enumeration=Enumeration(names=tuple(c.name for c in choices)) if named else None,
    )


def _text(value: object, named: bool) -> str:
    """Format a parameter's value as the document writes defaults."""
    if isinstance(value, tuple):
        return f"[{', '.join(_text(part, named) for part in value)}]"
    if isinstance(value, ElementType):
        return str(value.code)
    if isinstance(value, Enum):
        return value.name if named else str(value.value)
    return str(int(value)) if isinstance(value, bool) else str(value)


def _outputs(models: Sequence[Model], first: Input) -> Iterator[Output]:
    """Return the outputs; one repeated output if their number varies and they share a type.

    An output that is quantized in some model takes the quantization of the first input.
    """
    quantized = {datatype for datatype in first.datatypes if datatype.quantized}
    outputs_of_models = [model.operations[0].outputs for model in models]
    counts = {len(outputs) for outputs in outputs_of_models}
    alike = all(len({_type(o) for o in outputs}) == 1 for outputs in outputs_of_models)
    repeated = len(counts) > 1 and alike
    for index in range(1 if repeated else max(counts)):
        datatypes = set(
            _datatypes([_type(outs[index]) for outs in outputs_of_models if index < len(outs)])
        )
        datatypes |= quantized if datatypes & quantized else set()
        yield Output(
            name="output" if max(counts) == 1 or repeated else f"output{index}",
            mandatory=index < min(counts),
            datatypes=tuple(datatype for datatype in Datatype if datatype in datatypes),
            shape=Shape(rank=Rank.ANY),
            repeated=repeated,
        )


def _type(operand: Operand) -> tuple[ElementType, bool]:
    return operand.type.element_type, operand.type.quantization is not None


def _supplement(device: GuardedDevice, all_uses: Sequence[_Uses]) -> SupplementalOpDefList:
    ask = device_query(device, _OPTIONS)
    accounts = {uses.operator.type: _supported_subset(ask, uses) for uses in all_uses}
    return SupplementalOpDefList(
        backend=device.name,
        supported=SupportedOps(
            names=tuple(n for n, supplement in accounts.items() if supplement is not None)
        ),
        op_defs=tuple(
            supplement
            for supplement in accounts.values()
            if supplement and (supplement.inputs or supplement.parameters)
        ),
    )


def _supported_subset(ask: Ask, uses: _Uses) -> SupplementalOpDef | None:
    """Return the subset of an operator that a device supports; `None` if it supports no example."""

    def runs(model: Model) -> bool:
        return bool(ask(model).answers[0])

    if not any(map(runs, uses.plain)):
        return None
    supported: dict[str, list[tuple[ElementType, bool]]] = {}
    for model in (*uses.plain, *uses.typed):
        (operation,) = model.operations
        if runs(model):
            for slot, operand in operation.named_inputs():
                supported.setdefault(slot, []).append(_type(operand))
    fewer = {
        tensor.name: datatypes
        for tensor in uses.op_def.inputs
        if (datatypes := _datatypes(supported.get(tensor.name, ())))
        and not set(datatypes) >= set(_datatypes(_queried_types(uses, tensor.name)))
    }
    only = [n for n, models in uses.settings.items() if models and not any(map(runs, models))]
    return SupplementalOpDef(
        name=uses.operator.type,
        inputs=tuple(
            SupplementalTensor(name=n, datatypes=datatypes) for n, datatypes in fewer.items()
        ),
        parameters=tuple(SupplementalTensor(name=n, only_default=True) for n in only),
    )


def _queried_types(uses: _Uses, name: str) -> list[tuple[ElementType, bool]]:
    """Return the element types of a tensor about which devices are queried."""
    return [
        _type(operand)
        for model in (*uses.plain, *uses.typed)
        for slot, operand in model.operations[0].named_inputs()
        if slot == name
    ]
