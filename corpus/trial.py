"""One model on lists of devices: `python -m corpus.trial NAME LIST …`, as `openvino,reference`.

A process of its own, as an engine may die. It prints a JSON document a list, on a line.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import Any

import crosschip
from corpus.entry import Entry
from corpus.expected import read
from corpus.judging import difference, flat
from corpus.reading import inputs_of, is_open
from crosschip.ir import Array, Operand
from crosschip.runtime.sessions.session import default_start

_RUNS = 2

_WORDS = 60
"""Of an error's message that are kept."""


def main(name: str, *lists: str) -> None:
    """Compile, run twice and compare; with fixed shapes, then with those left open, if any are."""
    from corpus.__main__ import entry_called

    entry = entry_called(name)
    inputs = inputs_of(entry)
    fixed = {name: array.shape for name, array in inputs.items()}
    for devices in lists:
        chosen = "auto" if devices == "auto" else devices.split(",")
        result = _tried(entry, chosen, inputs, fixed)
        if result["verdict"] == "right" and is_open(entry):
            opened = _tried(entry, chosen, inputs, None)
            result |= {f"open_{key}": value for key, value in opened.items()}
        print(json.dumps(result), flush=True)


def _tried(
    entry: Entry,
    devices: str | list[str],
    inputs: Mapping[str, Array],
    shapes: Mapping[str, tuple[int, ...]] | None,
) -> dict[str, Any]:
    try:
        with crosschip.compile(
            crosschip.load(entry.file), devices, shapes=shapes, cache=False
        ) as compiled:
            begun = {**_zeros(compiled.inputs, inputs), **inputs}
            answers = [list(compiled.run(begun).values()) for _ in range(_RUNS)]
            where = compiled.placement.summary()
    except crosschip.Error as error:
        return {"verdict": "refused", "said": " ".join(str(error).split()[:_WORDS])}
    expected = read(entry)
    if entry.file.suffix == ".tflite":  # what follows is the state for another run
        answers = [answer[: len(expected.arrays)] for answer in answers]
    apart = [
        max(both)
        for both in zip(
            *(
                difference([array for one in answer for array in flat(one)], expected.arrays)
                for answer in answers
            ),
            strict=True,
        )
    ]
    allowed = expected.allowed(entry)
    right = all(a <= b for a, b in zip(apart, allowed, strict=True))
    return {
        "verdict": "right" if right else "wrong",
        "apart": [None if math.isinf(a) else a for a in apart],
        "allowed": allowed,
        "where": where,
    }


def _zeros(operands: Mapping[str, Operand], inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The state that a first run begins with: the inputs of the model that the file has not."""
    return {
        name: default_start(name, operand.type, {})
        for name, operand in operands.items()
        if name not in inputs
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
