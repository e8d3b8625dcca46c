"""`crosschip explain`."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from crosschip.cli import _options
from crosschip.cli._compiling import Compilation, with_options
from crosschip.cli._show import console, document, print_error, table, write
from crosschip.drawing import to_dot, to_svg
from crosschip.ir import Model, UnsupportedError
from crosschip.runtime.placement.descriptions import (
    avoided_quirks,
    placement_notes,
    placement_tables,
)
from crosschip.runtime.placement.labels import labels_of
from crosschip.runtime.placement.placement import Placement
from crosschip.runtime.placement.segments import Segment
from crosschip.runtime.placement.subgraphs import subgraph_operators, subgraph_text


@with_options(Compilation)
def command(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL", help=_options.MODEL_HELP)],
    compilation: Compilation,
    missing: Annotated[
        str | None,
        typer.Option(
            metavar="DEVICE",
            help="List the operators that a device lacks for the models, in the order in which "
            "to add them; several models may be passed.",
        ),
    ] = None,
    subgraphs: Annotated[
        bool,
        typer.Option(
            "--subgraphs",
            help="Print clusters and operators as NNAdapter does, for a --partition file.",
        ),
    ] = False,
    dot: Annotated[Path | None, typer.Option(help="Write a Graphviz drawing to this file.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write an SVG drawing to this file.")] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write an interactive page to this file, for a browser.")
    ] = None,
    profile: Annotated[
        bool,
        typer.Option(
            "--profile", help="Compile and run the model, and show measured times in the page."
        ),
    ] = False,
    as_json: _options.Json = False,
) -> None:
    """Show the device of each operation of a model, with reasons, without compiling.

    The exit status is 1 if no device runs some operation.
    """
    if missing is not None:
        _print_missing([compilation.load(model) for model in models], compilation, missing, as_json)
        return
    if len(models) > 1:
        raise typer.BadParameter("is one, unless --missing is asked for", param_hint="MODEL")
    if svg and svg.suffix.lower() != ".svg":
        raise typer.BadParameter(f"{svg}: what is written is SVG; name it .svg", param_hint="--svg")
    if profile and not html:
        raise typer.BadParameter("is for the page of --html", param_hint="--profile")
    model = compilation.load(models[0])
    if html:
        placement = _write_page(html, model, compilation, profile)
    else:
        placement = compilation.explain(model)
    if dot:
        write(dot, to_dot(placement.model, placement.clusters()))
    if svg:
        write(svg, to_svg(placement.model, labels_of(placement)))
    if as_json:
        document(_report(placement))
    elif subgraphs:
        print(subgraph_text(placement))
    else:
        _print(placement)
    try:
        placement.check()
    except UnsupportedError as error:  # not raised: the one document is printed already
        print_error(error)
        raise typer.Exit(1) from None


def _write_page(path: Path, model: Model, compilation: Compilation, profiled: bool) -> Placement:
    """Write the page of a placement, and return the placement.

    Args:
        path: the file.
        model: the model.
        compilation: the options.
        profiled: whether to compile and run the model first, for the page.
    """
    if not profiled:
        placement = compilation.explain(model)
        placement.to_html(path)
        return placement
    with compilation.compile(model) as compiled:
        named = compilation.input or compilation.shape
        profile = compiled.profile(compilation.inputs(model) if named else None)
    # All devices were asked for their reasons in an explained placement only.
    placement = compilation.explain(model)
    if _assignment(placement) != _assignment(profile.placement):
        placement = profile.placement
    placement.to_html(path, profile)
    return placement


def _assignment(placement: Placement) -> list[tuple[str, str | None]]:
    return [(decision.name, decision.device) for decision in placement.all_decisions()]


def _print_missing(
    models: Sequence[Model], compilation: Compilation, device: str, as_json: bool
) -> None:
    steps = compilation.missing(models, device)
    if as_json:
        document([asdict(step) for step in steps])
        return
    table(
        f"What {device} lacks, in the order in which to add it",
        (
            "operator",
            "operations",
            "multiply-adds so far",
            "operations so far",
            "segments",
            "reason",
        ),
        [
            (
                step.operator or "as it is",
                step.operations or "",
                f"{step.share:.1%}",
                f"{step.taken:.1%}",
                step.segments,
                "\n".join(step.reasons[:_REASONS]),
            )
            for step in steps
        ],
        numbers="operations,multiply-adds so far,operations so far,segments",
    )


_REASONS = 3


def _report(placement: Placement) -> dict[str, object]:
    return {
        "clusters": len(placement.segments),
        "subgraph_operators": subgraph_operators(placement),
        "segments": [
            {
                "device": segment.device,
                "operations": len(segment.operations),
                "inputs": [operand.name for operand in segment.inputs],
                "outputs": [operand.name for operand in segment.outputs],
                "shapes": way,
            }
            for segment, way in _segments(placement)
        ],
        "operations": [
            {
                "name": decision.name,
                "type": decision.type,
                "device": decision.device,
                "reasons": dict(decision.reasons),
            }
            for decision in placement.all_decisions()
        ],
        "in_float": list(placement.in_float),
        "quirks": avoided_quirks(placement),
        "choice": _choice(placement),
        "costs": asdict(placement.costs) if placement.costs else None,
        "settings": {device: dict(values) for device, values in placement.settings.items()},
        "conditions": [
            {"device": each.device, "of": each.of, "low": each.low, "high": each.high}
            for each in placement.conditions
        ],
    }


def _choice(placement: Placement) -> dict[str, object] | None:
    """Return the choice without the costs, which are the placement's."""
    return asdict(replace(placement.choice, costs=None)) if placement.choice else None


def _segments(placement: Placement) -> Iterator[tuple[Segment, str]]:
    """Return the rows of segments, including those of bodies, with their shape strategies."""
    yield from zip(placement.all_segments(), placement.all_shape_strategies(), strict=True)


def _print(placement: Placement) -> None:
    for title, columns, rows, numbers in placement_tables(placement):
        table(title, columns, rows, ",".join(numbers))
    for note in placement_notes(placement):
        console.print(note, highlight=False)
