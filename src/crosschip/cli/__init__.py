"""The command line.

Each module of this package whose name does not start with `_` is a command: its function `command`,
or its `app` with several commands. Importing the package imports almost nothing, so that slow
imports happen in `main`, which handles interruptions.
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
    """Run the command of the arguments.

    The exit status is 1 on an error, 2 on wrong usage, and 130 after an interruption, which removes
    incomplete results; a second interruption ends the process at once.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    interruption = _Interruption()
    try:
        # Imported here, where interruptions are handled.
        from crosschip import progress

        progress.show()
        try:
            status = run(sys.argv[1:])
        finally:
            progress.hide()
    except BaseException:
        if not interruption.came:
            raise
        status = INTERRUPTED
    sys.exit(interruption.finish(status))


def run(arguments: list[str]) -> int:
    """Run a command and return its exit status; with `--json`, errors are documents too."""
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
    """Return the commands, which are imported on demand."""
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
    """Return whether an extension module is being initialized, which an exception would break."""
    from importlib.machinery import ExtensionFileLoader

    while frame is not None:
        if frame.f_code.co_name in ("create_module", "exec_module") and isinstance(
            frame.f_locals.get("self"), ExtensionFileLoader
        ):
            return True
        frame = frame.f_back
    return False


class _Interruption:
    """The handler of Ctrl-C.

    Attributes:
        came: whether there was an interruption, also if other code caught the exception.
    """

    def __init__(self) -> None:
        self.came = False
        signal.signal(signal.SIGINT, self._interrupt)
        self._unraisable = sys.unraisablehook
        sys.unraisablehook = self._cannot_be_raised

    def finish(self, status: int) -> int:
        """Stop handling interruptions; return the exit status."""
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
