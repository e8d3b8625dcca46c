"""Optional dependencies of crosschip, and the command that installs them."""

from __future__ import annotations


def install_command(extra: str) -> str:
    """Return the command that installs an optional dependency, quoted for all shells.

    >>> install_command("openvino")
    'pip install "crosschip[openvino]"'
    """
    return f'pip install "crosschip[{extra}]"'
