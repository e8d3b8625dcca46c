"""Damaged files: a model or an error of ours comes out, and little memory is used."""

from __future__ import annotations

import copy
import random
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import numpy as np
import pytest
from tests.importers.tflite.sample import packed, sample, with_labels

from crosschip.importers import file_metadata, load
from crosschip.ir import Error

INTEGERS = (0, 1, -1, 2, 3, 5, 64, 127, 2**31 - 1, -(2**31))
_MAX_SECONDS = 2.0


def load_all(files: Iterator[bytes]) -> Counter[str]:
    """Import each file and read its metadata; how often what came out."""
    result: Counter[str] = Counter()
    for data in files:
        begin = process_time()
        for read in (load, file_metadata):
            try:
                read(data)
            except Error as error:
                result[type(error).__name__] += 1
            else:
                result[read.__name__] += 1
        assert process_time() - begin < _MAX_SECONDS
    return result


def truncated(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def overwritten(data: bytes, rng: random.Random) -> bytes:
    """Replace words of four bytes, as offsets and lengths are."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        word = rng.choice([*INTEGERS, rng.randrange(len(data))])
        place = 4 * rng.randrange(2, len(data) // 4)
        changed[place : place + 4] = word.to_bytes(4, "little", signed=True)
    return bytes(changed)


def deleted(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(8, len(data))
    return data[:place] + data[place + rng.randint(1, 50) :]


BYTES = (truncated, flipped, overwritten, deleted)


def changed(model: Any, rng: random.Random) -> bytes:
    """Return a well-formed file with a wrong tensor, operator or option."""
    model = copy.deepcopy(model)
    graph = rng.choice(model.subgraphs)
    tensor, operator = rng.choice(graph.tensors), rng.choice(graph.operators)
    code = model.operatorCodes[operator.opcodeIndex]
    match rng.randrange(9):
        case 0:
            tensor.shape = rng.choices((0, 1, 2, 4, 7, -1, 2**31 - 1), k=rng.randrange(6))
        case 1:
            tensor.type = rng.randrange(20)
        case 2:
            tensor.buffer = rng.choice((0, 1, 2, len(model.buffers), 2**32 - 1))
        case 3 if tensor.quantization is not None:
            tensor.quantization.scale = np.array(rng.choices((0.0, -1.0, 1e38, np.nan), k=2))
        case 4 if len(operator.inputs):
            index = rng.choice((-1, 0, len(graph.tensors), rng.randrange(len(graph.tensors))))
            operator.inputs[rng.randrange(len(operator.inputs))] = index
        case 5:
            place = rng.randrange(-2, len(graph.tensors))
            operator.outputs = [*operator.outputs, place][rng.randrange(2) :]
        case 6:
            code.deprecatedBuiltinCode = 0
            code.builtinCode, code.version = rng.randrange(-1, 215), rng.randrange(-1, 12)
        case 7:
            graph.inputs = rng.choices(range(-1, len(graph.tensors) + 1), k=rng.randrange(3))
            graph.outputs = rng.choices(range(-1, len(graph.tensors) + 1), k=rng.randrange(3))
        case _ if operator.builtinOptions is not None:
            fields = vars(operator.builtinOptions)
            for name, value in fields.items():
                if isinstance(value, int) and not isinstance(value, bool):
                    fields[name] = rng.choice((0, 1, 2, 3, 5, 100))
    return packed(model)


@pytest.fixture(scope="module")
def whole() -> bytes:
    data = with_labels(sample().file())
    load(data)  # imports modules
    return data


def test_the_file_itself_is_sound(whole: bytes) -> None:
    assert load_all(iter([whole])) == {"load": 1, "file_metadata": 1}


@pytest.mark.parametrize("damage", BYTES)
def test_damaged_bytes(whole: bytes, damage: Callable[[bytes, random.Random], bytes]) -> None:
    rng = random.Random(damage.__name__)
    results = load_all(damage(whole, rng) for _ in range(40))
    assert results["ModelFileError"] > 5


@pytest.mark.usefixtures("whole")
def test_wrong_tensors_and_operators() -> None:
    model, rng = sample().model, random.Random(1)
    results = load_all(changed(model, rng) for _ in range(60))
    assert min(results["load"], results["ModelFileError"]) > 10


def test_little_memory_is_used(whole: bytes) -> None:
    model, rng = sample().model, random.Random(3)
    files = [changed(model, rng) for _ in range(10)] + [flipped(whole, rng) for _ in range(10)]
    tracemalloc.start()
    load_all(iter(files))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**26


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_damaged_files(whole: bytes, seed: int) -> None:
    model, rng = sample().model, random.Random(seed)
    load_all(changed(model, rng) for _ in range(500))
    load_all(rng.choice(BYTES)(whole, rng) for _ in range(500))
