"""The command line: a file a command, found by being here.

A module of this package whose name does not start with `_` is a command of that name: its function
`command`, or, if it has several, its `app`. Importing the package itself imports next to nothing,
so that whatever takes time is inside `main`, which says what an interruption does.
"""

from __future__ import annotations

import os
import signal
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import typer

INTERRUPTED = 130


def main() -> None:
    """Run the command that the arguments name.

    The exit status is 1 on an error, 2 on wrong usage, and 130 after an interruption, which takes
    back what is half done; a second interruption does not wait for that.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    interruption = _Interruption()
    try:
        status = run(sys.argv[1:])
    except BaseException:
        if not interruption.came:
            raise
        status = INTERRUPTED
    sys.exit(interruption.finish(status))


def run(arguments: list[str]) -> int:
    """Run a command and return its exit status; with `--json`, an error is a document, too."""
    try:
        app()(arguments, prog_name="crosschip")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    except Exception as error:
        # Not before something is wrong: a command that needs no model answers at once.
        from crosschip.ir import Error

        if not isinstance(error, Error):
            raise
        from crosschip.cli._show import document, print_error

        if "--json" in arguments:
            document({"error": str(error), "type": type(error).__name__})
        print_error(error)
        return 1
    return 0


def app() -> typer.Typer:
    """The commands, none of which is imported yet."""
    import typer

    from crosschip.cli._commands import Commands, general

    commands = typer.Typer(
        cls=Commands,
        help="One model, any AI chip: load, place, compile, cache and run, and say why.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    commands.callback()(general)
    return commands


def _loads_extension(frame: Any) -> bool:
    """Tell whether a compiled module is being made, which may not survive an exception halfway."""
    from importlib.machinery import ExtensionFileLoader

    while frame is not None:
        if frame.f_code.co_name in ("create_module", "exec_module") and isinstance(
            frame.f_locals.get("self"), ExtensionFileLoader
        ):
            return True
        frame = frame.f_back
    return False


class _Interruption:
    """The effect of Ctrl-C from now on.

    Attributes:
        came: whether there was one. Code in between may have taken the exception for a failure of
            its own.
    """

    def __init__(self) -> None:
        self.came = False
        signal.signal(signal.SIGINT, self._interrupt)
        self._unraisable = sys.unraisablehook
        sys.unraisablehook = self._cannot_be_raised

    def finish(self, status: int) -> int:
        """Nothing is left to take back; the exit status."""
        self.came, came = True, self.came
        return INTERRUPTED if came else status

    def _interrupt(self, number: int, frame: Any) -> None:
        if self.came or _loads_extension(frame):
            os._exit(INTERRUPTED)
        self.came = True
        raise KeyboardInterrupt

    def _cannot_be_raised(self, unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            os._exit(INTERRUPTED)
        self._unraisable(unraisable)
