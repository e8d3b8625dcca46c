"""What programs answer: in plain types, and whether two of them answer the same."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
from corpus.judging import difference, tolerance


def plain(answer: Any) -> Any:
    """Return an answer in lists, mappings by text, text and arrays; numbers become arrays.

    A list of numbers, or of such lists of one length, becomes one array.
    """
    if isinstance(answer, Mapping):
        return {str(key): plain(value) for key, value in answer.items()}
    if isinstance(answer, list | tuple):
        items = [plain(value) for value in answer]
        arrays = [item for item in items if isinstance(item, np.ndarray)]
        like = {(array.shape, array.dtype.kind) for array in arrays}
        return np.array(items) if len(arrays) == len(items) > 0 and len(like) == 1 else items
    return answer if answer is None or isinstance(answer, str) else np.asarray(answer)


def encode(answer: Any) -> str:
    """Return a plain answer as a line of text, which `decode` reads."""
    return base64.b64encode(msgspec.msgpack.encode(answer, enc_hook=_fields)).decode()


def decode(line: str) -> Any:
    """Return the plain answer in a line of text."""
    return _arrays(msgspec.msgpack.decode(base64.b64decode(line)))


_ARRAY = "array of NumPy's"


def _fields(array: Any) -> Mapping[str, Any]:
    return {_ARRAY: [array.dtype.str, array.shape, array.tobytes()]}


def _arrays(value: Any) -> Any:
    if isinstance(value, list):
        return [_arrays(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _ARRAY in value:
        dtype, shape, content = value[_ARRAY]
        return np.frombuffer(content, dtype).reshape(shape)
    return {key: _arrays(item) for key, item in value.items()}


def discrepancies(answer: Any, expected: Any, changed: Any = None) -> list[str]:
    """Compare two plain answers by the corpus' tolerances; text and integers must be equal.

    Args:
        answer: the answer.
        expected: the expected one.
        changed: the expected one for slightly different inputs, which widens the tolerances.

    Returns:
        What differs, a line each.
    """
    leaves, others, third = (dict(_leaves(each)) for each in (answer, expected, changed))
    if leaves.keys() != others.keys():
        return [f"{path}: in one answer only" for path in sorted(leaves.keys() ^ others.keys())]
    lines = {p: _discrepancy(leaves[p], others[p], third.get(p)) for p in leaves}
    return [f"{path}: {text}" for path, text in lines.items() if text]


def _leaves(answer: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(answer, Mapping | list):
        pairs = answer.items() if isinstance(answer, Mapping) else enumerate(answer)
        for key, value in pairs:
            yield from _leaves(value, f"{path}/{key}")
    else:
        yield path, answer


def _discrepancy(value: Any, expected: Any, changed: Any) -> str:
    if not (isinstance(value, np.ndarray) and isinstance(expected, np.ndarray)):
        same = type(value) is type(expected) and value == expected
        return "" if same else f"{value!r} instead of {expected!r}"
    (distance,) = difference([value], [expected])
    spread = difference([changed], [expected])[0] if isinstance(changed, np.ndarray) else 0.0
    limit = tolerance(expected, quantized=True, spread=spread)
    return "" if distance <= limit else f"{distance:.2g} away, where {limit:.2g} is allowed"
