"""Writing a new project from a template."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from crosschip.ir import InputError
from crosschip.runtime.discovery import origins

_TEMPLATES = Path(__file__).with_name("templates")
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)
_LONGEST = 50


def new_device(name: str, folder: Path, *, native: bool = False) -> list[Path]:
    """Write the project of a device that runs one operator.

    Args:
        name: the device's: small letters, digits and underscores, as in `acme_npu`.
        folder: where the project's folder is made, whose name is `name`.
        native: whether the device is a driver in C.

    Returns:
        The files, in order of their names.

    Raises:
        InputError: it is no such name, there is something by it already, or a Python module or a
            device has it.
    """
    if not _NAME.fullmatch(name) or keyword.iskeyword(name) or len(name) > _LONGEST:
        raise InputError(
            f"{name!r} cannot be the name of a device: it takes small letters, digits and single "
            "underscores, as in acme_npu"
        )
    if name in origins():
        raise InputError(f"there is a device {name!r} already; choose another name")
    if name in sys.stdlib_module_names or _is_installed(name):
        raise InputError(
            f"{name!r} is the name of a Python module that is installed, which a project of that "
            "name would hide or be hidden by; choose another name, such as acme_npu"
        )
    template = _TEMPLATES / ("native" if native else "python")
    project = folder / name
    try:
        project.mkdir(parents=True)
        return list(_written(template, project, _words(name)))
    except FileExistsError:
        raise InputError(f"{project}: is there already; choose another name or folder") from None
    except OSError as error:
        raise InputError(f"{project}: cannot be written: {error.strerror}") from None


def _is_installed(name: str) -> bool:
    """Tell whether a module has a name; a folder without code of its own is none."""
    spec = find_spec(name)
    return spec is not None and spec.origin is not None


def _words(name: str) -> Mapping[str, str]:
    """What stands in a project for each of a template's words."""
    title = "".join(part.capitalize() for part in name.split("_"))
    return {"my_npu": name, "my-npu": name.replace("_", "-"), "MyNpu": title}


def _written(template: Path, project: Path, words: Mapping[str, str]) -> Iterator[Path]:
    for source in sorted(template.rglob("*")):
        if source.is_dir() or "__pycache__" in source.parts:
            continue
        path = project / _replaced(str(source.relative_to(template)), words)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_replaced(source.read_text("utf-8"), words), "utf-8")
        yield path


def _replaced(text: str, words: Mapping[str, str]) -> str:
    for word, own in words.items():
        text = text.replace(word, own)
    return text
