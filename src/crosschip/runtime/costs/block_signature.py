"""Signatures of blocks: equal for blocks that take a device the same time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache

from crosschip.ir import ControlFlow, Extension, Operand, Operation, Shape, TensorType
from crosschip.ops import Operator
from crosschip.ops.definition.custom import PackagedOperator

_DIGITS = 32


def signature_of(
    operations: Sequence[Operation],
    inputs: Sequence[Operand],
    outputs: Sequence[Operand],
    form: str = "static",
) -> str:
    """Return the signature of operations: a digest, in hexadecimal.

    The operators, the values of their parameters, the types, shapes and kinds of quantization of
    their tensors and how these are connected count; names, elements of weights, scales and zero
    points do not.

    Args:
        operations: the operations, in an executable order.
        inputs: the operands that they read, without constants.
        outputs: the operands that others read.
        form: the form in which devices get the operations: with static or open sizes.
    """
    text = "\n".join([form, *_lines(operations, inputs, outputs)])
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]


def _lines(
    operations: Sequence[Operation], inputs: Sequence[Operand], outputs: Sequence[Operand]
) -> Iterator[str]:
    number = {operand: index for index, operand in enumerate(inputs)}
    yield "inputs " + " ".join([_type_text(operand.type) for operand in inputs])
    for operation in operations:
        parameters = _parameter_slots(operation)
        words = [operation.type]
        for index, operand in enumerate(operation.inputs):
            if operand is None:
                words.append("-")
            elif operand.content is None:
                words.append(str(number[operand]))
            elif parameters is None or parameters[index]:
                words.append(f"{operand.type.element_type}={_value_text(operand)}")
            else:
                words.append(f"constant:{_type_text(operand.type)}")
        words += _further_words(operation)
        for output in operation.outputs:
            number[output] = len(number)
            words.append(_type_text(output.type))
        yield " ".join(words)
    yield "outputs " + " ".join([str(number[operand]) for operand in outputs])


def _parameter_slots(operation: Operation) -> list[bool] | None:
    """Return whether each input fills a parameter; `None` if that is not known."""
    if not isinstance(operation, Operator):
        return None if isinstance(operation, ControlFlow) else [False] * len(operation.inputs)
    slots = type(operation).slots
    if operation.variadic is None:
        return [slot.parameter for slot in slots]
    first = next(index for index, slot in enumerate(slots) if slot.variadic)
    after = len(slots) - first - 1
    middle = len(operation.inputs) - first - after
    kinds = [slot.parameter for slot in slots]
    return [*kinds[:first], *[kinds[first]] * middle, *kinds[first + 1 :]]


def _value_text(operand: Operand) -> str:
    """Return the elements of a parameter, or the digest of many."""
    value = operand.value
    assert value is not None, "parameters are constants"
    if value.size <= 16:
        return str(value.tolist())
    return f"{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"


def _type_text(type_: TensorType) -> str:
    """Return the element type, the shape and the kind of quantization of a tensor."""
    shape = _shape_text(type_.shape)
    quantization = type_.quantization
    if quantization is None:
        return f"{type_.element_type.value}{shape}"
    kind = f"{quantization.axis},{len(quantization.scale)},{quantization.symmetric}"
    return f"{type_.element_type.value}{shape}({kind})"


@lru_cache(maxsize=4096)
def _shape_text(shape: Shape | None) -> str:
    """Return a shape in which open sizes have no names."""
    if shape is None:
        return "*"
    return str([size if isinstance(size, int) else "?" for size in shape])


def _further_words(operation: Operation) -> Iterator[str]:
    """Return what else the duration of an operation depends on."""
    if isinstance(operation, Extension):
        yield hashlib.sha256(operation.payload).hexdigest()
    elif isinstance(operation, PackagedOperator):
        yield hashlib.sha256(str(operation.code()).encode()).hexdigest()
    elif isinstance(operation, ControlFlow):
        yield str(sorted(operation.attributes.items()))
        for body in operation.bodies:
            outputs = [operand for operand in body.outputs.values() if not operand.is_constant]
            yield f"{{{signature_of(body.operations, list(body.inputs.values()), outputs)}}}"
