"""Finding out which operations of a segment a device fails to compile."""

from __future__ import annotations

from collections.abc import Sequence, Set

from crosschip.hal import CompileError, Options
from crosschip.ir import Operation
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.segments import Segment, part_of

_ATTEMPTS = 64
"""The compilations after which what has been found has to do."""


def culprits(failed: Failed, device: GuardedDevice, options: Options) -> Set[Operation]:
    """The operations of a segment at fault for that a device failed to compile it.

    Those that the device names; else they are found by halving: parts are compiled by themselves,
    until they are single operations, or fail only together.

    Args:
        failed: what failed.
        device: the device.
        options: how it was to compile.
    """
    operations = failed.segment.operations
    named = {part for part in operations if part.name in failed.error.operations}
    return named or set(_Halving(failed.segment, device, options).culprits(operations))


class Failed(Exception):
    """A device failed to compile a segment."""

    def __init__(self, segment: Segment, error: CompileError) -> None:
        super().__init__(str(error))
        self.segment = segment
        self.error = error

    def name(self, operations: Set[Operation]) -> None:
        """Say which operations are at fault."""
        self.error.operations = frozenset(operation.name for operation in operations)


class _Halving:
    """The search in one segment."""

    def __init__(self, segment: Segment, device: GuardedDevice, options: Options) -> None:
        self._segment = segment
        self._device = device
        self._options = options
        self._left = _ATTEMPTS

    def culprits(self, operations: Sequence[Operation]) -> Sequence[Operation]:
        """Those among operations, which fail together."""
        if len(operations) == 1:
            return operations
        middle = len(operations) // 2
        halves = operations[:middle], operations[middle:]
        failing = [half for half in halves if self._fails(half)]
        found = [operation for half in failing for operation in self.culprits(half)]
        return found or operations

    def _fails(self, operations: Sequence[Operation]) -> bool:
        """Tell whether the device fails to compile operations; not asked too often."""
        if not self._left:
            return False
        self._left -= 1
        try:
            self._device.compile(part_of(self._segment, operations), self._options).close()
        except CompileError:
            return True
        return False
