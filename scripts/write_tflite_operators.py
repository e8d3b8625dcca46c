"""Write which TensorFlow Lite operators are read, by comparing random files with LiteRT's kernels.

    PYTHONPATH=. python scripts/write_tflite_operators.py

It takes some minutes. A test compares the operators of the page with those that have an importer.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from ai_edge_litert.interpreter import Interpreter
from tests.importers.tflite.all_cases import NAMES
from tests.importers.tflite.comparison import Verdict, compare, litert_calls
from tests.importers.tflite.single_operator import CASES, Case, Draw, LiteRT
from tests.importers.tflite.test_other_types import (
    QUANTIZED,
    TYPES,
    cases_of_types,
    quantized_cases,
)

from crosschip.flatbuffer.schemas.tflite.enumerations import BuiltinOperator
from crosschip.importers.tflite.operators import TABLE

PAGE = Path(__file__).parents[1] / "docs" / "tensorflow-lite-operators.md"
SEEDS, MAX_VERSION = range(20), 20

STRINGS = ("HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE", "SKIP_GRAM")
"""The operators that LiteRT has kernels for, but only with strings."""

HASHES = ("LSH_PROJECTION",)
"""The operators that hash bytes."""

HEAD = """\
# TensorFlow Lite's operators

Which operators of [TensorFlow Lite files](how-to/tensorflow-lite.md) are read, and with which
types. For each type, random files with one operator gave the same results on the device `reference`
as LiteRT's kernels; integers and quantized numbers to the last bit. A type is that of the data, not
of indices and sizes. Versions are those that LiteRT has a kernel for; all of them are read, since
types and options tell what a version adds. Operators without types have tests of their own: control
flow, variables, Fourier transforms and MediaPipe's operators.

| Operator | Versions | Types | Quantized |
|---|---|---|---|
"""


def main() -> None:
    """Write the page."""
    litert = LiteRT()
    types: dict[str, set[str]] = defaultdict(set)
    quantized: dict[str, set[str]] = defaultdict(set)
    for operator in NAMES:
        drawn = ((seed, CASES[operator](Draw(seed), operator)) for seed in SEEDS)
        for _, case in (*drawn, *cases_of_types(operator), *quantized_cases(operator)):
            dtype, is_quantized = data_type(case)
            known = quantized if is_quantized else types
            if dtype not in known[case.operator] and is_right(litert, case):
                known[case.operator].add(dtype)
    litert.close()
    first = {CASES[name](Draw(0), name).operator: name for name in reversed(NAMES)}
    rows = []
    for name in sorted(TABLE.names(), key=lambda name: (name.startswith("custom."), name)):
        shown = name.removeprefix("custom.") + " (custom)" * name.startswith("custom.")
        versions = "" if name not in first else last_version(first[name])
        cells = [
            shown,
            versions,
            in_order(types[name], TYPES),
            in_order(quantized[name], QUANTIZED),
        ]
        rows.append(f"| {' | '.join(cells)} |\n")
    PAGE.write_text(HEAD + "".join(rows) + foot(), "utf-8")


def data_type(case: Case) -> tuple[str, bool]:
    """Return the type of a case's data, and whether it is quantized."""
    inputs = [each for each in case.inputs if each is not None]
    output = case.outputs[0] if case.outputs else inputs[0]
    data = output if any(each.dtype == output.dtype for each in inputs) or not inputs else inputs[0]
    scaled = next((each for each in inputs if each.scale and each.fed), None)
    return (scaled.dtype, True) if scaled is not None else (data.dtype, False)


def is_right(litert: LiteRT, case: Case) -> bool:
    """Return whether LiteRT runs a case, with the same results."""
    calls = litert_calls(litert, case, sizes=1)
    return bool(calls) and compare(case, calls, ["reference"]).verdict is Verdict.RIGHT


def last_version(operator: str) -> str:
    """Return the versions of an operator that LiteRT has a kernel for."""
    case = CASES[operator](Draw(0), operator)
    if case.operator.startswith("custom."):
        return ""
    known = [
        version
        for version in range(1, MAX_VERSION)
        if has_kernel(replace(case, version=version).file())
    ]
    return "" if not known else f"{known[0]} to {known[-1]}" if len(known) > 1 else f"{known[0]}"


def has_kernel(content: bytes) -> bool:
    """Return whether LiteRT has a kernel for the version of a file's operator."""
    try:
        Interpreter(model_content=content)
    except (RuntimeError, ValueError) as error:
        return "Didn't find op" not in str(error)
    return True


def in_order(names: set[str], order: tuple[str, ...]) -> str:
    return ", ".join(name for name in order if name in names)


def foot() -> str:
    """Return what is not read, and why."""
    ignored = {"CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES", *STRINGS, *HASHES}
    others = [each.name for each in BuiltinOperator if each.name not in TABLE]
    others = sorted(set(others) - ignored)
    return (
        "\n## What is not read\n\n"
        f"- With strings alone: {', '.join(STRINGS)}. Look strings up before the model runs.\n"
        f"- Hashes of bytes: {', '.join(HASHES)}.\n"
        f"- Without a kernel in LiteRT: {', '.join(others)}.\n"
    )


if __name__ == "__main__":
    main()
