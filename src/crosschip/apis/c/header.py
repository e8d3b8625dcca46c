"""Parser of a C header: its functions, handles and types.

Headers define the C interface: exported functions, the types that Python uses, and constants are
all derived from them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FOLDER = Path(__file__).with_name("include")
"""The folder of the headers that programs include."""

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_FOR_COMPILERS = re.compile(
    r"^#ifdef __cplusplus.*?^#endif$|^#(?:include|ifndef|endif|define \w+_H$).*?$",
    re.MULTILINE | re.DOTALL,
)
_HANDLE = re.compile(r"^typedef struct (\w+) \1;$", re.MULTILINE)
_FUNCTION = re.compile(r"^([\w ]+?[ *]+)(\w+)\(((?:[^;{}])*)\);$", re.MULTILINE)
_NAME = re.compile(r"\(\*(\w+)\)|(\w+)(?:\[\w*\])*$")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function.

    Attributes:
        declaration: the C declaration, such as `int32_t index`.
        name: the parameter's name.
    """

    declaration: str
    name: str


@dataclass(frozen=True, slots=True)
class Function:
    """A function that a header declares.

    Attributes:
        result: the return type.
        name: the function's name.
        parameters: the parameters.
    """

    result: str
    name: str
    parameters: tuple[Parameter, ...]


class Header:
    """A parsed header.

    Args:
        path: the file. A function is declared as `result name(parameters);` at the beginning of
            a line, with a name for each parameter, and a handle as `typedef struct Name Name;`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        text = _COMMENT.sub("", path.read_text("utf-8"))
        self._text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """The declared functions, in order."""
        return tuple(
            Function(result.strip(), name, _parameters(parameters))
            for result, name, parameters in _FUNCTION.findall(self._text)
            if not result.startswith("typedef")
        )

    @cached_property
    def handles(self) -> tuple[str, ...]:
        """The names of the opaque structures."""
        return tuple(_HANDLE.findall(self._text))

    @cached_property
    def types(self) -> str:
        """The header without functions and without preprocessor lines that cffi cannot parse."""
        return re.sub(r"\n{3,}", "\n\n", _FUNCTION.sub("", _FOR_COMPILERS.sub("", self._text)))


def _parameters(text: str) -> tuple[Parameter, ...]:
    parameters = []
    for part in _split(" ".join(text.split())):
        match = _NAME.search(part)
        assert match, f"a parameter has a name, not {part!r}"
        parameters.append(Parameter(part, match[1] or match[2]))
    return tuple(parameters)


def _split(text: str) -> list[str]:
    """Split a parameter list at its commas, except those in parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip() not in ("", "void")]
