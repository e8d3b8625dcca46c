"""The optional parts of crosschip, and the command that installs one."""

from __future__ import annotations


def install_command(extra: str) -> str:
    """The command that installs an optional part, quoted so that every shell takes it.

    >>> install_command("openvino")
    'pip install "crosschip[openvino]"'
    """
    return f'pip install "crosschip[{extra}]"'
