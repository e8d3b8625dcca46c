"""The calls of a model as one graph, which PyTorch's compiler (TorchInductor) makes code of.

The calls are traced on zeros of the inputs' sizes. The compiler folds what weights determine and
stores them as its products need them. It has no guards of inputs, because their types are fixed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from time import perf_counter
from typing import Any
from warnings import catch_warnings

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from crosschip.devices.torch.calls import Program as Function
from crosschip.devices.torch.elements import inner
from crosschip.devices.torch.host_state import State
from crosschip.ir import Model

_logger = logging.getLogger("crosschip")

_OPTIONS = {"freezing": True, "compile_threads": 1}
"""One thread compiles in this process; more would leave processes behind."""
_TOLERANCE = 1e-3
_RUNS = 5
_MOST_SECONDS = 1.0


def one_graph(
    model: Model, function: Function, state: State, chip: torch.device, *, only_if_faster: bool
) -> Function:
    """Return the compiled graph of a model's function, or the function itself.

    A line of the log says why, if it is the function: sizes are not static, an operation needs
    values to go on, there is no compiler, outputs differ, or the graph is not faster.

    Args:
        model: the model.
        function: computes it by calls.
        state: the state of PyTorch in which it runs.
        chip: the chip.
        only_if_faster: whether the graph must be faster in a measurement.
    """
    if any(operand.type.static_shape is None for operand in model.inputs.values()):
        return _calls(model, function, "the sizes of its inputs are not static")
    examples = _examples(model, chip)
    try:
        with torch.no_grad(), catch_warnings(action="ignore"):  # of PyTorch's own modules
            graph = make_fx(function)(*examples)
            compiled: Any = torch._inductor.compile(graph, examples, options=_OPTIONS)
        outputs = state.call(compiled, *examples)
    except Exception as error:  # tracing and the compiler raise exceptions of many classes
        (line, *_) = [*str(error).strip().splitlines(), type(error).__name__]
        return _calls(model, function, f"it cannot be compiled as one graph: {line}")
    if not _agree(state.call(function, *examples), outputs):
        return _calls(model, function, "as one graph it computes something else")

    def run(*inputs: torch.Tensor) -> list[torch.Tensor]:
        return list(compiled(*inputs))

    if only_if_faster:
        seconds, seconds_of_graph = (_seconds(state, f, examples) for f in (function, run))
        if seconds_of_graph >= seconds:
            figures = f"{seconds_of_graph * 1e3:.3g} ms, not {seconds * 1e3:.3g}"
            return _calls(model, function, f"as one graph it takes {figures}")
    return run


def _calls(model: Model, function: Function, why: str) -> Function:
    """Return the function after a line that says why it is not one graph."""
    _logger.info("torch: %s runs call by call: %s", model.name, why)
    return function


def _examples(model: Model, chip: torch.device) -> list[torch.Tensor]:
    """Return inputs of the model's types: reals in [0, 1), other elements 0."""
    generator = torch.Generator().manual_seed(0)
    examples = []
    for operand in model.inputs.values():
        dtype, shape = inner(operand.type.element_type), operand.type.static_shape or ()
        real = dtype.is_floating_point
        numbers = torch.rand(shape, generator=generator) if real else torch.zeros(shape)
        examples.append(numbers.to(chip, dtype))
    return examples


def _agree(expected: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> bool:
    """Return whether outputs are equal but for the rounding of other orders of sums."""
    for one, other in zip(expected, outputs, strict=True):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        wide, other_wide = one.double(), other.double()
        scale = float(torch.nan_to_num(wide).abs().max()) if one.numel() else 0.0
        if not torch.allclose(other_wide, wide, _TOLERANCE, _TOLERANCE * scale, equal_nan=True):
            return False
    return True


def _seconds(state: State, function: Function, examples: Sequence[torch.Tensor]) -> float:
    """Return the least time of a few runs."""
    state.call(function, *examples)
    times: list[float] = []
    while len(times) < _RUNS and sum(times) < _MOST_SECONDS:
        start = perf_counter()
        outputs = state.call(function, *examples)
        for output in outputs:
            output.cpu()
        times.append(perf_counter() - start)
    return min(times)
