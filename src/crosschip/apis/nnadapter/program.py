"""A model written out as a program in C that makes NNAdapter's calls."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crosschip.apis.nnadapter.calls import Calls
from crosschip.apis.nnadapter.enumerations import NNAdapterOperandPrecisionCode as Precision
from crosschip.apis.nnadapter.types import (
    NNAdapterAsymmPerLayerQuantParams,
    NNAdapterOperandType,
    NNAdapterSymmPerChannelQuantParams,
    NNAdapterSymmPerLayerQuantParams,
)

_TEMPLATE = Path(__file__).with_name("program.c")
_ALIGNMENT = 64


class Written(NamedTuple):
    """The files of a program.

    Attributes:
        source: the program in C.
        weights: the elements of its constants.
    """

    source: Path
    weights: Path


def write_program(calls: Calls, folder: Path, name: str) -> Written:
    """Write calls as a program in C, with a file of the elements of constants.

    The program says at its beginning how it is called.

    Args:
        calls: the calls.
        folder: where to write; there is one already.
        name: the name of the program; the files are `name.c` and `name.weights`.
    """
    written = Written(folder / f"{name}.c", folder / f"{name}.weights")
    places, size = _places(calls)
    with written.weights.open("wb") as file:
        for (_, value), place in zip(calls.operands, places, strict=True):
            if value is not None:
                file.seek(place)
                file.write(np.ascontiguousarray(value).tobytes())
        file.truncate(size)
    text = _TEMPLATE.read_text("utf-8")
    text = text.replace("@NAME@", name).replace("@BUILD@", _build(calls, places, size))
    written.source.write_text(text, "utf-8")
    return written


def _places(calls: Calls) -> tuple[Sequence[int], int]:
    """Where the elements of each operand are in the file, and how large it is."""
    places, end = [], 0
    for _, value in calls.operands:
        places.append(-(-end // _ALIGNMENT) * _ALIGNMENT)
        if value is not None:
            end = places[-1] + value.nbytes
    return places, end


def _build(calls: Calls, places: Sequence[int], size: int) -> str:
    """The part of the program that is this model's."""
    lines = [
        f"enum {{ INPUTS = {len(calls.inputs)}, OUTPUTS = {len(calls.outputs)} }};",
        f"static const size_t WEIGHTS = {size};",
        "",
        "static NNAdapterModel *build(unsigned char *weights)",
        "{",
        "    NNAdapterModel *model;",
        f"    NNAdapterOperand *x[{max(1, len(calls.operands))}];",
        "",
        "    (void)weights;",
        "    CALL(NNAdapterModel_create(&model));",
    ]
    for index, ((type_, value), place) in enumerate(zip(calls.operands, places, strict=True)):
        if value is None:
            lines += _statement(f"x[{index}] = variable(model, {_type(type_)});")
        else:
            where = f"weights + {place}, {value.nbytes}"
            lines += _statement(f"x[{index}] = constant(model, {_type(type_)}, {where});")
    for call in calls.operations:
        read, made = _operands(call.inputs), _operands(call.outputs)
        lines += _statement(f"operation(model, {call.code.name}, {read}, {made});")
    identified = f"{_operands(calls.inputs)}, {_operands(calls.outputs)}"
    lines += _statement(f"CALL(NNAdapterModel_identifyInputsAndOutputs(model, {identified}));")
    lines += ["    CALL(NNAdapterModel_finish(model));", "    return model;", "}"]
    return "\n".join(lines)


def _statement(text: str) -> Sequence[str]:
    """The lines of a statement."""
    wrapper = textwrap.TextWrapper(100, "    ", " " * 8)
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    return wrapper.wrap(text)


def _operands(places: Sequence[int | None]) -> str:
    """A number of operands, and the operands."""
    names = ["NULL" if place is None else f"x[{place}]" for place in places]
    return f"{len(names)}, OPERANDS({', '.join(names)})" if names else "0, NULL"


def _type(type_: NNAdapterOperandType) -> str:
    """An expression that makes a type."""
    data = type_.dimensions.data
    text = f"type_of({Precision(type_.precision).name}, {len(data)}, {_sizes(data)})"
    shapes = type_.dimensions.dynamic_data
    if shapes:
        sizes = [size for shape in shapes for size in shape]
        text = f"among({text}, {len(shapes)}, {_sizes(sizes)})"
    params = type_.quantization
    if isinstance(params, NNAdapterSymmPerLayerQuantParams):
        text = f"per_layer({text}, {_float(params.scale)})"
    elif isinstance(params, NNAdapterAsymmPerLayerQuantParams):
        text = f"asymmetric({text}, {_float(params.scale)}, {params.zero_point})"
    elif isinstance(params, NNAdapterSymmPerChannelQuantParams):
        scales = f"(float[]){{{', '.join(map(_float, params.scales))}}}"
        text = f"per_channel({text}, {params.channel_dim}, {len(params.scales)}, {scales})"
    return text


def _sizes(sizes: Sequence[int]) -> str:
    return f"SIZES({', '.join(map(str, sizes)) or '0'})"


def _float(value: float) -> str:
    """A literal that is this very float32."""
    return re.sub(r"\.0p", "p", float(np.float32(value)).hex()) + "f"
