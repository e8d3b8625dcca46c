"""The search for the operations of a segment that a device fails to compile."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence, Set
from functools import partial

from crosschip.hal import CompileError, Options
from crosschip.hal.bisection import Bisection, Extent, Failure
from crosschip.ir import Model, Operation
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.segments import Segment, part_of

logger = logging.getLogger("crosschip")

MAX_COMPILATIONS = 96
"""The maximum number of compilations of parts in one call of `compile`.

It suffices for about ten failing operations among 128.
"""


class SegmentCompileError(Exception):
    """The failure of a device to compile a segment."""

    def __init__(self, segment: Segment, error: CompileError) -> None:
        super().__init__(str(error))
        self.segment = segment
        self.error = error

    def name_operations(self, operations: Set[Operation]) -> None:
        """Record the operations at fault in the device's error."""
        self.error.operations = frozenset(operation.name for operation in operations)


class FailureSearch:
    """Finds the operations at fault in the segments of one compilation.

    Args:
        limit: the maximum number of compilations of parts.
    """

    def __init__(self, limit: int = MAX_COMPILATIONS) -> None:
        self._remaining = self._limit = limit

    def reasons(
        self, failed: SegmentCompileError, device: GuardedDevice, options: Options
    ) -> Mapping[Operation, str]:
        """Return the operations at fault for a failed compilation of a segment, with reasons.

        If the device names none, halves of the segment are compiled until single operations are
        left, unless operations fail only together or the allowed compilations are used up.

        Args:
            failed: the failed segment.
            device: the device.
            options: the compile options.
        """
        segment = failed.segment
        bisection: Bisection[Operation, CompileError] = Bisection(
            partial(_error_of, segment, device, options), _named_operations, self._remaining
        )
        atoms = segment.operations
        if not _named_operations(failed.error, atoms) and len(atoms) > 1:
            logger.warning(
                "%s: does not compile %s (%d operations) and names none; looking for those at "
                "fault in at most %d compilations of parts",
                *(device.name, segment.name, len(atoms), self._remaining),
            )
        failures = bisection.search(atoms, failed.error)
        self._remaining -= bisection.compilations
        return {
            operation: self._reason(failure, device.name)
            for failure in failures
            for operation in failure.parts
        }

    def _reason(self, failure: Failure[Operation, CompileError], device: str) -> str:
        message = str(failure.error).removeprefix(f"{device}: ")
        others = len(failure.parts) - 1
        if failure.extent is Extent.TOGETHER:
            return f"does not compile together with {others} others, but in halves: {message}"
        if failure.extent is Extent.UNFINISHED:
            return (
                f"one of {others + 1} operations does not compile, and which was not found in the "
                f"{self._limit} compilations of parts that are allowed: {message}"
            )
        return message


def _named_operations(error: CompileError, operations: Sequence[Operation]) -> Sequence[Operation]:
    return [operation for operation in operations if operation.name in error.operations]


def _error_of(
    segment: Segment, device: GuardedDevice, options: Options, operations: Sequence[Operation]
) -> CompileError | None:
    """Return the device's error about some operations of a segment; `None` if they compile."""
    part: Model = part_of(segment, operations)
    try:
        device.compile(part, options).close()
    except CompileError as error:
        return error
    return None
