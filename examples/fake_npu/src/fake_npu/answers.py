"""What the device says about the operations of a model."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.devices.kits.onnx.units import computes_float32, merge_overlapping
from crosschip.hal import CompileError, Group, Offer, Refusal, Rule, Support
from crosschip.hal.converters import to_support
from crosschip.hal.device import single_operation_model
from crosschip.ir import Model, Operation
from crosschip.ops.standard.quantization import Dequantize, Quantize
from fake_npu.assembly import Assembly, tensor_of
from fake_npu.converters import converters
from fake_npu.work import Job, jobs_of, on_bytes
from fake_npu_ddk import NpuError, Status

_RULES = {
    Status.UNSUPPORTED_TYPE: Rule.ELEMENT_TYPE,
    Status.UNSUPPORTED_SHAPE: Rule.SHAPE,
    Status.OUT_OF_MEMORY: Rule.CAPACITY,
}

_FLOAT32 = Refusal(
    "",
    "is float32, which the chip does not compute: quantize the model, or ask for float16",
    Rule.OPTION,
)
_ALONE = Refusal(
    "",
    "stands alone; what enters and leaves is converted beside what the chip computes",
    Rule.GROUP,
)


def offer(model: Model, *, half: bool) -> Offer:
    """The answers about a model, in which conversions are taken with what they are around.

    Args:
        model: the model.
        half: whether float32 is to be computed in float16.
    """
    place = {operation.name: index for index, operation in enumerate(model.operations)}
    own: dict[str, Support] = {}
    taken: list[Sequence[int]] = []
    for unit in on_bytes(model):
        told = next((no for job in jobs_of(unit) if not (no := answer(job, half=half))), None)
        if told is None:
            taken.append([place[member.name] for member in unit.operations])
            own.update((member.name, Support(True)) for member in unit.operations)
        else:
            own[unit.whole.name] = told
    for operation in model.operations:
        if not isinstance(operation, Quantize | Dequantize) and operation.name not in own:
            own[operation.name] = answer(Job(operation), half=half)
    readers = _readers(model)
    for operation in model.operations:
        if isinstance(operation, Quantize | Dequantize) and operation.name not in own:
            told = answer(Job(operation), half=half)
            maker = model.producers.get(operation.input)
            beside = [*readers.get(operation.name, ()), *([maker.name] if maker else [])]
            near = half or any(own.get(name) for name in beside)
            own[operation.name] = told if near or not told else to_support(operation, _ALONE)
    groups = merge_overlapping(taken)
    answers = [own[operation.name] for operation in model.operations]
    why = "a quantized operation with the conversions around it"
    return Offer(answers, [Group(group, why) for group in groups if len(group) < len(place)])


def answer(job: Job, *, half: bool) -> Support:
    """The answer about one job: it is converted for trial, and the DDK is asked.

    Args:
        job: the job.
        half: whether float32 is to be computed in float16.
    """
    operation = job.operation
    if not half and computes_float32(operation):
        return to_support(operation, _FLOAT32)
    refusal = _unlike_the_chips(operation)
    supported = to_support(operation, refusal) if refusal else converters.supports(operation)
    if not supported:
        return supported
    assembly = Assembly()
    assembly.bounds = job.bounds
    try:
        for operand in single_operation_model(operation).inputs.values():
            assembly.define(operand, assembly.graph.input(tensor_of(operand)))
        converters.convert(assembly, operation)
    except (NpuError, CompileError) as error:
        told = error if isinstance(error, NpuError) else error.__cause__
        if not isinstance(told, NpuError):
            raise
        return to_support(operation, Refusal("", told.detail, _RULES.get(told.status, Rule.VALUE)))
    return supported


def _unlike_the_chips(operation: Operation) -> Refusal | None:
    """The rule that a tensor breaks which is not like those of the chip, whatever reads it."""
    named = [*operation.named_inputs(), *(("output", output) for output in operation.outputs)]
    for slot, operand in named:
        if operand.type.quantization is not None and operand.type.quantization.axis is not None:
            return Refusal(slot, "has a scale for each index of an axis", Rule.QUANTIZATION)
        if operand.type.static_shape is None and operation.type in converters.operators:
            return Refusal(slot, "has a size that is not known", Rule.SHAPE)
    return None


def _readers(model: Model) -> dict[str, list[str]]:
    """For each operation the names of those that read what it makes."""
    found: dict[str, list[str]] = {}
    for operation in model.operations:
        for operand in operation.inputs:
            maker = None if operand is None else model.producers.get(operand)
            if maker is not None:
                found.setdefault(maker.name, []).append(operation.name)
    return found
