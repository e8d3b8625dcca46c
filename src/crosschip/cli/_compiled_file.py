"""Files of compiled models, where commands take them in the place of models."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import typer

import crosschip
from crosschip.cli._show import doing
from crosschip.ir import Budget
from crosschip.runtime.artifact.container import is_shipped
from crosschip.runtime.compiled import CompiledModel

_SETTINGS = ("threads", "performance")
"""The options that any command may set for a compiled model when it is loaded."""


def is_compiled(path: Path) -> bool:
    """Tell whether a file holds a compiled model."""
    return is_shipped(path)


def load(
    path: Path,
    context: typer.Context,
    meaningful: Collection[str],
    budget: Budget,
    threads: int | None = None,
    performance: str | None = None,
) -> CompiledModel:
    """The compiled model in a file.

    Args:
        path: of the file.
        context: of the command.
        meaningful: the parameters of the command that mean something for a compiled model.
        budget: what loading may cost.
        threads: as for `crosschip.load_compiled`.
        performance: likewise.

    Raises:
        typer.BadParameter: another one was given.
    """
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        is_given = source is not None and source.name == "COMMANDLINE"
        if is_given and parameter.name not in (*meaningful, *_SETTINGS):
            raise typer.BadParameter(
                f"{path} holds a compiled model, for which this means nothing",
                param_hint=parameter.opts[0],
            )
    with doing(f"loading {path}"):
        return crosschip.load_compiled(
            path, threads=threads, performance=performance, budget=budget
        )
