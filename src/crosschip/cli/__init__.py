"""The command line: a file a command, found by being here.

A module of this package whose name does not start with `_` is a command of that name; its function
`command` is it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules

import typer

from crosschip.ir import Error


def main() -> None:
    """Run the command that the arguments name; exit status 1 on an error, 2 on wrong usage."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run a command and return its exit status."""
    try:
        _app()(arguments, prog_name="crosschip")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _app() -> typer.Typer:
    app = typer.Typer(
        help="One model, any AI chip: load, place, compile, cache and run, and say why.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(lambda: None)
    for module in iter_modules(__path__):
        if not module.name.startswith("_"):
            app.command(module.name)(import_module(f"{__name__}.{module.name}").command)
    return app
