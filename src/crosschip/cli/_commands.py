"""The groups of commands, which import each command on demand."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command_from_info, get_group_from_info
from typer.models import CommandInfo, TyperInfo

import crosschip
from crosschip import cli

_PLAIN: Mapping[str, Any] = {"pretty_exceptions_short": False, "rich_markup_mode": None}
"""Errors and help without frames."""


class Group(TyperGroup):
    """A group of commands whose help shows their full summaries."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            paragraph = (command.help or "").partition("\n\n")[0] if command else ""
            rows.append((name, " ".join(paragraph.split())))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class Commands(Group):
    """The commands of the package's modules whose name does not start with `_`."""

    def list_commands(self, ctx: Any) -> list[str]:
        names = [m.name for m in iter_modules(cli.__path__) if not m.name.startswith("_")]
        return [name.replace("_", "-") for name in names]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = import_module(f"{cli.__name__}.{cmd_name.replace('-', '_')}")
        if hasattr(module, "app"):
            group = TyperInfo(module.app, name=cmd_name, cls=Group)
            return get_group_from_info(group, suggest_commands=True, **_PLAIN)
        info = CommandInfo(name=cmd_name, callback=module.command)
        return get_command_from_info(info, **_PLAIN)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            from crosschip.ir.suggestion import did_you_mean

            ctx.fail(f"there is no command {args[0]!r}{did_you_mean(args[0], names)}")
        return super().resolve_command(ctx, args)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"crosschip {crosschip.__version__}")
        raise typer.Exit


def general(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and leave."
        ),
    ] = False,
) -> None:
    """The options before any command."""
