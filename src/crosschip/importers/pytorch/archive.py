"""Reading of `.pt2` files without executing anything that they contain.

`torch.export.load` unpickles objects, evaluates expressions as Python code and imports modules that
a file names. So only a copy of the archive is given to it that holds nothing of that kind: raw
weights, and the program's description after `crosschip.importers.pytorch.description` checked it.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosschip.importers.pytorch.description import check_program, element_size
from crosschip.ir import BudgetError, ModelFileError, UnsupportedError
from crosschip.ir.budget import spend
from crosschip.ir.errors import install_command
from crosschip.ir.files import DataFile

_TRUSTED = "if you trust it, load it with PyTorch: crosschip.load(torch.export.load(path))"
_MODEL = "models/model.json"
_WEIGHTS, _CONSTANTS = "data/weights/", "data/constants/"
_DAMAGE = (
    *(AttributeError, EOFError, IndexError, KeyError, LookupError, NotImplementedError),
    *(OverflowError, RecursionError, RuntimeError, TypeError, ValueError, zipfile.BadZipFile),
)
"""What `zipfile`, `json`, the checks and PyTorch raise for damaged content."""


def read_program(source: Path | bytes, where: str) -> Any:
    """Return the `torch.export.ExportedProgram` of a file.

    Raises:
        BudgetError: weights take far more memory than bytes in the file.
        ModelFileError: the file is damaged, or can only be read by executing code that it contains.
        UnsupportedError: PyTorch is not installed.
    """
    try:
        import torch
    except ImportError:
        raise UnsupportedError(
            f"{where}: is an exported program of PyTorch, which PyTorch reads: "
            f"{install_command('torch')}"
        ) from None
    from crosschip.importers.pytorch.exporting import quiet

    members = _read_members(source, where)
    content = _checked_archive(members, where)
    version = _torch_version(members)
    try:
        with quiet():
            return torch.export.load(io.BytesIO(content))
    # Types of its own, and assertions, for content that does not fit its version.
    except Exception as error:
        reason = (str(error).strip().splitlines() or [""])[0][:200]
        raise ModelFileError(
            f"{where}: is damaged, or PyTorch {torch.__version__} does not read what PyTorch "
            f"{version or 'of an unknown version'} wrote: {type(error).__name__}: {reason}"
        ) from error


def read_metadata(source: Path | bytes, where: str) -> dict[str, str]:
    """Return the versions of a file's format and of the PyTorch that wrote it.

    Raises:
        ModelFileError: the file is damaged.
    """
    members = _read_members(source, where)
    archive_version = members.get("archive_version", b"").decode("utf-8", "replace").strip()
    return {
        "format": f"exported program of PyTorch, archive version {archive_version[:20]}",
        "producer": f"PyTorch {_torch_version(members)}".strip(),
    }


def _torch_version(members: Mapping[str, bytes]) -> str:
    """Return the version of the PyTorch that wrote an archive; empty if it does not say."""
    try:
        return str(json.loads(members[_MODEL])["torch_version"])[:40]
    except _DAMAGE:
        return ""


def _read_members(source: Path | bytes, where: str) -> dict[str, bytes]:
    """Return the contents of an archive by path below its folder.

    Raises:
        ModelFileError: the archive is damaged.
    """
    try:
        if isinstance(source, Path):
            file = DataFile(source)
            source = file.read(0, file.size)
        with zipfile.ZipFile(io.BytesIO(source)) as archive:
            entries = archive.infolist()
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise ModelFileError(f"{where}: is compressed, as PyTorch writes no program")
            if sum(entry.file_size for entry in entries) > len(source):
                raise ModelFileError(f"{where}: is damaged: its members overlap")
            members = {entry.filename.partition("/")[2]: archive.read(entry) for entry in entries}
    except OSError as error:
        raise ModelFileError(f"{where}: cannot be read: {error.strerror or error}") from None
    except _DAMAGE as error:
        raise ModelFileError(
            f"{where}: is damaged ({error}); export or download it again"
        ) from None
    if members.get("archive_format", b"").strip() != b"pt2":
        raise ModelFileError(f"{where}: is a ZIP file, but no exported program of PyTorch")
    if _MODEL not in members:
        inside = "a compiled program" if _has_compiled(members) else "no exported program"
        raise ModelFileError(
            f"{where}: holds {inside}, not {_MODEL}; export it with torch.export.save"
        )
    return members


def _has_compiled(members: Mapping[str, bytes]) -> bool:
    return any(name.startswith("data/aotinductor/") for name in members)


def _checked_archive(members: Mapping[str, bytes], where: str) -> bytes:
    """Return an archive of the members that PyTorch reads without executing anything."""
    checked = {
        "archive_format": b"pt2",
        "archive_version": members.get("archive_version", b"0"),
        ".data/version": members.get(".data/version", b"3\n"),
        "byteorder": members.get("byteorder", b"little"),
        # Examples are pickled, and of no use.
        "data/sample_inputs/model.pt": b"",
    }
    try:
        checked[_MODEL] = json.dumps(check_program(json.loads(members[_MODEL]))).encode()
        checked |= _tensors(members, _WEIGHTS, f"{_WEIGHTS}model_weights_config.json")
        checked |= _tensors(members, _CONSTANTS, f"{_CONSTANTS}model_constants_config.json")
    except UnsupportedError as error:
        raise ModelFileError(f"{where}: {error}; {_TRUSTED}") from None
    except (BudgetError, ModelFileError) as error:
        raise type(error)(f"{where}: {error}") from None
    except _DAMAGE as error:
        raise ModelFileError(
            f"{where}: is damaged ({type(error).__name__}: {error}); export it again"
        ) from None
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for name, data in checked.items():
            archive.writestr(zipfile.ZipInfo(f"model/{name}"), data)
    return content.getvalue()


def _tensors(members: Mapping[str, bytes], folder: str, index: str) -> dict[str, bytes]:
    """Return an index of weights or constants, and the raw tensors that it lists.

    Raises:
        ModelFileError: a tensor is missing or does not fit its type.
        UnsupportedError: a tensor is pickled, or is an object of another class.
    """
    if index not in members:
        raise UnsupportedError(f"its {folder} are pickled, as PyTorch before 2.9 wrote them")
    entries = json.loads(members[index])["config"]
    records = {}
    for name, entry in entries.items():
        record = f"{folder}{entry['path_name']}"
        if entry["use_pickle"] or not entry["tensor_meta"]:
            raise UnsupportedError(f"{name!r} is pickled, which runs code when it is read")
        if not entry["path_name"].startswith(("weight_", "tensor_")) or record not in members:
            raise ModelFileError(f"is damaged: {record}, the file of {name!r}, is missing")
        records[record] = members[record]
        _check_size(name, entry["tensor_meta"], len(members[record]))
        entry["tensor_meta"]["device"] = {"type": "cpu", "index": None}
    return {index: json.dumps({"config": entries}).encode(), **records}


def _check_size(name: str, meta: Mapping[str, Any], stored: int) -> None:
    """Check that the elements of a tensor are stored, and charge repeated ones to the budget."""
    sizes = [size["as_int"] for size in meta["sizes"]]
    if any(not isinstance(size, int) or size < 0 for size in sizes):
        raise ModelFileError(f"is damaged: {name!r} has the shape {sizes[:8]}")
    nbytes = math.prod(sizes) * element_size(meta["dtype"])
    if nbytes and not stored:
        raise ModelFileError(f"was saved without the elements of {name!r}")
    spend(bytes=max(0, nbytes - stored))
