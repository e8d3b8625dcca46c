"""The reference device: runs every operator by its NumPy definition.

It is always available, and its results define the operators. ONNX operations outside the standard
set are run by ONNX's reference evaluator, as far as it implements them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import deepcopy
from time import perf_counter
from typing import Any

import numpy as np

from crosschip.hal import (
    SCHEDULING,
    YES,
    Capabilities,
    Device,
    Forking,
    Kind,
    Options,
    Profiler,
    Program,
    Rule,
    Step,
    Support,
)
from crosschip.ir import Array, DeviceError, Extension, Model, ModelFileError, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.ir.version import VERSION
from crosschip.ops import Operator, operators
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.ops.definition.kernel import Kernel
from crosschip.ops.definition.serialization import from_bytes, to_bytes


class ReferenceDevice(Device):
    """NumPy on the processor."""

    vendor = "crosschip"
    kind = Kind.CPU

    @property
    def version(self) -> str:
        return VERSION

    def capabilities(self) -> Capabilities:
        return Capabilities(
            threads=True,
            tied_to=(),
            holds_weights=True,
            settable_at_load=SCHEDULING,
            forking=Forking.IDLE,
        )

    def supports(self, operation: Operation, options: Options) -> Support:
        if isinstance(operation, PackagedOperator) and not operation.computes():
            return Support.no(operation, "", "has no reference, only parts", Rule.OPERATOR)
        if isinstance(operation, Operator):
            return YES
        if isinstance(operation, Extension):
            # Imported late: slow to import, and rarely needed.
            from crosschip.devices.reference import evaluator

            return evaluator.supports(operation)
        return Support.no(operation, "", "is not a standard operator", Rule.OPERATOR)

    def operators(self) -> Collection[str]:
        return operators().keys()

    def compile(self, model: Model, options: Options) -> Program:
        return ReferenceProgram(model)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        try:
            return ReferenceProgram(from_bytes(saved, "saved program"), model)
        except ModelFileError as error:
            raise DeviceError(f"reference: {error}") from None


@dataclass(frozen=True, slots=True)
class _Call:
    """An operation, its kernel, and the indices of its operands, results and last uses."""

    operation: Operation
    kernel: Kernel
    reads: Sequence[int | None]
    writes: Sequence[int]
    dead: Sequence[int]

    def run(self, values: list[Array | None]) -> None:
        try:
            results = self.kernel([None if i is None else values[i] for i in self.reads])
        except (
            ArithmeticError,
            DeviceError,
            IndexError,
            MemoryError,
            RuntimeError,
            ValueError,
        ) as error:
            name = f"{self.operation.type} {self.operation.name}"
            raise DeviceError(f"reference: {name}: {error}") from error
        for index, result in zip(self.writes, results, strict=True):
            values[index] = result
        for index in self.dead:
            values[index] = None


class ReferenceProgram(Program):
    """A list of kernels over numbered values, each released after its last use.

    Args:
        model: the model.
        named: the same model with the caller's operation names, if they differ.
    """

    def __init__(self, model: Model, named: Model | None = None) -> None:
        self._model = model
        number = {operand: i for i, operand in enumerate(model.inputs.values())}
        self._constants: list[tuple[int, Array]] = []
        for operand in model.constants:
            number[operand] = len(number)
            elements = operand.value
            assert elements is not None, "constants have values"
            self._constants.append((number[operand], elements))
        accesses: list[tuple[list[int | None], list[int]]] = []
        for operation in model.operations:
            reads = [None if o is None else number[o] for o in operation.inputs]
            for output in operation.outputs:
                number[output] = len(number)
            accesses.append((reads, [number[output] for output in operation.outputs]))
        self._count = len(number)
        self._outputs = [number[operand] for operand in model.outputs.values()]
        self._calls = [
            _Call(named_operation, _kernel(operation), reads, writes, dead)
            for operation, named_operation, (reads, writes), dead in zip(
                model.operations,
                (named or model).operations,
                accesses,
                self._last_uses(accesses),
                strict=True,
            )
        ]

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        values = self._values(inputs)
        for call in self._calls:
            call.run(values)
        return self._results(values, inputs)

    def profiler(self) -> Profiler:
        # Imported late: rarely needed.
        from crosschip.devices.kits.step_profiler import StepProfiler

        return StepProfiler(self.run_timed)

    def run_timed(self, inputs: Sequence[Array]) -> tuple[Sequence[Array], list[Step]]:
        """Return the outputs and the time of each operation."""
        values = self._values(inputs)
        steps = []
        beginning = end = perf_counter()
        for call in self._calls:
            start = end
            call.run(values)
            end = perf_counter()
            operation = call.operation
            steps.append(Step(operation.type, end - start, (operation,), start - beginning))
        return self._results(values, inputs), steps

    def _values(self, inputs: Sequence[Array]) -> list[Array | None]:
        values: list[Array | None] = [*inputs, *(None,) * (self._count - len(inputs))]
        for index, constant in self._constants:
            values[index] = constant
        return values

    def _results(self, values: Sequence[Array | None], inputs: Sequence[Array]) -> list[Array]:
        try:
            return self._owned([values[index] for index in self._outputs], inputs)
        except MemoryError as error:
            raise DeviceError(f"reference: its outputs: {error}") from error

    def save(self) -> bytes:
        return to_bytes(self._model)

    def _last_uses(self, calls: Sequence[tuple[list[int | None], list[int]]]) -> list[list[int]]:
        """Return for each call the indices of values that no later call or output uses."""
        needed = set(self._outputs)
        dead: list[list[int]] = []
        for reads, writes in reversed(calls):
            accessed = {i for i in (*reads, *writes) if i is not None}
            dead.append(sorted(accessed - needed))
            needed |= accessed
        return dead[::-1]

    def _owned(self, outputs: Sequence[Array | None], inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs in C order, without memory shared with inputs or constants."""
        results: list[Array] = []
        others = [*inputs, *(constant for _, constant in self._constants)]
        for array in outputs:
            if not isinstance(array, np.ndarray):
                no_tensor: Any = array
                results.append(
                    deepcopy(no_tensor) if any(array is i for i in inputs) else no_tensor
                )
                continue
            is_view = array.base is not None or not array.flags.writeable
            shared = is_view or any(array is other for other in others)
            contiguous = np.ascontiguousarray(array).reshape(array.shape)
            results.append(array.copy() if shared else contiguous)
            others.append(array)
        return results


def _kernel(operation: Operation) -> Kernel:
    """Return the kernel of a supported operation."""
    if isinstance(operation, Operator):
        return operation.kernel()
    from crosschip.devices.reference import evaluator

    assert isinstance(operation, Extension), "supports() has said so"
    return evaluator.kernel(operation)
