"""Base of compiled models: the executable that the next run uses, and its replacement."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crosschip.hal import Options
from crosschip.runtime.copies import Copies
from crosschip.runtime.details import CompileReport, Details
from crosschip.runtime.executable import Executable, Retired
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.lifetime import TrackedRuns
from crosschip.runtime.outline import Outline
from crosschip.runtime.programs import SegmentProgram

if TYPE_CHECKING:
    from crosschip.runtime.choice import Choice, Move
    from crosschip.runtime.compile.device_trials import DeviceTrials
    from crosschip.runtime.statistics import SegmentStatistics


class MovableModel(TrackedRuns):
    """A compiled model that may move to other devices between two runs.

    The arguments are those of `CompiledModel`.

    Attributes:
        report: the report of its compilation, and of its moves to faster devices.
        copies: the number and bytes of avoidable copies in its runs.
        trials: tries other devices in the background; `None` unless it was compiled with
            `wait=False` and there are any.
    """

    def __init__(
        self,
        outline: Outline,
        programs: Sequence[SegmentProgram],
        devices: Mapping[str, GuardedDevice],
        options: Options,
        report: CompileReport,
        details: Details,
    ) -> None:
        super().__init__()
        self.report = report
        self.trials: DeviceTrials | None = None
        self.copies = Copies()
        self._executable = Executable(outline, programs, devices, options, details, self.copies)
        # Reentrant, because a signal may close the model at any moment.
        self._moving = threading.RLock()
        self._retired: list[Retired] = []
        self._before: Sequence[SegmentStatistics] = ()

    @property
    def executable(self) -> Executable:
        """What the next run uses: the programs on the present devices."""
        return self._executable

    def observe_calls(self, observe: Callable[[Sequence[Any]], None] | None) -> None:
        """Call a function with the inputs of each call whose shapes no recent call had.

        Args:
            observe: the function; `None` to end that.
        """
        self._executable.signature.observe = observe

    def move_to(self, other: MovableModel, choice: Choice, move: Move) -> bool:
        """Run on the devices of another compiled model of the same model from the next run on.

        Runs in progress and open sessions stay on the devices on which they began.

        Args:
            other: the other model, whose programs this one takes; it must not be used any more.
            choice: the measurements of the devices.
            move: the description of the move, for the report.

        Returns:
            Whether it has moved; not if the model is being closed.
        """
        with self._moving:
            if self._check is not None:
                return False
            new, old = other._executable, self._executable
            new.count_copies(self.copies)
            new.signature.observe = old.signature.observe
            self._before = new.segment_statistics()
            moves = (*self.report.moves, move)
            self.report = replace(
                other.report, milliseconds=self.report.milliseconds, choice=choice, moves=moves
            )
            placement = new.details.placement()
            placement.choice, placement.moves = choice, moves
            self._retired.append(Retired(old))
            self._executable = new
        return True

    def close_unused(self) -> bool:
        """Close programs of earlier devices that no run and no session uses any more.

        Returns:
            Whether all such programs are closed.
        """
        with self._moving:
            unused = [retired for retired in self._retired if not retired.is_used]
            self._retired = [retired for retired in self._retired if retired not in unused]
        for retired in unused:
            retired.close()
        return not self._retired

    def stop(self, check: Callable[[], None]) -> None:
        with self._moving:
            self._check = check
            self._executable.check_before(check)

    def stop_trials(self) -> None:
        if self.trials is not None:
            self.trials.release()

    @property
    def devices_on_trial(self) -> Collection[str]:
        return () if self.trials is None else self.trials.devices_in_use
