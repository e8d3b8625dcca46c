"""From segments to programs: compiled, or loaded from the cache, and kept there."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from crosschip.hal import CompileError, Options
from crosschip.ir import ControlFlow, DeviceError
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.key import Fingerprints, cache_key
from crosschip.runtime.cache.store import Store
from crosschip.runtime.control import RUNTIME, program_for
from crosschip.runtime.copies import Copies
from crosschip.runtime.execution import Execute, Plan
from crosschip.runtime.guard import GuardedDevice, GuardedProgram
from crosschip.runtime.placement.placing import Placement
from crosschip.runtime.placement.segments import Segment
from crosschip.runtime.profiles import shapes_for

logger = logging.getLogger("crosschip")


@dataclass(frozen=True, slots=True)
class Built:
    """A program, and whether it came from the cache."""

    program: GuardedProgram
    cache: Literal["hit", "miss", "off"]


class Failed(Exception):
    """A device failed to compile a segment."""

    def __init__(self, segment: Segment, error: CompileError) -> None:
        super().__init__(str(error))
        self.segment = segment
        self.error = error


Make = Callable[[Segment], Built]
"""Makes the program of a segment that a device runs."""


def build_all(placement: Placement, make: Make) -> list[Built]:
    """Make the program of every segment, in parallel: until they run, none needs another."""
    segments = placement.segments

    def build(segment: Segment) -> Built:
        if segment.device == RUNTIME:
            return _build_control(segment, placement, make)
        return make(segment)

    if len(segments) < 2:
        return [build(segment) for segment in segments]
    with ThreadPoolExecutor(min(len(segments), os.cpu_count() or 1)) as pool:
        futures = [pool.submit(build, segment) for segment in segments]
    built = [future.result() for future in futures if future.exception() is None]
    for future in futures:
        error = future.exception()
        if error is not None:
            for one in built:
                one.program.close()
            raise error
    return built


def _build_control(segment: Segment, placement: Placement, make: Make) -> Built:
    """The bodies of control flow that the runtime runs itself, and the program around them."""
    (operation,) = segment.model.operations
    assert isinstance(operation, ControlFlow), "nothing else goes to the runtime"
    built: list[Built] = []
    bodies: list[Execute] = []
    with ExitStack() as failing:
        for body in placement.bodies(operation):
            parts = build_all(body, make)
            for part in parts:
                failing.callback(part.program.close)
            built += parts
            plan = Plan(body, [part.program for part in parts], Copies(), own=False)
            bodies.append(plan.execute)
        failing.pop_all()
    programs = [part.program for part in built]
    program = program_for(operation, segment.inputs, segment.outputs, bodies, programs)
    return Built(GuardedProgram(RUNTIME, None, program, segment.model, 1), cache_word(built))


@dataclass(frozen=True, slots=True)
class Compiling:
    """Makes programs by compiling them, unless they are kept from an earlier time.

    Attributes:
        devices: the devices, by name.
        options: how to compile.
        store: where programs are kept; `None` for nowhere.
        fingerprints: of the model's constants.
    """

    devices: Mapping[str, GuardedDevice]
    options: Options
    store: Store | None = None
    fingerprints: Fingerprints = field(default_factory=Fingerprints)

    def __call__(self, segment: Segment) -> Built:
        """The program of a segment.

        Raises:
            Failed: its device fails to compile it.
        """
        try:
            return self._build(segment)
        except CompileError as error:
            raise Failed(segment, error) from error

    def _build(self, segment: Segment) -> Built:
        device, options = self.devices[segment.device], self.options
        if self.store is None:
            return Built(_prepared(device.compile(segment.model, options), segment, options), "off")
        kept = _Kept(segment, device, options, self.store, self.fingerprints)
        program = kept.load()
        if program is not None:
            program.changed = partial(kept.save, program)
            return Built(_prepared(program, segment, options), "hit")
        program = _prepared(device.compile(segment.model, options), segment, options)
        saved = kept.save(program)
        program.changed = partial(kept.save, program)
        return Built(program, "miss" if saved else "off")


class _Kept:
    """The place of one program in the cache."""

    def __init__(
        self,
        segment: Segment,
        device: GuardedDevice,
        options: Options,
        store: Store,
        fingerprints: Fingerprints,
    ) -> None:
        self._model = segment.model
        self._device = device
        self._options = options
        self._store = store
        self._entry = Entry(
            cache_key(segment.model, device, options, fingerprints),
            segment.device,
            device.version,
            segment.model.name,
            len(segment.model.operations),
        )

    def load(self) -> GuardedProgram | None:
        """The program that is kept; `None` if there is none that the device loads."""
        saved = self._store.read(self._entry)
        if saved is None:
            return None
        try:
            return self._device.load(saved, self._model, self._options)
        except DeviceError as error:
            self._store.discard(self._entry, str(error))
            return None

    def save(self, program: GuardedProgram) -> bool:
        """Keep a program; whether its device saves programs at all.

        A device that fails to is a warning.
        """
        try:
            saved = program.save()
        except DeviceError as error:
            logger.warning("%s", error)
            return False
        if saved is None:
            return False
        self._store.write(self._entry, bytes(saved))
        return True


def _prepared(program: GuardedProgram, segment: Segment, options: Options) -> GuardedProgram:
    """The program, compiled for the profiles that the caller gave."""
    try:
        for shapes in shapes_for(segment.model, options.sizes):
            program.prepare(shapes)
    except CompileError:
        program.close()
        raise
    return program


def cache_word(built: Sequence[Built]) -> Literal["hit", "miss", "off"]:
    """`hit` if all programs came from the cache, `miss` if one did not, `off` if none is kept."""
    words = {one.cache for one in built} - {"off"}
    if not words:
        return "off"
    return "miss" if "miss" in words else "hit"
