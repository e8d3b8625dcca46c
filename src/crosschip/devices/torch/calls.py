"""A model as a list of calls, and as one Python function of them.

The function has a line for each operation, so that nothing is looked up in a run: functions and
constants are its globals, and a tensor is released after its last use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from crosschip.ir import Model, Operand, Operation
from crosschip.ir.dataclass import dataclass

Kernel = Callable[..., Any]
"""Computes an operation from the tensors that it reads; returns its output, or all outputs."""

Program = Callable[..., list[torch.Tensor]]
"""Computes a model's outputs from its inputs."""

_FILE = "<calls of crosschip's program>"
_FIRST_LINE = 2


@dataclass(frozen=True, slots=True)
class Call:
    """An operation's kernel and the tensors that it reads.

    Attributes:
        operation: the operation.
        kernel: its function.
        reads: the arguments; `None` for an empty slot.
    """

    operation: Operation
    kernel: Kernel
    reads: Sequence[Operand | None]


def function_of(
    model: Model, calls: Sequence[Call], constants: dict[Operand, torch.Tensor]
) -> Program:
    """Return the function of a model whose operations are calls."""
    names = {operand: f"x{index}" for index, operand in enumerate(model.inputs.values())}
    space: dict[str, Any] = {}
    for index, (operand, tensor) in enumerate(constants.items()):
        names[operand] = f"c{index}"
        space[names[operand]] = tensor
    for call in calls:
        for output in call.operation.outputs:
            names[output] = f"t{len(names)}"
    lines = [f"def run({', '.join(names[o] for o in model.inputs.values())}):"]
    for index, (call, dead) in enumerate(zip(calls, _last_uses(model, calls), strict=True)):
        space[f"f{index}"] = call.kernel
        arguments = ", ".join("None" if o is None else names[o] for o in call.reads)
        targets = ", ".join(names[output] for output in call.operation.outputs)
        released = f"; del {', '.join(names[o] for o in dead)}" if dead else ""
        lines.append(f" {targets} = f{index}({arguments}){released}")
    lines.append(f" return [{', '.join(names[o] for o in model.outputs.values())}]")
    exec(compile("\n".join(lines), _FILE, "exec"), space)
    function: Program = space["run"]
    return function


def failing_call(error: BaseException, calls: Sequence[Call]) -> Call | None:
    """Return the call that raised an error, from the line of the function that did."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _FILE:
            index = trace.tb_lineno - _FIRST_LINE
            return calls[index] if index < len(calls) else None
        trace = trace.tb_next
    return None


def _last_uses(model: Model, calls: Sequence[Call]) -> list[list[Operand]]:
    """Return for each call the tensors that no later call or output reads."""
    needed = {*model.outputs.values(), *model.constants}
    dead: list[list[Operand]] = []
    for call in reversed(calls):
        accessed = dict.fromkeys(
            [*(o for o in call.reads if o is not None), *call.operation.outputs]
        )
        dead.append([operand for operand in accessed if operand not in needed])
        needed |= accessed.keys()
    return dead[::-1]
