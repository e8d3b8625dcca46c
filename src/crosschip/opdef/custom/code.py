"""Digest of an operator's definition and code, for cache keys."""

from __future__ import annotations

import hashlib
import inspect
import marshal
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType

_SUFFIXES = (".py", ".so", ".dll", ".dylib", ".xml")
_MOST_FILES = 2000


def digest(operator: type, definition: Iterable[bytes]) -> str:
    """Return the hexadecimal SHA-256 of an operator's definition and code.

    The code is all Python, XML and machine code files in the folder of the class's package, or the
    module's file outside a package. For a class without a file, it is the bytecode of its
    functions.

    Args:
        operator: the class.
        definition: the parts of the definition.
    """
    sha256 = hashlib.sha256()
    for part in (*definition, *_code(operator)):
        sha256.update(len(part).to_bytes(8, "little") + part)
    return sha256.hexdigest()


def _code(operator: type) -> Iterator[bytes]:
    for base in operator.__mro__:
        if base.__module__.partition(".")[0] in ("builtins", "crosschip", "abc", "typing"):
            continue
        for file in _files(base.__module__):
            yield str(file).encode(errors="surrogatepass")
            yield file.read_bytes()
        for name, value in sorted(vars(base).items()):
            if isinstance(value, FunctionType):
                yield name.encode()
                yield bytecode(value)


def _files(module_name: str) -> list[Path]:
    """Return the files of a module's package; the module's file if it is in no package."""
    module = sys.modules.get(module_name)
    file = getattr(module, "__file__", None)
    if module is None or file is None or not Path(file).is_file():
        return []
    if module.__spec__ is None or not module.__spec__.parent:
        return [Path(file)]
    files = (path for path in sorted(Path(file).parent.rglob("*")) if path.suffix in _SUFFIXES)
    return [path for _, path in zip(range(_MOST_FILES), files, strict=False)]


def bytecode(function: Callable[..., object]) -> bytes:
    """Return the bytecode of a Python function; empty for other callables."""
    return _code_bytes(function.__code__) if isinstance(function, FunctionType) else b""


def _code_bytes(code: CodeType) -> bytes:
    """Return a function's bytecode without file names and line numbers."""
    plain = code.replace(co_filename="", co_firstlineno=1, co_linetable=b"", co_name="")
    constants = [_code_bytes(c) if inspect.iscode(c) else c for c in plain.co_consts]
    return marshal.dumps((plain.co_code, plain.co_names, [repr(c) for c in constants]))
