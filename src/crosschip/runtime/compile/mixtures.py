"""Placement on several devices by measured costs, against the whole model on one device."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import groupby

from crosschip.ir import BudgetError, Error, Model
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.cache.store import Store
from crosschip.runtime.choice import Choice, Mixture
from crosschip.runtime.compile.segments import Compilation
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.control import RUNTIME
from crosschip.runtime.costs.table import CostModel
from crosschip.runtime.device_timing import measure
from crosschip.runtime.inputs import random_inputs
from crosschip.runtime.placement.assignment import overruling_answers
from crosschip.runtime.placement.costs import (
    HOST,
    Alternative,
    BlockCost,
    Candidate,
    PlacementCosts,
    TransferCost,
)
from crosschip.runtime.placement.log_messages import SLOWEST
from crosschip.runtime.placement.options import PlacementOptions
from crosschip.runtime.placement.queries import ModelQueries
from crosschip.runtime.placement.search.alternatives import alternatives
from crosschip.runtime.placement.search.problem import PlacementProblem, Solution
from crosschip.runtime.placement.search.solver import solve
from crosschip.runtime.shapes.shape_search import ShapeSearch

FASTER = 0.98
"""The factor by which a mixture's time must be smaller than that of the best device."""

LEAST_MILLISECONDS = 0.3
"""The time of a run below which a model is not divided: transfers and launches take as long."""

_TRIED = 3
"""The maximum number of mixtures that are compiled and measured whole."""

_SOLUTIONS = 8
"""The number of placements that are searched, among which mixtures are selected."""

_BLOCKS_SHARE = 0.7
"""The share of the time for measurements that blocks get; whole mixtures get the others."""

logger = logging.getLogger("crosschip")

Build = Callable[[Sequence[str], Sequence[str | None]], CompiledModel]
"""Compiles a model for some devices, with a requested device for each operation."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The costs of blocks, and what was decided by them."""

    model: CostModel
    problem: PlacementProblem
    solutions: Sequence[Solution]


class Mixtures:
    """The search for a placement on several devices that is faster than the best device.

    Args:
        model: the model.
        compilation: the devices and options.
        store: the store of measured costs; `None` for none.
        options: the time for measurements, and the limits of memory and segments.
        build: compiles the model.
    """

    def __init__(
        self,
        model: Model,
        compilation: Compilation,
        store: Store | None,
        options: PlacementOptions,
        build: Build,
    ) -> None:
        self._model = model
        self._compilation = compilation
        self._store = store
        self._options = options
        self._build = build

    def improve(
        self, choice: Choice, whole: dict[str, CompiledModel]
    ) -> tuple[Choice, CompiledModel]:
        """Return the fastest placement, on one device or on several.

        Args:
            choice: the measurements of the whole model on each device.
            whole: the model, compiled for each device that runs all of it; the returned one is
                taken out.
        """
        end = time.perf_counter() + self._options.tuning_seconds
        best = choice.order[0]
        single = whole[best] if best in whole else self._build(choice.order, ())
        with ExitStack() as failing:
            if best not in whole:
                failing.callback(single.close)
            undivided = self._undivided(choice)
            if undivided:
                choice = replace(choice, undivided=undivided)
            else:
                choice, single = self._try(choice, single, whole, end)
            failing.pop_all()
        whole.pop(best, None)
        return choice, single

    def _undivided(self, choice: Choice) -> str:
        """Return why the model is not divided; empty if mixtures are tried."""
        if self._options.strict:
            return "`strict` allows one device"
        if self._options.tuning_seconds <= 0:
            return "tuning_seconds is 0"
        if choice.problem:
            return choice.problem
        milliseconds = choice.trials[0].milliseconds
        return "" if milliseconds is None else _too_short(milliseconds)

    def _try(
        self,
        choice: Choice,
        single: CompiledModel,
        whole: Mapping[str, CompiledModel],
        end: float,
    ) -> tuple[Choice, CompiledModel]:
        """Measure costs, search placements, and measure the best ones whole."""
        shapes = choice.shapes
        try:
            shapes = shapes or ShapeSearch(self._model, self._compilation.options.sizes).first()
            inputs = random_inputs(self._model, shapes)
            if choice.trials[0].milliseconds is None:
                undivided = self._time_alone(single, inputs)
                if undivided:
                    return replace(choice, undivided=undivided), single
            outcome = self._search(choice, whole, inputs, shapes, end)
        except BudgetError:
            raise
        except Error as error:
            return replace(choice, undivided=str(error)), single
        name = _label_alone(single)
        compiled = {name: single}
        solutions = {name: _as_solution(single, outcome)}
        considered: list[Candidate] = []
        for label, solution in _mixtures(outcome):
            reason = self._compile(label, solution, outcome, compiled, end)
            solutions[label] = solution
            if reason:
                considered.append(
                    Candidate(label, solution.seconds, None, solution.segments, reason)
                )
        return self._fastest(choice, outcome, compiled, solutions, considered, inputs)

    def _search(
        self,
        choice: Choice,
        whole: Mapping[str, CompiledModel],
        inputs: Mapping[str, object],
        shapes: Mapping[str, tuple[int, ...]],
        end: float,
    ) -> _Outcome:
        """Measure the blocks, and search placements."""
        constraints = self._compilation.constraints
        queries = ModelQueries(self._model, self._compilation.queries())
        operations = self._model.operations
        names = [trial.device for trial in choice.trials if trial.whole or trial.operations]
        if not whole and any(trial.device == SLOWEST for trial in choice.trials):
            names.append(SLOWEST)
        overruling = overruling_answers(operations, names, {}, constraints.allowed_devices)
        indices = range(len(operations))
        costs = CostModel(
            self._model,
            self._compilation,
            {name: queries.answers(name, indices, overruling[name]) for name in names},
            self._store,
            whole_seconds={
                trial.device: trial.milliseconds / 1e3
                for trial in choice.trials
                if trial.milliseconds is not None
            },
            whole_runs={name: partial(each.run, inputs) for name, each in whole.items()},
            tuning_seconds=max(0.0, end - time.perf_counter()) * _BLOCKS_SHARE,
            shapes=shapes,
        )
        costs.measure()
        problem = costs.problem(
            memory_limits={n: b for n, b in constraints.memory.items() if n in costs.devices},
            max_segments=constraints.max_segments,
        )
        return _Outcome(costs, problem, solve(problem, count=_SOLUTIONS))

    def _time_alone(self, single: CompiledModel, inputs: Mapping[str, object]) -> str:
        """Time a model that only one device runs; return why it is not divided, if it is not."""
        (trial,) = measure({"alone": single.run}, inputs).values()
        single.forget_runs()
        return trial.reason or _too_short(trial.milliseconds or 0.0)

    def _compile(
        self,
        label: str,
        solution: Solution,
        outcome: _Outcome,
        compiled: dict[str, CompiledModel],
        end: float,
    ) -> str:
        """Add a compiled mixture; return why that is not possible, or an empty text."""
        if time.perf_counter() > end:
            return "there was no time to measure it"
        mixture = _mixture(solution, outcome, len(self._model.operations))
        try:
            compiled[label] = self._build(mixture.devices, mixture.requested)
        except BudgetError:
            raise
        except Error as error:
            return str(error)
        return ""

    def _fastest(
        self,
        choice: Choice,
        outcome: _Outcome,
        compiled: dict[str, CompiledModel],
        solutions: Mapping[str, Solution],
        considered: Sequence[Candidate],
        inputs: Mapping[str, object],
    ) -> tuple[Choice, CompiledModel]:
        """Measure the compiled placements in turns; return the fastest, and close the others."""
        alone = next(iter(compiled))
        trials = measure({name: each.run for name, each in compiled.items()}, inputs)
        times = {
            name: trial.milliseconds
            for name, trial in trials.items()
            if trial.milliseconds is not None
        }
        limit = times.get(alone, float("inf"))
        best = min(times, key=lambda name: times[name], default=alone)
        if best != alone and times[best] > FASTER * limit:
            best = alone
        solution = solutions[best]
        candidates = [*considered]
        for name in compiled:
            predicted, segments = solutions[name].seconds, solutions[name].segments
            seconds = times[name] / 1e3 if name in times else None
            candidates.append(Candidate(name, predicted, seconds, segments, trials[name].reason))
        candidates.sort(key=lambda each: (each.seconds is None, each.seconds or 0.0))
        costs = describe_costs(self._model, outcome.model, outcome.problem, solution, candidates)
        mixture = None
        if best != alone:
            mixture = replace(
                _mixture(solution, outcome, len(self._model.operations)),
                milliseconds=times[best],
                milliseconds_alone=times.get(alone, times[best]),
            )
        for name, each in compiled.items():
            each.forget_runs()
            if name not in (best, alone):
                each.close()
        if best != alone:
            compiled[alone].close()
        return replace(choice, mixture=mixture, costs=costs), compiled[best]


def _label_alone(single: CompiledModel) -> str:
    """Return the name of the placement without a mixture, which no mixture has."""
    used = dict.fromkeys(segment.device for segment in single.placement.segments)
    label = " + ".join(device for device in used if device != RUNTIME)
    return f"{label} (by order)" if "+" in label else label


def _too_short(milliseconds: float) -> str:
    """Return why a model that runs for some milliseconds is not divided; empty if it may be."""
    if milliseconds >= LEAST_MILLISECONDS:
        return ""
    return f"a run takes {milliseconds:.3g} ms, about as long as a transfer"


def _mixtures(outcome: _Outcome) -> Sequence[tuple[str, Solution]]:
    """Return the best predicted mixtures, with different names."""
    mixtures: list[tuple[str, Solution]] = []
    for solution in outcome.solutions:
        used = sorted({outcome.problem.devices[device] for device in solution.devices} - {RUNTIME})
        if len(used) < 2:
            continue
        label = " + ".join(used)
        count = sum(name.partition(" (")[0] == label for name, _ in mixtures)
        mixtures.append((f"{label} ({count + 1})" if count else label, solution))
    return mixtures[:_TRIED]


def _mixture(solution: Solution, outcome: _Outcome, operations: int) -> Mixture:
    """Return the devices of a solution, without times."""
    names = [""] * operations
    for block, device in zip(outcome.model.blocks, solution.devices, strict=True):
        name = outcome.problem.devices[device]
        for index in block.operations:
            names[index] = "" if name == RUNTIME else name
    runs = tuple((name, len(list(group))) for name, group in groupby(names))
    return Mixture(runs, 0.0, 0.0, solution.segments)


def _as_solution(compiled: CompiledModel, outcome: _Outcome) -> Solution:
    """Return the placement of a compiled model as a solution of the problem."""
    problem, assigned = outcome.problem, compiled.placement.assignment.devices
    columns = {name: column for column, name in enumerate(problem.devices)}
    devices = tuple(
        columns.get(assigned[block.operations[0]] or RUNTIME, 0) for block in outcome.model.blocks
    )
    segments = sum(1 for segment in compiled.placement.segments if segment.device != RUNTIME)
    return Solution(devices, problem.predicted_seconds(devices), segments)


def describe_costs(
    model: Model,
    costs: CostModel,
    problem: PlacementProblem,
    solution: Solution,
    candidates: Sequence[Candidate],
) -> PlacementCosts:
    """Return the costs of a placement, with those of the alternatives."""
    names = problem.devices
    blocks = []
    for index, others in enumerate(alternatives(problem, solution)):
        device = names[solution.devices[index]]
        cost = costs.costs(index, device)
        possible = [
            Alternative(names[other.device], other.seconds, other.transfers)
            for other in others
            if other.seconds < float("inf")
        ]
        blocks.append(
            BlockCost(
                tuple(model.operations[each].name for each in costs.blocks[index].operations),
                device,
                cost.seconds if cost else 0.0,
                cost.uncertainty if cost else 0.0,
                cost is None or cost.estimated,
                tuple(sorted(possible, key=lambda each: each.seconds)),
            )
        )
    launches = dict(zip(names, map(float, problem.launch_seconds), strict=True))
    alone = {
        name: problem.predicted_seconds([column] * problem.blocks)
        for column, name in enumerate(names)
        if name != RUNTIME
    }
    occupied = dict(zip(names, map(int, problem.occupied(solution.devices)), strict=True))
    return PlacementCosts(
        tuple(blocks),
        tuple(_transfers(costs, problem, solution)),
        launches,
        solution.seconds,
        {name: seconds for name, seconds in alone.items() if seconds < float("inf")},
        {name: size for name, size in occupied.items() if size},
        tuple(candidates),
    )


def _transfers(
    costs: CostModel, problem: PlacementProblem, solution: Solution
) -> Sequence[TransferCost]:
    names = [*problem.devices, HOST]
    place = {-1: len(problem.devices), **dict(enumerate(solution.devices))}
    transfers = []
    for operand, tensor in costs.tensors:
        source = place[tensor.source]
        for destination in dict.fromkeys(place[reader] for reader in tensor.readers):
            if destination != source:
                seconds = problem.latency[source, destination]
                seconds += tensor.bytes * problem.seconds_per_byte[source, destination]
                ends = names[source], names[destination]
                transfers.append(TransferCost(operand.name, *ends, tensor.bytes, float(seconds)))
    return transfers
