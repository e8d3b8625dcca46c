"""`crosschip ops`."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Annotated, Any

import typer

from crosschip.cli import _options
from crosschip.cli._compiling import Engines, with_options
from crosschip.cli._show import console, document, showing_progress, table
from crosschip.hal import Sizes
from crosschip.ir import InputError
from crosschip.ir.suggestion import did_you_mean
from crosschip.ops import Operator
from crosschip.ops.packages import all_operators, failures
from crosschip.runtime.catalog import describe, documentation
from crosschip.runtime.discovery import automatic, open_automatic, open_device
from crosschip.runtime.guard.devices import GuardedDevice


def _operator_names(incomplete: str) -> list[str]:
    """Return the completions of operators for the shell."""
    return [name for name in all_operators() if name.startswith(incomplete)]


@with_options(Engines)
def command(
    *,
    name: Annotated[
        str | None,
        typer.Argument(
            help="An operator, as in CONV_2D; all if left out.",
            autocompletion=_operator_names,
        ),
    ] = None,
    devices: Annotated[
        str, typer.Option(help="Devices to query about it, as in openvino; auto for all.")
    ] = "",
    engines: Engines,
    as_json: _options.Json = False,
) -> None:
    """List all operators, or describe one in full; with devices, say who runs what."""
    chosen = list(all_operators().values()) if name is None else [_operator_named(name)]
    with ExitStack() as opened:
        opened_devices = [
            opened.enter_context(device) for device in _open_devices(devices, engines)
        ]
        options = engines.configuration().options(Sizes())
        described = [describe(operator, opened_devices, options) for operator in chosen]
    if as_json:
        document(described)
    elif name is None:
        _print_all(described, opened_devices)
    else:
        _print(described[0], chosen[0])


def _open_devices(devices: str, engines: Engines) -> Iterator[GuardedDevice]:
    """Open the named devices with their properties, one after the other."""
    with showing_progress("asking the devices"):
        if devices == "auto":
            yield from open_automatic(engines.configuration(automatic()).properties)
        else:
            names = devices.split(",") if devices else []
            settings = engines.configuration(names).properties
            yield from (open_device(name, settings.get(name)) for name in names)


def _operator_named(name: str) -> type[Operator]:
    names = all_operators()
    operator = next((names[each] for each in names if each.lower() == name.lower()), None)
    if operator is None:
        near = did_you_mean(name, names)
        raise InputError(f"there is no operator {name!r}{near}; `crosschip ops` lists all")
    return operator


def _print_all(described: list[dict[str, Any]], devices: Sequence[GuardedDevice]) -> None:
    summary = sum(op["package"] is not None for op in described)
    packaged = f", {summary} from packages" if summary else ""
    table(
        f"{len(described)} operators, {sum(op['core'] for op in described)} of them core{packaged}",
        ("operator", *(device.name for device in devices), "what it computes"),
        [
            (
                op["name"] + (" *" if op["core"] else ""),
                *(_word(way) for way in op["devices"].values()),
                op["summary"],
            )
            for op in described
        ],
    )
    console.print("* core: all others can be decomposed into these", highlight=False)
    for entry, reason in failures().items():
        console.print(f"package {entry}: not loaded: {reason}", highlight=False, style="red")


def _word(way: str) -> str:
    return way if way in ("yes", "decomposed") else "no"


def _print(op: dict[str, Any], operator: type[Operator]) -> None:
    more = f" (package {op['package']})" if op["package"] else " (core)" if op["core"] else ""
    console.print(f"{op['name']}{more}\n", style="bold")
    console.print(documentation(operator) + "\n", highlight=False)
    table(
        "Slots",
        ("slot", "kind", "default", "takes"),
        [
            (
                slot["name"],
                slot["kind"],
                slot.get("default", "left out") if slot["optional"] else "required",
                ", ".join(slot.get("options", slot["types"]))
                + (", quantized" if slot["quantized"] else ""),
            )
            for slot in op["slots"]
        ],
    )
    table("Elsewhere", ("system", "operator"), list(_other_names(op)))
    if op["devices"]:
        table("Devices", ("device", "runs it"), list(op["devices"].items()))
    if op["decomposes"]:
        console.print(f"Decomposes into {', '.join(op['decomposes'])}.", highlight=False)


def _other_names(op: dict[str, Any]) -> Iterator[tuple[str, str]]:
    mapping = op["opsets"]
    if mapping["nnadapter"]:
        foreign = mapping["nnadapter"]
        yield (
            "NNAdapter",
            f"{op['name']} ({foreign['code']}) {foreign['translation']}".rstrip(),
        )
    for foreign in mapping["nnrt"]:
        yield (
            "NNRt",
            f"{foreign['name']} ({foreign['code']}) {foreign['translation']}".rstrip(),
        )
    for foreign in mapping["hdi"]:
        yield (
            f"HDI {foreign['since']}",
            f"{foreign['name']} ({foreign['code']}) {foreign['translation']}".rstrip(),
        )
    for name in op["onnx"]:
        yield "ONNX", name
