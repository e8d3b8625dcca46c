"""The binary form of a program.

    header    magic "FNPU", version, number of sections, length of all, CRC-32 of all that follows
    sections  for each its kind, offset and length
    TENSORS   a record for each tensor
    STEPS     a record for each step
    ARENA     the size of the arena
    WEIGHTS   the constants, as they lie in memory

All numbers are little-endian. What is read has been checked against the limits of the chip: a
program that `read` returns runs, whoever wrote it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from enum import IntEnum

from fake_npu_ddk.limits import check, check_tensor
from fake_npu_ddk.operators import CONSTANT_INPUTS, Operator, Settings
from fake_npu_ddk.program import Located, Place, Program, Step
from fake_npu_ddk.status import NpuError, Status
from fake_npu_ddk.tensors import BLOCK, DataType, Tensor

VERSION = 1
MAGIC = b"FNPU"

_HEADER = struct.Struct("<4sHHII")
_SECTION = struct.Struct("<III")
_TENSOR = struct.Struct("<BBBB4HdI")
_STEP = struct.Struct("<BBBBB2B2B2B8B4BHH16Hdd")
_ARENA = struct.Struct("<I")


class _Kind(IntEnum):
    TENSORS = 1
    STEPS = 2
    ARENA = 3
    WEIGHTS = 4


def write(program: Program) -> bytes:
    """The bytes of a program."""
    sections = {
        _Kind.TENSORS: b"".join(map(_tensor_bytes, program.tensors)),
        _Kind.STEPS: b"".join(map(_step_bytes, program.steps)),
        _Kind.ARENA: _ARENA.pack(program.arena),
        _Kind.WEIGHTS: program.weights,
    }
    offset = _HEADER.size + _SECTION.size * len(sections)
    table = b""
    for kind, content in sections.items():
        table += _SECTION.pack(kind, offset, len(content))
        offset += len(content)
    body = b"".join([table, *sections.values()])
    return _HEADER.pack(MAGIC, VERSION, len(sections), offset, zlib.crc32(body)) + body


def read(saved: bytes) -> Program:
    """The program of some bytes.

    Raises:
        NpuError: they are none, damaged, of another version, or ask for what the chip cannot do.
    """
    try:
        sections = _sections(saved)
        tensors = [_tensor(*fields) for fields in _TENSOR.iter_unpack(sections[_Kind.TENSORS])]
        steps = [_step(*fields) for fields in _STEP.iter_unpack(sections[_Kind.STEPS])]
        (arena,) = _ARENA.unpack(sections[_Kind.ARENA])
        program = Program(tensors, steps, arena, bytes(sections[_Kind.WEIGHTS]))
        _check(program)
    except (struct.error, ValueError, KeyError, IndexError) as error:
        raise NpuError(Status.DAMAGED_PROGRAM, str(error)) from error
    return program


def _sections(saved: bytes) -> dict[_Kind, memoryview]:
    magic, version, count, length, checksum = _HEADER.unpack_from(saved)
    if magic != MAGIC:
        raise ValueError("it does not begin as programs do")
    if version != VERSION:
        raise NpuError(Status.WRONG_VERSION, f"{version}, not {VERSION}")
    if length != len(saved) or checksum != zlib.crc32(memoryview(saved)[_HEADER.size :]):
        raise ValueError("its length or checksum is wrong")
    sections = {}
    for index in range(count):
        kind, offset, size = _SECTION.unpack_from(saved, _HEADER.size + index * _SECTION.size)
        if offset + size > length:
            raise ValueError("a section reaches beyond its end")
        sections[_Kind(kind)] = memoryview(saved)[offset : offset + size]
    return sections


def _tensor_bytes(located: Located) -> bytes:
    tensor = located.tensor
    sizes = (*tensor.shape, *(0,) * (4 - len(tensor.shape)))
    rank, zero = len(tensor.shape), tensor.zero_point
    return _TENSOR.pack(
        tensor.type, rank, zero, located.place, *sizes, tensor.scale, located.offset
    )


def _tensor(
    kind: int, rank: int, zero: int, place: int, *rest: float
) -> Located:  # the sizes, the scale and the offset
    *sizes, scale, offset = rest
    shape = tuple(int(size) for size in sizes[:rank])
    return Located(Tensor(DataType(kind), shape, scale, zero), Place(place), int(offset))


def _step_bytes(step: Step) -> bytes:
    settings = step.settings
    return _STEP.pack(
        step.operator,
        len(step.inputs),
        settings.axis,
        len(settings.pads),
        len(settings.order),
        *settings.kernel,
        *settings.strides,
        *settings.dilations,
        *settings.pads,
        *(0,) * (8 - len(settings.pads)),
        *settings.order,
        *(0,) * (4 - len(settings.order)),
        step.rows,
        step.output,
        *step.inputs,
        *(0,) * (16 - len(step.inputs)),
        settings.low,
        settings.high,
    )


def _step(operator: int, count: int, axis: int, pads: int, order: int, *rest: float) -> Step:
    *numbers, low, high = rest
    whole = [int(number) for number in numbers]
    settings = Settings(
        kernel=(whole[0], whole[1]),
        strides=(whole[2], whole[3]),
        dilations=(whole[4], whole[5]),
        pads=tuple(whole[6 : 6 + min(pads, 8)]),
        low=low,
        high=high,
        order=tuple(whole[14 : 14 + min(order, 4)]),
        axis=axis,
    )
    inputs = tuple(whole[20 : 20 + min(count, 16)])
    return Step(Operator(operator), inputs, whole[19], settings, whole[18])


def _check(program: Program) -> None:
    """Check that a program reads what is there, and does what the chip can do."""
    tensors = program.tensors
    for located in tensors:
        check_tensor(located.tensor)
    _check_places(tensors, program.arena, len(program.weights))
    known = {
        number
        for number, located in enumerate(tensors)
        if located.place in (Place.INPUT, Place.WEIGHTS)
    }
    for step in program.steps:
        if not known.issuperset(step.inputs) or step.output in known or step.rows < 1:
            raise ValueError("a step reads what is not there yet, or makes what is there")
        for place in CONSTANT_INPUTS.get(step.operator, ()):
            if tensors[step.inputs[place]].place is not Place.WEIGHTS:
                raise ValueError("weights are not constant")
        read = [tensors[number].tensor for number in step.inputs]
        check(step.operator, read, tensors[step.output].tensor, step.settings)
        known.add(step.output)
    if len(known) != len(tensors):
        raise ValueError("no step makes a tensor")


def _check_places(tensors: Sequence[Located], arena: int, weights: int) -> None:
    room = {Place.ARENA: arena, Place.WEIGHTS: weights}
    numbers: dict[Place, list[int]] = {Place.INPUT: [], Place.OUTPUT: []}
    for located in tensors:
        if located.place in numbers:
            numbers[located.place].append(located.offset)
        elif located.offset % BLOCK or located.offset + located.tensor.size > room[located.place]:
            raise ValueError("a tensor lies where there is no memory for it")
    for found in numbers.values():
        if sorted(found) != list(range(len(found))):
            raise ValueError("inputs or outputs are not numbered from 0")
    if not numbers[Place.OUTPUT]:
        raise ValueError("it has no output")
