"""The form in which programs are saved: what they read and make, and the DDK's own bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crosschip.ir import ElementType, Quantization
from fake_npu.forms import Form

_SIZE = struct.Struct("<8sI")
_MAGIC = b"CHIPNPU1"


@dataclass(frozen=True, slots=True)
class Parts:
    """A program.

    Attributes:
        code: the DDK's bytes.
        feeds: for each input of the program the number of the model's, and its form.
        results: the form of each output.
    """

    code: bytes
    feeds: Sequence[tuple[int, Form]]
    results: Sequence[Form]


def write(parts: Parts) -> bytes:
    """A program as bytes."""
    about = {
        "feeds": [[place, _plain(form)] for place, form in parts.feeds],
        "results": [_plain(form) for form in parts.results],
    }
    header = json.dumps(about).encode()
    return b"".join([_SIZE.pack(_MAGIC, len(header)), header, parts.code])


def read(saved: bytes) -> Parts:
    """The program of what `write` made.

    Raises:
        ValueError, KeyError, TypeError, struct.error: they are other bytes.
    """
    magic, length = _SIZE.unpack_from(saved)
    if magic != _MAGIC:
        raise ValueError("it does not begin as a saved program does")
    place = _SIZE.size + length
    about = json.loads(saved[_SIZE.size : place])
    return Parts(
        bytes(saved[place:]),
        [(int(number), _form(form)) for number, form in about["feeds"]],
        [_form(form) for form in about["results"]],
    )


def _plain(form: Form) -> list[Any]:
    meaning = form.quantization
    scale = None if meaning is None else [meaning.scale[0], meaning.zero_point[0]]
    return [form.element_type.value, list(form.shape), scale]


def _form(plain: Any) -> Form:
    element_type, shape, meaning = plain
    scale = None if meaning is None else Quantization((meaning[0],), (meaning[1],))
    return Form(ElementType(element_type), tuple(map(int, shape)), scale)
