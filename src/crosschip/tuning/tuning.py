"""`crosschip.tune`: the choice of the fastest variant of a model within an error bound."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from crosschip.accuracy.error import UNIT
from crosschip.drawing.tables import Table, to_html
from crosschip.hal import Precision, Sizes
from crosschip.importers import load
from crosschip.ir import Array, Budget, InputError, Model
from crosschip.ir.errors import install_command
from crosschip.ir.shape_binding import shapes_and_sizes
from crosschip.ir.text import legible
from crosschip.passes import simplify
from crosschip.passes.specialize import Specialize
from crosschip.progress import task
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.key import model_key, request_key
from crosschip.runtime.cache.store import CacheArgument, Store, open_store
from crosschip.runtime.compile.devices import open_devices
from crosschip.runtime.compile.front_door import compile as compile_model
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.configuration import Configuration
from crosschip.runtime.discovery import automatic
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.options import CacheOptions, Shapes
from crosschip.runtime.placement.log_messages import SLOWEST
from crosschip.runtime.placement.options import PlacementOptions
from crosschip.tuning.int8 import METHODS, quantizer_version
from crosschip.tuning.quantized_forms import QuantizedForms
from crosschip.tuning.samples import Sample, Samples, samples_of
from crosschip.tuning.search import Search, Trial
from crosschip.tuning.variants import BITS, FLOAT32, INT8, Form, Variant


@dataclass(frozen=True, slots=True)
class Tuning:
    """The result of `tune`.

    Attributes:
        model: the name of the model.
        accuracy: the largest allowed error.
        trials: all trials.
        chosen: the fastest trial within the bound.
        remembered: whether the trials came from the cache.
        compiled: the compiled model of the chosen variant.
    """

    model: str
    accuracy: float
    trials: tuple[Trial, ...]
    chosen: Trial
    remembered: bool
    compiled: CompiledModel = field(repr=False)

    def __str__(self) -> str:
        trial = self.chosen
        return (
            f"{self.model}: {trial.variant.name}, with an error of {trial.error:.2g} where "
            f"{self.accuracy:g} is allowed ({UNIT}), {trial.speed:.2f} times as fast as in float32"
        )

    def table(self) -> Table:
        """Return the trials as a table."""
        columns = ("variant", "error", "times as fast", "note")
        rows = [
            (
                trial.variant.name,
                "" if trial.error is None else f"{trial.error:.2e}",
                "" if trial.speed is None else f"{trial.speed:.2f}",
                legible(trial.short_reason) or self._note(trial),
            )
            for trial in self.trials
        ]
        title = f"{self.model}: an error of {self.accuracy:g} is allowed ({UNIT})"
        return Table(title, columns, rows, columns[1:3])

    def notes(self) -> Iterator[str]:
        """Yield sentences: the choice, and whether it was stored."""
        yield str(self)
        if self.remembered:
            yield "found earlier, and remembered"

    def _note(self, trial: Trial) -> str:
        if trial is self.chosen:
            return "chosen"
        return "too far off" if (trial.error or 0.0) > self.accuracy else ""

    def _repr_html_(self) -> str:
        return to_html("Tuning", [self.table()], self.notes())


def tune(
    model: Model | Any,
    devices: str | Sequence[str] = "auto",
    *,
    accuracy: float,
    samples: Samples = None,
    shapes: Shapes | None = None,
    precisions: Sequence[str] | None = None,
    calibrations: Sequence[str] = ("minmax", "percentile"),
    cache: CacheArgument | CacheOptions = True,
    configuration: Configuration | str | Path | None = None,
    budget: Budget | None = None,
) -> Tuning:
    """Find the fastest variant of a model whose measured error is within a bound.

    Each device runs the model in float32, in its other precisions, and with int8 and int4 weights
    in the forms of `crosschip.tuning.variants`. If a variant is faster but its error too large,
    parts of the model stay in float32. Errors are measured on the samples against the fastest
    device's float32 (`crosschip.accuracy.error`), and times in turns with it. The choice is cached
    by the content of the model and samples, the devices and their versions, and all options.

    Args:
        model: as for `crosschip.compile`.
        devices: names of devices, each of which runs the whole model; `"auto"` for all but
            `reference`.
        accuracy: the largest allowed relative error of an output, as in `1e-2`.
        samples: inputs for measurement and calibration (see `crosschip.tuning.samples`).
        shapes: the shapes of inputs with dynamic dimensions; by default the samples'.
        precisions: the precisions to try in addition to float32, such as `bfloat16`, `int8` and
            `int4`; all by default.
        calibrations: the calibration methods of static int8 to try, of `minmax`, `percentile` and
            `entropy`; none to leave static int8 out.
        cache: the cache of programs and of the choice, as for `crosschip.compile`.
        configuration: the options of the devices, as for `crosschip.compile`, except for precision.
        budget: the largest cost of importing and placing, as for `crosschip.compile`.

    Raises:
        InputError: an argument is invalid.
        Error: as for `crosschip.compile`, if no device runs the model in float32.
    """
    if not isinstance(accuracy, int | float) or not accuracy >= 0:
        raise InputError(f"accuracy is {accuracy!r}, but must be an error such as 1e-2")
    considered = _check_precisions(precisions)
    for name in calibrations:
        if name not in METHODS:
            raise InputError(f"there is no calibration {name!r}; there are: {', '.join(METHODS)}")
    names = _names(devices)
    if not isinstance(model, Model):
        model = load(model, budget=budget)
    measured_samples = samples_of(model, samples, shapes or {})
    model = _specialize(model, measured_samples, shapes)
    settings = Configuration.of(configuration).overridden(FLOAT32, None, None, None)
    with ExitStack() as owned:
        opened = open_devices(names, settings.properties, {}, owned, isolate=False)
        offered = {
            name: [p for p in device.capabilities.precisions if p.value in considered]
            for name, device in opened.items()
        }
        tools = quantizer_version() if INT8 in considered else ""
        search_options = [accuracy, sorted(considered), list(calibrations), tools]
        key_options = [*search_options, os.cpu_count(), _digest(measured_samples)]
        entry = _entry(model, list(opened.values()), settings, key_options)
    options = CacheOptions.of(cache)
    store = open_store(options.location, options.size)

    def compile(model: Model, variant: Variant) -> CompiledModel:
        return compile_model(
            model, variant.devices, placement=PlacementOptions(pin=variant.pins), cache=cache,
            configuration=settings, budget=budget,
        )  # fmt: skip

    remembered = None if store is None else _read_stored(store, entry)
    if remembered is not None:
        forms = QuantizedForms(model)
        chosen, trials = remembered
    else:
        forms = QuantizedForms.of(model, considered & BITS.keys(), calibrations, measured_samples)
        with task(f"tuning {model.name}") as tuning:
            search = Search(
                model, offered, accuracy, measured_samples, compile, forms, tuning.describe
            )
            chosen = search.run()
        trials = tuple(search.trials)
        if store is not None:
            store.write(entry, _to_bytes(chosen, trials))
    compiled = compile(forms.convert(chosen.variant), chosen.variant)
    return Tuning(model.name, accuracy, trials, chosen, remembered is not None, compiled)


def _check_precisions(precisions: Sequence[str] | None) -> frozenset[str]:
    names = {*(precision.value for precision in Precision), *BITS}
    for name in precisions or ():
        if name not in names:
            raise InputError(
                f"there is no precision {name!r}; there are: {', '.join(sorted(names))}"
            )
    return frozenset(names if precisions is None else {*precisions, Precision.FLOAT32.value})


def _names(devices: str | Sequence[str]) -> list[str]:
    if devices == "auto":
        engines = [name for name in automatic() if name != SLOWEST]
        if not engines:
            raise InputError(
                f"there is no engine to tune for; install one, as with "
                f"{install_command('onnxruntime')}, or name devices"
            )
        return engines
    names = [n.strip() for n in devices.split(",")] if isinstance(devices, str) else list(devices)
    if not all(isinstance(name, str) for name in names):
        raise InputError("tune opens devices in several precisions; give their names")
    for name in names:
        if "/" in name.partition("@")[0]:
            raise InputError(f"{name!r} has a precision already; tune chooses it: leave it out")
    return names


def _specialize(
    model: Model, samples: Sequence[Sample], shapes: Mapping[str, Sequence[int | None] | int] | None
) -> Model:
    """Return the simplified model with the shapes of the samples that are equal in all of them."""
    alike = {
        name: np.asarray(samples[0][name]).shape
        for name in model.inputs
        if len({np.asarray(sample[name]).shape for sample in samples}) == 1
    }
    types = {name: operand.type for name, operand in model.inputs.items()}
    fixed = {**alike, **(shapes or {})}
    return simplify(Specialize(*shapes_and_sizes(types, fixed))(model))


def _digest(samples: Sequence[Mapping[str, Array]]) -> str:
    digest = hashlib.sha256()
    for sample in samples:
        for name, value in sorted(sample.items()):
            array = np.ascontiguousarray(value)
            digest.update(f"{name} {array.dtype} {array.shape} ".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


def _entry(
    model: Model, devices: Sequence[GuardedDevice], settings: Configuration, key_options: object
) -> Entry:
    key = request_key(model_key(model), devices, settings.options(Sizes()), ["tune", key_options])
    return Entry(key, "tune", version("crosschip"), model.name, len(model.operations))


def _to_bytes(chosen: Trial, trials: Sequence[Trial]) -> bytes:
    content = {"chosen": trials.index(chosen), "trials": [asdict(trial) for trial in trials]}
    return json.dumps(content).encode()


def _read_stored(store: Store, entry: Entry) -> tuple[Trial, tuple[Trial, ...]] | None:
    """Return the chosen trial of an earlier search, and all trials; `None` if there is none."""
    saved = store.read(entry)
    if saved is None:
        return None
    try:
        content = json.loads(saved)
        trials = tuple(_trial(fields) for fields in content["trials"])
        return trials[content["chosen"]], trials
    except (IndexError, KeyError, TypeError, ValueError) as error:
        store.discard(entry, str(error))
        return None


def _trial(fields: Mapping[str, Any]) -> Trial:
    variant = dict(fields["variant"])
    variant["exact"] = tuple(variant["exact"])
    variant["form"] = variant["form"] and Form(variant["form"])
    variant["ranges"] = {name: tuple(bounds) for name, bounds in variant["ranges"].items()}
    return Trial(**{**fields, "variant": Variant(**variant)})
