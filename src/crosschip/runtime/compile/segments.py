"""From segments to programs: compiled, or loaded from the cache, and kept there."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import field, replace
from functools import partial
from typing import Literal

from crosschip.hal import YES, CompileError, Offer, Options, Rule, Sizes, Support
from crosschip.ir import (
    Budget,
    BudgetError,
    ControlFlow,
    DeviceError,
    Model,
    UnsupportedError,
)
from crosschip.ir.budget import require, spending
from crosschip.ir.dataclass import dataclass
from crosschip.lowering.decomposition import Ask
from crosschip.runtime.artifact.header import ShapePrograms
from crosschip.runtime.artifact.placements import programs_by_segment
from crosschip.runtime.artifact.shape_programs import MissingProgramError, SavedPrograms
from crosschip.runtime.bodies import ControlSegment
from crosschip.runtime.cache import background_writer
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.fingerprints import Fingerprints
from crosschip.runtime.cache.key import cache_key
from crosschip.runtime.cache.store import Store, begin_reading, write_parts
from crosschip.runtime.compile.failures import Failed, FailureSearch
from crosschip.runtime.control import RUNTIME, program_for
from crosschip.runtime.copies import Copies
from crosschip.runtime.execution import Plan, is_whole
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.guard.programs import GuardedProgram
from crosschip.runtime.placement.asking import asking
from crosschip.runtime.placement.choosing import Refusals
from crosschip.runtime.placement.constraints import Constraints
from crosschip.runtime.placement.placing import Placement, place
from crosschip.runtime.placement.segments import Segment
from crosschip.runtime.programs import SegmentProgram
from crosschip.runtime.shapes.arguments import buckets_from
from crosschip.runtime.shapes.padding import Buckets, Padding
from crosschip.runtime.shapes.policy import strategy_for
from crosschip.runtime.shapes.specialized import (
    Compile,
    Compiled,
    SpecializedProgram,
    strategy_text,
)
from crosschip.runtime.shapes.strategy import DynamicShapeStrategy

logger = logging.getLogger("crosschip")


@dataclass(frozen=True, slots=True)
class Compilation:
    """The devices and options by which all parts of a model are compiled.

    Attributes:
        devices: the devices by name, in the order of preference.
        options: the options for the devices.
        store: the store of compiled programs; `None` for none.
        constraints: the caller's constraints on the placement.
        budget: the largest cost of placing.
        buckets: the sizes to pad to, by the name of a size.
        blames: whether errors name the operations at fault, which may take many compilations.
        accepted: the name of a device that supports all operations, as it did for other sizes.
        conditions: whether devices may get what they compute right for some inputs only.
        fingerprints: the fingerprints of the model's constants, for all keys.
        shipped: whether programs are saved in a file of a compiled model, whose keys contain the
            version of a device, but not the digest of its code.
    """

    devices: Mapping[str, GuardedDevice]
    options: Options
    store: Store | None = None
    constraints: Constraints = field(default_factory=Constraints)
    budget: Budget | None = None
    buckets: Buckets = field(default_factory=dict)
    blames: bool = False
    accepted: str = ""
    conditions: bool = True
    fingerprints: Fingerprints = field(default_factory=Fingerprints)
    shipped: bool = False

    def queries(self) -> dict[str, Ask]:
        """The way to ask each device."""
        return {
            name: _yes
            if self._has_accepted(device)
            else asking(device, self.options, conditions=self.conditions)
            for name, device in self.devices.items()
        }

    def make(self, segment: Segment, placement: Placement) -> Built:
        """Load the program of a segment from the store, or compile it.

        Raises:
            Failed: its device fails to compile it.
        """
        device, model, sizes = self.devices[segment.device], segment.model, self.options.sizes
        way = strategy_for(device.capabilities, placement.original, model, sizes)
        try:
            if way is DynamicShapeStrategy.PROGRAM_PER_SHAPE:
                return _build_for_shapes(segment, placement, self)
            if self.store is None:
                return Built.once(device.compile(model, self.options), "off")
            stored = _StoredProgram(segment, device, self, self.store)
            program = stored.load()
            if program is not None:
                return Built.once(program, "hit", stored.entry)
            program = device.compile(model, self.options)
        except CompileError as error:
            raise Failed(segment, error) from error
        if not stored.save(program):
            return Built.once(program, "off")
        return Built.once(program, "miss", stored.entry)

    def _has_accepted(self, device: GuardedDevice) -> bool:
        """Tell whether a device need not be asked."""
        return device.name == self.accepted and device.capabilities.compile_names_unsupported


CacheWord = Literal["hit", "miss", "off"]
"""Where programs came from: the cache, a compiler and then the cache, or a compiler alone."""


@dataclass(frozen=True, slots=True)
class Built:
    """A program, and where it came from.

    Attributes:
        program: the program.
        cache: tells where it came from; what is compiled for each shape, where all of it so far.
        entry: where the cache keeps it, if it does.
    """

    program: SegmentProgram
    cache: Callable[[], CacheWord]
    entry: Entry | None = None

    @classmethod
    def once(cls, program: SegmentProgram, word: CacheWord, entry: Entry | None = None) -> Built:
        """A program that is not compiled again."""
        return cls(program, lambda: word, entry)


def _yes(model: Model) -> Offer:
    return Offer([YES] * len(model.operations))


def place_and_build(model: Model, compilation: Compilation) -> tuple[Placement, list[Built]]:
    """Place and compile a model; operations that a device fails to compile are placed again.

    Raises:
        UnsupportedError: no device runs some operation, or a constraint is not met.
        DeviceError: a device fails to compile what no other can run.
    """
    refusals: Refusals = {}
    devices, constraints = compilation.devices, compilation.constraints
    queries = compilation.queries()
    search = FailureSearch()
    while True:
        try:
            with limited(model.name, compilation.budget):
                placement = place(model, queries, refusals, constraints=constraints)
                segments = placement.all_segments()
                require(programs=sum(segment.device != RUNTIME for segment in segments))
        except UnsupportedError as error:
            if not refusals:
                raise
            raise DeviceError(str(error)) from error
        try:
            return placement, build_all(placement, compilation.make)
        except Failed as failed:
            if len(devices) == 1 or constraints.strict:
                if compilation.blames:
                    device = devices[failed.segment.device]
                    failed.name(search.reasons(failed, device, compilation.options).keys())
                raise failed.error from failed.error.__cause__
            count = _refuse(failed, placement, refusals, compilation, search)
            logger.warning("%s; placing %d operations elsewhere", failed, count)


@contextmanager
def limited(name: str, budget: Budget | None) -> Iterator[None]:
    """Spend from a budget; a `BudgetError` names the model."""
    try:
        with spending(budget):
            yield
    except BudgetError as error:
        raise BudgetError(f"{name}: {error}") from None


def _refuse(
    failed: Failed,
    placement: Placement,
    refusals: Refusals,
    compilation: Compilation,
    search: FailureSearch,
) -> int:
    """Refuse a device the operations that it failed to compile; return their number."""
    device = failed.segment.device
    reasons = search.reasons(failed, compilation.devices[device], compilation.options)
    answers = refusals.setdefault(device, {})
    before = len(answers)
    for decision in placement.all_decisions():
        details = [reasons[part] for part in decision.parts if part in reasons]
        if decision.device == device and details:
            no = Support(False, decision.type, "", Rule.FAILURE, details[0])
            answers[decision.name] = no
    return len(answers) - before


def record_strategies(placement: Placement, compilation: Compilation) -> None:
    """Record the treatment of open sizes in a placement, and in those of its bodies."""
    placement.shape_strategies = tuple(
        _way(segment, placement, compilation) for segment in placement.segments
    )
    for body in placement.run_bodies():
        record_strategies(body, compilation)


def _way(segment: Segment, placement: Placement, compilation: Compilation) -> str:
    if segment.device == RUNTIME:
        return ""
    sizes = compilation.options.sizes
    capabilities = compilation.devices[segment.device].capabilities
    way = strategy_for(capabilities, placement.original, segment.model, sizes)
    if way is not DynamicShapeStrategy.PROGRAM_PER_SHAPE:
        return str(way.value)
    return strategy_text(sizes.specializations, Padding(segment.model, compilation.buckets))


Make = Callable[[Segment, Placement], Built]
"""Makes the program of a segment that a device runs, of a placement."""


def build_all(placement: Placement, make: Make) -> list[Built]:
    """Make the program of every segment, in parallel: until they run, none needs another."""
    segments = placement.segments

    def build(segment: Segment) -> Built:
        if segment.device == RUNTIME:
            return _build_control(segment, placement, make)
        return make(segment, placement)

    if len(segments) == 1 and segments[0].device != RUNTIME:
        return [make(segments[0], placement)]
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
    plans: list[Plan] = []
    with ExitStack() as failing:
        for body in placement.bodies(operation):
            parts = build_all(body, make)
            for part in parts:
                failing.callback(part.program.close)
            built += parts
            plans.append(Plan(body, [part.program for part in parts], Copies(), own=False))
        failing.pop_all()
    programs = [part.program for part in built]
    bodies = [plan.execute for plan in plans]
    program = program_for(operation, segment.inputs, segment.outputs, bodies, programs)
    words = [part.cache for part in built]
    return Built(
        ControlSegment(program, segment.model, plans), lambda: cache_word(word() for word in words)
    )


def _build_for_shapes(segment: Segment, placement: Placement, compilation: Compilation) -> Built:
    """A segment that is compiled for each set of shapes: at once for the caller's profiles.

    What the device declines or fails to compile at once is an error, so that it is placed anew.
    What it does not compile for some shapes later goes, for these, to the devices behind it.
    """
    name, devices = segment.device, list(compilation.devices)
    compilers = [name] if compilation.constraints.bind else devices[devices.index(name) :]
    words: set[CacheWord] = set()
    program = _specialized(segment, compilers, compilation, words)
    alone = _on_devices([name], compilation, blames=len(devices) > 1)
    with _compiling(program, lambda model: _compile_fixed(model, alone, words)):
        for profile in compilation.options.sizes.profiles:
            program.prepare(dict(profile))
    return Built(program, lambda: cache_word(words))


def load_for_shapes(
    segment: Segment,
    header: ShapePrograms,
    programs: Sequence[bytes | memoryview],
    compilation: Compilation,
) -> Built:
    """Load a segment that is compiled for each set of shapes, with programs that were saved.

    Args:
        segment: the segment.
        header: what `SpecializedProgram.save_all` returned first.
        programs: what it returned second.
        compilation: the devices and options.

    Raises:
        ArithmeticError, InputError, LookupError, ModelError, ValueError: the header does not fit.
        DeviceError: a device does not load a program.
    """
    saved = SavedPrograms(dict(zip(header.entries, programs, strict=True)))
    if header.devices[:1] != (segment.device,):
        raise ValueError(f"its programs are not {segment.device}'s")
    absent = [name for name in header.devices if name not in compilation.devices]
    if absent:
        raise ValueError(f"the file does not say that it needs {absent[0]!r}")
    if len(header.shapes) > compilation.options.sizes.specializations:
        raise ValueError(f"there are {len(header.shapes)}, and so many are not kept")
    compilation = replace(compilation, buckets=buckets_from(header.buckets))
    words: set[CacheWord] = set()
    program = _specialized(segment, header.devices, compilation, words)
    from_file = replace(
        _on_devices(header.devices, compilation, blames=False), store=saved, shipped=True
    )
    with _compiling(program, lambda model: _compile_fixed(model, from_file, words)):
        for key in header.shapes:
            # A device that had failed to compile something is not asked to do so again.
            with suppress(MissingProgramError):
                program.make(key)
    return Built(program, lambda: cache_word(words))


def _specialized(
    segment: Segment, devices: Sequence[str], compilation: Compilation, words: set[CacheWord]
) -> SpecializedProgram:
    """The program of a segment that some devices compile for each set of shapes.

    Where what it compiles in runs comes from is added to `words`.
    """
    later = _on_devices(devices, compilation, blames=False)
    return SpecializedProgram(
        segment.device,
        compilation.devices[segment.device].device,
        segment.model,
        lambda model: _compile_fixed(model, later, words),
        devices,
        compilation.options.sizes.specializations,
        Padding(segment.model, compilation.buckets),
    )


@contextmanager
def _compiling(program: SpecializedProgram, compile: Compile) -> Iterator[None]:
    """Have a program compile in another way; if that fails, it is closed."""
    later, program.compile = program.compile, compile
    try:
        yield
    except BaseException:
        program.close()
        raise
    program.compile = later


def _on_devices(names: Sequence[str], compilation: Compilation, *, blames: bool) -> Compilation:
    """The compilation of a part whose sizes are known, on some of the devices."""
    return Compilation(
        {name: compilation.devices[name] for name in names},
        replace(compilation.options, sizes=Sizes()),
        compilation.store,
        blames=blames,
        accepted=names[0],
        conditions=compilation.conditions,
        fingerprints=compilation.fingerprints,
    )


def _compile_fixed(model: Model, compilation: Compilation, words: set[CacheWord]) -> Compiled:
    """Compile a model of known sizes; the source of its programs is added to `words`.

    Raises:
        CompileError: it is not.
    """
    try:
        placement, built = place_and_build(model, compilation)
    except UnsupportedError as error:
        unplaced = place(model, compilation.queries(), partial=True).unplaced
        named = [decision.operation for decision in unplaced]
        raise CompileError(str(error), named) from error
    except DeviceError as error:
        if isinstance(error, CompileError):
            raise
        raise CompileError(str(error)) from error
    if placement.fallbacks:
        logger.warning("%s", placement.summary())
    words.update(one.cache() for one in built)
    programs = [one.program for one in built]
    whole = len(programs) == 1 and is_whole(placement) and not placement.conditions
    plan = Plan(placement, programs, Copies())
    run = programs[0].run if whole else plan.execute
    loaded = sum(one.cache() == "hit" for one in built)
    return Compiled(
        run, plan, whole, loaded, lambda: _save_programs(placement, programs, compilation)
    )


def _save_programs(
    placement: Placement, programs: Sequence[SegmentProgram], compilation: Compilation
) -> Mapping[Entry, bytes] | None:
    """The entries of a cache for the programs of a placed model; `None` if one is not saved."""
    saved_programs: dict[Entry, bytes] = {}
    for segment, program in programs_by_segment(placement, programs):
        saved = program.save()
        if saved is None:
            return None
        device = compilation.devices[segment.device]
        saved_programs[_entry_of(segment, device, replace(compilation, shipped=True))] = bytes(
            saved
        )
    return saved_programs


def _entry_of(segment: Segment, device: GuardedDevice, compilation: Compilation) -> Entry:
    key = cache_key(
        segment.model,
        device,
        compilation.options,
        compilation.fingerprints,
        by_code=not compilation.shipped,
    )
    return Entry(
        key,
        segment.device.partition("@")[0],  # a driver's programs are those of its device
        device.version,
        segment.model.name,
        len(segment.model.operations),
    )


class _StoredProgram:
    """A program in the store, under `entry`."""

    def __init__(
        self, segment: Segment, device: GuardedDevice, compilation: Compilation, store: Store
    ) -> None:
        self._model = segment.model
        self._device = device
        self._options = compilation.options
        self._store = store
        self.entry = _entry_of(segment, device, compilation)

    def load(self) -> GuardedProgram | None:
        """Load the program; `None` if the store has none that the device loads."""
        background_writer.wait(self.entry.key)
        saved = begin_reading(self._store, self.entry)()
        if saved is None:
            return None
        try:
            return self._device.load(saved, self._model, self._options)
        except DeviceError as error:
            self._store.discard(self.entry, str(error))
            return None

    def save(self, program: GuardedProgram) -> bool:
        """Store a program in the background; return whether its device saves programs.

        A device that fails to is a warning.
        """
        try:
            make = program.saving()
        except DeviceError as error:
            logger.warning("%s", error)
            return False
        if make is None:
            return False
        background_writer.put(self.entry.key, partial(self._write, make))
        return True

    def _write(self, make: Callable[[], Sequence[bytes | memoryview] | None]) -> None:
        parts = make()
        if parts is not None:
            write_parts(self._store, self.entry, parts)


def cache_word(words: Iterable[CacheWord]) -> CacheWord:
    """`hit` if all programs came from the cache, `miss` if one did not, `off` if none is kept."""
    cached = set(words) - {"off"}
    if not cached:
        return "off"
    return "miss" if "miss" in cached else "hit"


def entries_of(built: Sequence[Built]) -> list[Entry] | None:
    """Where programs are kept; `None` if one is not."""
    entries = [one.entry for one in built if one.entry is not None]
    return entries if len(entries) == len(built) else None
