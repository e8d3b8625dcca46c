"""Loggers that import logging when there is something to be heard."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

from crosschip.ir import logs


def _run(*lines: str) -> subprocess.CompletedProcess[str]:
    """A process in which nothing has imported logging."""
    program = ["import sys", "from crosschip.ir import logs", "log = logs.logger('crosschip')"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", "\n".join([*program, *lines])],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip


def test_what_nobody_listens_to_imports_nothing() -> None:
    ran = _run("log.info('%s', 1)", "log.debug('x')", "print('logging' in sys.modules)")
    assert (ran.stdout, ran.stderr) == ("False\n", "")


def test_a_warning_is_heard_although_nobody_listens() -> None:
    assert _run("log.warning('%s is %s', 'it', 'wrong')").stderr == "it is wrong\n"


def test_whoever_has_set_logging_up_hears_all_of_it() -> None:
    ran = _run("import logging", "logging.basicConfig(level='INFO')", "log.info('%d', 7)")
    assert ran.stderr == "INFO:crosschip:7\n"


def test_a_message_is_from_where_it_was_logged(caplog: pytest.LogCaptureFixture) -> None:
    logs.logger("crosschip.other").warning("here")
    (record,) = caplog.records
    assert (record.name, record.filename) == ("crosschip.other", os.path.basename(__file__))


def test_the_levels_are_those_of_logging() -> None:
    assert (logs.INFO, logs.WARNING) == (logging.INFO, logging.WARNING)
