"""Creation of a project from a template."""

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
        name: the name of the device: small letters, digits and underscores, as in `acme_npu`.
        folder: the folder in which the project's folder `name` is created.
        native: whether the device is written in C.

    Returns:
        The paths of the files, in order.

    Raises:
        InputError: the name is invalid or that of a Python module or device, or the folder exists.
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
        return list(_write_files(template, project, _replacements(name)))
    except FileExistsError:
        raise InputError(f"{project}: is there already; choose another name or folder") from None
    except OSError as error:
        raise InputError(f"{project}: cannot be written: {error.strerror}") from None


def _is_installed(name: str) -> bool:
    """Return whether a module has a name; a folder without code is no module."""
    spec = find_spec(name)
    return spec is not None and spec.origin is not None


def _replacements(name: str) -> Mapping[str, str]:
    """Return the replacement of each word of a template."""
    title = "".join(part.capitalize() for part in name.split("_"))
    return {"my_npu": name, "my-npu": name.replace("_", "-"), "MyNpu": title}


def _write_files(template: Path, project: Path, words: Mapping[str, str]) -> Iterator[Path]:
    for source in sorted(template.rglob("*")):
        if source.is_dir() or "__pycache__" in source.parts:
            continue
        path = project / _replace_words(str(source.relative_to(template)), words)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_replace_words(source.read_text("utf-8"), words), "utf-8")
        yield path


def _replace_words(text: str, words: Mapping[str, str]) -> str:
    for word, own in words.items():
        text = text.replace(word, own)
    return text
