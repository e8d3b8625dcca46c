"""Compilation of segments to programs, or their loading from the cache."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import field, replace

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
from crosschip.progress import task
from crosschip.runtime.artifact.header import ShapePrograms
from crosschip.runtime.artifact.placements import programs_by_segment
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.fingerprints import Fingerprints
from crosschip.runtime.cache.store import Store
from crosschip.runtime.compile.failures import FailureSearch, SegmentCompileError
from crosschip.runtime.compile.programs import (
    Built,
    CacheWord,
    MissingProgramError,
    SavedPrograms,
    StoredProgram,
    cache_word,
    entry_of,
)
from crosschip.runtime.control import RUNTIME, ControlSegment, program_for
from crosschip.runtime.copies import Copies
from crosschip.runtime.execution import Plan, is_whole
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.assignment import Refusals
from crosschip.runtime.placement.constraints import Constraints
from crosschip.runtime.placement.placement import Placement, place
from crosschip.runtime.placement.queries import device_query
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
    """The devices and options for compiling all parts of a model.

    Attributes:
        devices: the devices by name, in the order of preference.
        options: the options for the devices.
        store: the store of compiled programs; `None` for none.
        constraints: the caller's constraints on the placement.
        budget: the largest cost of placing.
        buckets: the sizes to pad to, by the name of a size.
        find_failing_operations: whether errors name the operations at fault, which may take many
            compilations.
        requested: a device for each operation of the model; empty for the first that supports it.
        accepted: the name of a device that supported all operations for other sizes.
        conditions: whether devices may get operations that they compute right for some inputs only.
        fingerprints: the fingerprints of the model's constants, for all keys.
        shipped: whether the programs are saved in a file, so that their keys contain the version of
            a device but not the digest of its code.
    """

    devices: Mapping[str, GuardedDevice]
    options: Options
    store: Store | None = None
    constraints: Constraints = field(default_factory=Constraints)
    budget: Budget | None = None
    buckets: Buckets = field(default_factory=dict)
    find_failing_operations: bool = False
    requested: Sequence[str | None] = ()
    accepted: str = ""
    conditions: bool = True
    fingerprints: Fingerprints = field(default_factory=Fingerprints)
    shipped: bool = False

    def queries(self) -> dict[str, Ask]:
        """Return the function that queries each device."""
        return {
            name: _supports_all
            if self._skips_query(device)
            else device_query(device, self.options, conditions=self.conditions)
            for name, device in self.devices.items()
        }

    def options_for(self, placement: Placement) -> Options:
        """Return the options for the segments of a placement."""
        used = {segment.device for segment in placement.all_segments()} - {RUNTIME}
        return replace(self.options, alternates=True) if len(used) > 1 else self.options

    def make(self, segment: Segment, placement: Placement) -> Built:
        """Load the program of a segment from the store, or compile it.

        Raises:
            SegmentCompileError: its device fails to compile it.
        """
        device, model, sizes = self.devices[segment.device], segment.model, self.options.sizes
        strategy = strategy_for(device.capabilities, placement.original, model, sizes)
        try:
            if strategy is DynamicShapeStrategy.PROGRAM_PER_SHAPE:
                return _build_shape_programs(segment, placement, self)
            if self.store is None:
                return Built.once(device.compile(model, self.options), "off")
            stored = StoredProgram(segment, device, self, self.store)
            program = stored.load()
            if program is not None:
                return Built.once(program, "hit", stored.entry)
            program = device.compile(model, self.options)
        except CompileError as error:
            raise SegmentCompileError(segment, error) from error
        if not stored.save(program):
            return Built.once(program, "off")
        return Built.once(program, "miss", stored.entry)

    def _skips_query(self, device: GuardedDevice) -> bool:
        """Return whether a device is assumed to support all operations."""
        return device.name == self.accepted and device.capabilities.compile_names_unsupported


def _supports_all(model: Model) -> Offer:
    return Offer([YES] * len(model.operations))


def place_and_build(model: Model, compilation: Compilation) -> tuple[Placement, list[Built]]:
    """Place and compile a model; place operations again that a device fails to compile.

    Raises:
        UnsupportedError: no device runs some operation, or a constraint is not met.
        DeviceError: a device fails to compile operations that no other device runs.
    """
    refusals: Refusals = {}
    devices, constraints = compilation.devices, compilation.constraints
    queries = compilation.queries()
    search = FailureSearch()
    while True:
        try:
            with task(f"placing {model.name}"), cost_limit(model.name, compilation.budget):
                placement = place(
                    model,
                    queries,
                    refusals,
                    constraints=constraints,
                    requested=compilation.requested,
                )
                segments = placement.all_segments()
                require(programs=sum(segment.device != RUNTIME for segment in segments))
        except UnsupportedError as error:
            if not refusals:
                raise
            raise DeviceError(str(error)) from error
        try:
            options = compilation.options_for(placement)
            return placement, build_segments(placement, replace(compilation, options=options).make)
        except SegmentCompileError as failed:
            if len(devices) == 1 or constraints.strict:
                if compilation.find_failing_operations:
                    device = devices[failed.segment.device]
                    failed.name_operations(
                        search.reasons(failed, device, compilation.options).keys()
                    )
                raise failed.error from failed.error.__cause__
            count = _refuse(failed, placement, refusals, compilation, search)
            logger.warning("%s; placing %d operations on other devices", failed, count)


@contextmanager
def cost_limit(name: str, budget: Budget | None) -> Iterator[None]:
    """Spend from a budget; a `BudgetError` names the model."""
    try:
        with spending(budget):
            yield
    except BudgetError as error:
        raise BudgetError(f"{name}: {error}") from None


def _refuse(
    failed: SegmentCompileError,
    placement: Placement,
    refusals: Refusals,
    compilation: Compilation,
    search: FailureSearch,
) -> int:
    """Record refusals for the operations that a device failed to compile; return their number."""
    device = failed.segment.device
    reasons = search.reasons(failed, compilation.devices[device], compilation.options)
    answers = refusals.setdefault(device, {})
    before = len(answers)
    for decision in placement.all_decisions():
        details = [reasons[part] for part in decision.parts if part in reasons]
        if decision.device == device and details:
            answers[decision.name] = Support(False, decision.type, "", Rule.FAILURE, details[0])
    return len(answers) - before


def record_strategies(placement: Placement, compilation: Compilation) -> None:
    """Record how each segment of a placement and of its bodies treats dynamic shapes."""
    placement.shape_strategies = tuple(
        _strategy_words(segment, placement, compilation) for segment in placement.segments
    )
    for body in placement.run_bodies():
        record_strategies(body, compilation)


def _strategy_words(segment: Segment, placement: Placement, compilation: Compilation) -> str:
    if segment.device == RUNTIME:
        return ""
    sizes = compilation.options.sizes
    capabilities = compilation.devices[segment.device].capabilities
    strategy = strategy_for(capabilities, placement.original, segment.model, sizes)
    if strategy is not DynamicShapeStrategy.PROGRAM_PER_SHAPE:
        return str(strategy.value)
    return strategy_text(sizes.specializations, Padding(segment.model, compilation.buckets))


BuildSegment = Callable[[Segment, Placement], Built]
"""A function that builds the program of a segment of a placement."""


def build_segments(placement: Placement, make: BuildSegment) -> list[Built]:
    """Build the programs of all segments in parallel."""
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
            for item in built:
                item.program.close()
            raise error
    return built


def _build_control(segment: Segment, placement: Placement, make: BuildSegment) -> Built:
    """Build control flow that the runtime runs: the programs of its bodies, and its own."""
    (operation,) = segment.model.operations
    assert isinstance(operation, ControlFlow), "the runtime runs nothing else"
    built: list[Built] = []
    plans: list[Plan] = []
    with ExitStack() as failing:
        for body in placement.bodies(operation):
            parts = build_segments(body, make)
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


def _build_shape_programs(
    segment: Segment, placement: Placement, compilation: Compilation
) -> Built:
    """Build a program that is compiled for each set of shapes; first for the caller's profiles.

    If the device fails for a profile, an error has the model placed again. If it fails for other
    shapes in a run, the less preferred devices run them.
    """
    name, devices = segment.device, list(compilation.devices)
    compilers = [name] if compilation.constraints.bind else devices[devices.index(name) :]
    words: set[CacheWord] = set()
    program = _specialized_program(segment, compilers, compilation, words)
    alone = _static_compilation([name], compilation, find_failing_operations=len(devices) > 1)
    with _compile_with(program, lambda model: _compile_fixed(model, alone, words)):
        for profile in compilation.options.sizes.profiles:
            program.prepare(dict(profile))
    return Built(program, lambda: cache_word(words))


def load_shape_programs(
    segment: Segment,
    header: ShapePrograms,
    programs: Sequence[bytes | memoryview],
    compilation: Compilation,
) -> Built:
    """Load a program that is compiled for each set of shapes.

    Args:
        segment: the segment.
        header: the first result of `SpecializedProgram.save_all`.
        programs: its second result.
        compilation: the devices and options.

    Raises:
        ArithmeticError, InputError, LookupError, ModelError, ValueError: the header is invalid.
        DeviceError: a device cannot load a program.
    """
    saved = SavedPrograms(dict(zip(header.entries, programs, strict=True)))
    if header.devices[:1] != (segment.device,):
        raise ValueError(f"its programs are not {segment.device}'s")
    absent = [name for name in header.devices if name not in compilation.devices]
    if absent:
        raise ValueError(f"the file does not say that it needs {absent[0]!r}")
    if len(header.shapes) > compilation.options.sizes.specializations:
        raise ValueError(f"it has {len(header.shapes)} sets of shapes, over `specializations`")
    compilation = replace(compilation, buckets=buckets_from(header.buckets))
    words: set[CacheWord] = set()
    program = _specialized_program(segment, header.devices, compilation, words)
    from_file = replace(
        _static_compilation(header.devices, compilation, find_failing_operations=False),
        store=saved,
        shipped=True,
    )
    with _compile_with(program, lambda model: _compile_fixed(model, from_file, words)):
        for key in header.shapes:
            # A device may have failed to compile for a set of shapes; it does not try again.
            with suppress(MissingProgramError):
                program.make(key)
    return Built(program, lambda: cache_word(words))


def _specialized_program(
    segment: Segment, devices: Sequence[str], compilation: Compilation, words: set[CacheWord]
) -> SpecializedProgram:
    """Return the program of a segment that devices compile for each set of shapes.

    The sources of programs that it builds in runs are added to `words`.
    """
    later = _static_compilation(devices, compilation, find_failing_operations=False)
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
def _compile_with(program: SpecializedProgram, compile: Compile) -> Iterator[None]:
    """Replace a program's compile function in the `with` block; close the program on an error."""
    later, program.compile = program.compile, compile
    try:
        yield
    except BaseException:
        program.close()
        raise
    program.compile = later


def _static_compilation(
    names: Sequence[str], compilation: Compilation, *, find_failing_operations: bool
) -> Compilation:
    """Return the settings to compile models of static shapes on some of the devices."""
    return Compilation(
        {name: compilation.devices[name] for name in names},
        replace(compilation.options, sizes=Sizes()),
        compilation.store,
        find_failing_operations=find_failing_operations,
        accepted=names[0],
        conditions=compilation.conditions,
        fingerprints=compilation.fingerprints,
    )


def _compile_fixed(model: Model, compilation: Compilation, words: set[CacheWord]) -> Compiled:
    """Compile a model of static shapes; add the sources of its programs to `words`.

    Raises:
        CompileError: a device fails to compile it, or no device runs some operation.
    """
    try:
        placement, built = place_and_build(model, compilation)
    except UnsupportedError as error:
        unplaced = place(model, compilation.queries(), partial=True).unplaced
        raise CompileError(str(error), [d.operation for d in unplaced]) from error
    except DeviceError as error:
        if isinstance(error, CompileError):
            raise
        raise CompileError(str(error)) from error
    if placement.fallbacks:
        logger.warning("%s", placement.summary())
    words.update(item.cache() for item in built)
    programs = [item.program for item in built]
    whole = len(programs) == 1 and is_whole(placement) and not placement.conditions
    plan = Plan(placement, programs, Copies())
    run = programs[0].run if whole else plan.execute
    loaded = sum(item.cache() == "hit" for item in built)
    return Compiled(
        run, plan, whole, loaded, lambda: _save_programs(placement, programs, compilation)
    )


def _save_programs(
    placement: Placement, programs: Sequence[SegmentProgram], compilation: Compilation
) -> Mapping[Entry, bytes] | None:
    """Return the programs of a placement by cache entry; `None` if one cannot be saved."""
    saved_programs: dict[Entry, bytes] = {}
    for segment, program in programs_by_segment(placement, programs):
        saved = program.save()
        if saved is None:
            return None
        device = compilation.devices[segment.device]
        saved_programs[entry_of(segment, device, replace(compilation, shipped=True))] = bytes(saved)
    return saved_programs
