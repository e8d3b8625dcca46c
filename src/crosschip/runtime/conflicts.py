"""Conflicting distributions: several installed ones that contain the same Python package."""

from __future__ import annotations

from importlib.metadata import distributions


def conflict(module: str) -> str:
    """Return a warning if several installed distributions contain a package; else an empty text.

    pip installs such distributions over each other: `import` then loads a mixture of files, and
    uninstalling one removes files of the other.

    Args:
        module: the import name of the package.
    """
    file = f"{module}/__init__.py,"
    versions = {
        distribution.name: distribution.version
        for distribution in distributions()
        if any(
            line.startswith(file) for line in (distribution.read_text("RECORD") or "").splitlines()
        )
    }
    if len(versions) < 2:
        return ""
    listed = " and ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    names = " ".join(sorted(versions))
    return (
        f"{listed} contain the same package {module!r}, and have overwritten each other's files; "
        f"keep one: pip uninstall -y {names}, then pip install the one that you need"
    )
