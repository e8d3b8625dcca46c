"""`crosschip tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crosschip.accuracy.error import UNIT
from crosschip.cli import _options
from crosschip.cli._compiling import Engines, with_options
from crosschip.cli._show import console, document, messages, table, write
from crosschip.ir import InputError
from crosschip.ir.text import legible
from crosschip.tuning.picture import picture
from crosschip.tuning.search import Trial
from crosschip.tuning.tuning import Tuning, tune


@with_options(Engines)
def command(
    model: _options.ModelPath,
    engines: Engines,
    accuracy: Annotated[
        float,
        typer.Option(
            help="The largest error of an output, as in 1e-2: the Euclidean norm of the "
            "difference, relative to that of the exact output."
        ),
    ],
    inputs: Annotated[
        Path | None,
        typer.Option(help="A folder of samples: INPUT.npy, or a folder with these for each."),
    ] = None,
    devices: _options.Devices = "auto",
    shape: _options.Shapes = None,
    only: Annotated[
        str,
        typer.Option(help="The precisions to consider, as in bfloat16,int8,int4; all if left out."),
    ] = "",
    calibration: Annotated[
        str, typer.Option(help="How static int8 finds ranges: minmax, percentile, entropy.")
    ] = "minmax,percentile",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the compiled model to this file.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(help="Write a plot of error against speed to this file.")
    ] = None,
    use_cache: _options.UseCache = True,
    cache_dir: _options.CacheFolder = None,
    budget: _options.Limits = None,
    as_json: _options.Json = False,
) -> None:
    """Find the fastest precision of a model whose measured error stays within a bound.

    Errors are measured on samples of the model's inputs, and speeds in turn with float32. Where a
    precision is too far off as a whole, parts of the model stay in float32.
    """
    if engines.precision is not None:
        raise InputError("tune chooses the precision; name those to consider with --only")
    tuning = tune(
        model,
        devices,
        accuracy=accuracy,
        samples=inputs,
        shapes=_options.shapes(shape),
        precisions=_names(only) or None,
        calibrations=_names(calibration),
        cache=_options.cache(use_cache, cache_dir),
        configuration=engines.configuration(),
        budget=_options.budget(budget),
        progress=lambda what: messages.print(f"trying {what}", highlight=False),
    )
    with tuning.compiled:
        if output is not None:
            tuning.compiled.save(output)
    if svg is not None:
        write(svg, picture(tuning.trials, tuning.chosen, accuracy, tuning.model))
    if as_json:
        document(_report(tuning))
    else:
        _print(tuning)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _report(tuning: Tuning) -> dict[str, object]:
    return {
        "model": tuning.model,
        "accuracy": tuning.accuracy,
        "error_unit": UNIT,
        "speed_unit": "times as fast as the fastest device in float32",
        "remembered": tuning.remembered,
        "chosen": tuning.trials.index(tuning.chosen),
        "trials": [_fields(trial) for trial in tuning.trials],
    }


def _fields(trial: Trial) -> dict[str, object]:
    variant = trial.variant
    return {
        "device": variant.device,
        "precision": variant.precision,
        "form": variant.form,
        "calibration": variant.calibration,
        "in_float32": list(variant.exact),
        "error": trial.error,
        "speed": trial.speed,
        "reason": trial.reason,
    }


def _print(tuning: Tuning) -> None:
    table(
        f"{tuning.model}: an error of {tuning.accuracy:g} is allowed ({UNIT})",
        ("variant", "error", "times as fast", "note"),
        [
            (
                trial.variant.name,
                "" if trial.error is None else f"{trial.error:.2e}",
                "" if trial.speed is None else f"{trial.speed:.2f}",
                legible(trial.short_reason)
                or ("chosen" if trial is tuning.chosen else _note(trial, tuning)),
            )
            for trial in tuning.trials
        ],
        numbers="error,times as fast",
    )
    console.print(str(tuning), highlight=False)
    if tuning.remembered:
        console.print("found earlier, and remembered", highlight=False)


def _note(trial: Trial, tuning: Tuning) -> str:
    if trial.error is None:
        return f"does not run: {legible(trial.short_reason)}"
    if trial is tuning.chosen:
        return "chosen"
    return "" if trial.error <= tuning.accuracy else "too far off"
