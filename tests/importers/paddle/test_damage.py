"""Damaged files are imported, or raise one of our errors."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from crosschip.importers import load
from crosschip.ir import Error

NUMBER = re.compile(rb"-?\d+(\.\d+)?")
REPLACEMENTS = (b"0", b"-1", b"7", b"4294967296", b"9223372036854775807", b"1e999", b"[]", b'"x"')

Damage = Callable[[random.Random, bytes], bytes]


def truncate(chance: random.Random, content: bytes) -> bytes:
    return content[: chance.randrange(len(content))]


def empty(chance: random.Random, content: bytes) -> bytes:
    return b""


def flip(chance: random.Random, content: bytes) -> bytes:
    damaged = bytearray(content)
    for _ in range(chance.choice((1, 1, 3, 30))):
        damaged[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def insert(chance: random.Random, content: bytes) -> bytes:
    index = chance.randrange(len(content))
    return content[:index] + chance.randbytes(chance.randrange(1, 9)) + content[index:]


def remove(chance: random.Random, content: bytes) -> bytes:
    index = chance.randrange(len(content))
    return content[:index] + content[index + chance.randrange(1, 9) :]


def renumber(chance: random.Random, content: bytes) -> bytes:
    """Replace a number in a JSON file, which stays JSON, or a byte in other files."""
    numbers = list(NUMBER.finditer(content)) if content.startswith(b"{") else []
    if not numbers:
        damaged = bytearray(content)
        damaged[chance.randrange(len(content))] = chance.choice((0, 1, 127, 128, 255))
        return bytes(damaged)
    number = chance.choice(numbers)
    return content[: number.start()] + chance.choice(REPLACEMENTS) + content[number.end() :]


DAMAGE: tuple[Damage, ...] = (truncate, flip, insert, remove, renumber)


def attempt(path: Path) -> bool:
    """Return whether a file can be imported; propagate exceptions other than ours."""
    try:
        model = load(path)
    except Error as error:
        message = str(error)
    else:
        model.verify()
        return True
    assert message.startswith(str(path.parent))
    return False


@pytest.mark.parametrize("layout", ["pdmodel", "combined", "separate", "json"])
def test_a_damaged_file_of_a_model(models: Path, tmp_path: Path, layout: str) -> None:
    shutil.copytree(models / "layouts" / layout, tmp_path, dirs_exist_ok=True)
    chance = random.Random(layout)
    files = sorted(file for file in tmp_path.iterdir() if file.suffix != ".npz")
    imported = []
    for file in files:
        sound = file.read_bytes()
        for damage in (empty, *DAMAGE * (80 // len(files))):
            file.write_bytes(damage(chance, sound))
            imported.append(attempt(tmp_path))
        file.write_bytes(sound)
    assert attempt(tmp_path)
    assert not all(imported)
    assert any(imported)


@pytest.mark.parametrize("suffix", [".pdmodel", ".json"])
def test_a_damaged_program_of_each_operator(models: Path, tmp_path: Path, suffix: str) -> None:
    chance = random.Random(suffix)
    imported = []
    for folder in sorted((models / "operators" / suffix[1:]).iterdir()):
        for source in sorted(folder.glob(f"*{suffix}"))[:2]:
            path = tmp_path / source.name
            sound = source.read_bytes()
            if source.with_suffix(".pdiparams").exists():
                shutil.copy(source.with_suffix(".pdiparams"), tmp_path)
            for damage in DAMAGE:
                path.write_bytes(damage(chance, sound))
                imported.append(attempt(path))
            path.unlink()
            path.with_suffix(".pdiparams").unlink(missing_ok=True)
    assert not all(imported)
    assert any(imported)
