"""The cache: what is read is what was written, or nothing."""

from __future__ import annotations

import json
import logging
import os
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from crosschip.ir import CacheError
from crosschip.runtime import cache as cache_module
from crosschip.runtime.cache import BLOCK_SIZE, SUFFIX, Cache, Entry, default_folder

ENTRY = Entry("0" * 64, "npu", "1.0", "model.0", 3)
PROGRAM = bytes(range(256)) * 3


class Warnings(logging.Handler):
    """Keeps the messages of the cache's logger."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        assert record.levelno == logging.WARNING
        self.messages.append(record.getMessage())

    def __enter__(self) -> list[str]:
        cache_module.logger.addHandler(self)
        cache_module.logger.propagate = False
        return self.messages

    def __exit__(self, *_: object) -> None:
        cache_module.logger.propagate = True
        cache_module.logger.removeHandler(self)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture(scope="module")
def good() -> bytes:
    """The file of a good entry."""
    with TemporaryDirectory() as folder:
        Cache(Path(folder)).write(ENTRY, PROGRAM)
        return Path(folder, f"{ENTRY.key}{SUFFIX}").read_bytes()


def file_of(cache: Cache, entry: Entry = ENTRY) -> Path:
    return cache.folder / f"{entry.key}{SUFFIX}"


def assert_refused(content: bytes, message: str = "") -> None:
    """A file with this content is worth a warning and is gone after it, and no answer."""
    with TemporaryDirectory() as folder, Warnings() as warnings:
        cache = Cache(Path(folder))
        file_of(cache).write_bytes(content)
        assert cache.read(ENTRY) is None
        assert len(warnings) == 1
        assert str(file_of(cache)) in warnings[0]
        assert message in warnings[0]
        assert warnings[0].endswith("; compiling again")
        assert not list(Path(folder).iterdir())


@given(st.binary(max_size=200))
def test_what_is_read_is_what_was_written(program: bytes) -> None:
    with TemporaryDirectory() as folder, Warnings() as warnings:
        cache = Cache(Path(folder))
        assert cache.read(ENTRY) is None
        cache.write(ENTRY, program)
        assert cache.read(ENTRY) == program
        cache.write(ENTRY, b"another")
        assert cache.read(ENTRY) == b"another"
        assert warnings == []
        assert [path.name for path in Path(folder).iterdir()] == [f"{ENTRY.key}{SUFFIX}"]


@pytest.mark.parametrize("size", [0, 1, BLOCK_SIZE - 1, BLOCK_SIZE, BLOCK_SIZE + 1, 3 * BLOCK_SIZE])
def test_programs_of_any_size(cache: Cache, size: int) -> None:
    program = os.urandom(size)
    cache.write(ENTRY, program)
    assert cache.read(ENTRY) == program


@given(data=st.data())
def test_a_flipped_bit_is_noticed(good: bytes, data: st.DataObject) -> None:
    damaged = bytearray(good)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(good) * 8 - 1))
        damaged[place // 8] ^= 1 << place % 8
    if bytes(damaged) != good:
        assert_refused(bytes(damaged))


@given(data=st.data())
def test_a_truncated_file_is_noticed(good: bytes, data: st.DataObject) -> None:
    assert_refused(good[: data.draw(st.integers(0, len(good) - 1))])


@given(extra=st.binary(min_size=1, max_size=50))
def test_appended_bytes_are_noticed(good: bytes, extra: bytes) -> None:
    assert_refused(good + extra)


@given(data=st.data())
def test_moved_bytes_are_noticed(good: bytes, data: st.DataObject) -> None:
    a, b = sorted(data.draw(st.tuples(*[st.integers(0, len(good))] * 2)))
    moved = good[a:b] + good[:a] + good[b:]
    if moved != good:
        assert_refused(moved)


@given(st.binary(max_size=200))
def test_a_file_of_something_else_is_noticed(content: bytes) -> None:
    assert_refused(content)


def test_damage_in_any_block_is_noticed(cache: Cache) -> None:
    for block in range(3):
        cache.write(ENTRY, bytes(2 * BLOCK_SIZE + 5))
        content = bytearray(file_of(cache).read_bytes())
        content[-(2 * BLOCK_SIZE + 5) + block * BLOCK_SIZE + 2] ^= 1
        assert_refused(bytes(content), f"damaged bytes in block {block}")


def test_two_blocks_that_change_places_are_noticed(cache: Cache) -> None:
    cache.write(ENTRY, b"a" * BLOCK_SIZE + b"b" * BLOCK_SIZE)
    content = file_of(cache).read_bytes()
    head = content[: -2 * BLOCK_SIZE]
    assert_refused(head + b"b" * BLOCK_SIZE + b"a" * BLOCK_SIZE, "damaged bytes in block 0")


def forged(header: object, program: bytes = PROGRAM, version: int = 1) -> bytes:
    """A file whose checksum holds, laid out as docs/formats.md says."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    digest = xxhash.xxh3_64_intdigest(text)
    return struct.pack("<8sIIQ", b"\x93CHIP\r\n\x1a", version, len(text), digest) + text + program


HEADER: dict[str, Any] = {
    "key": ENTRY.key,
    "device": "npu",
    "device_version": "1.0",
    "model": "model.0",
    "operations": 3,
    "size": len(PROGRAM),
    "block_size": BLOCK_SIZE,
    "blocks": [xxhash.xxh3_64_hexdigest(PROGRAM)],
}


def test_a_file_by_the_book_is_read(cache: Cache) -> None:
    file_of(cache).write_bytes(forged(HEADER))
    assert cache.read(ENTRY) == PROGRAM


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({**HEADER, "key": "1" * 64, "model": "other.2"}, "is for another model (other.2)"),
        ({**HEADER, "device": "gpu"}, "was made by gpu 1.0, not npu 1.0"),
        ({**HEADER, "device_version": "0.9"}, "was made by npu 0.9, not npu 1.0"),
        ({**HEADER, "size": len(PROGRAM) - 1}, "bytes of program where 767 belong"),
        ({**HEADER, "size": -1}, "bytes of program where -1 belong"),
        ({**HEADER, "size": 2**80}, "not laid out"),
        ({**HEADER, "size": "768"}, "not laid out"),
        ({**HEADER, "blocks": []}, "blocks without a checksum"),
        ({**HEADER, "blocks": HEADER["blocks"] * 2}, "blocks"),
        ({**HEADER, "blocks": None}, "not laid out"),
        ({**HEADER, "block_size": 0}, "not laid out"),
        ({**HEADER, "block_size": 16}, "blocks"),
        ({**HEADER, "block_size": None}, "not laid out"),
        ({k: v for k, v in HEADER.items() if k != "model"}, "not laid out"),
        ({}, "not laid out"),
        ([], "not laid out"),
        (b"", "not laid out"),
        (b"{", "not laid out"),
        (b"\xff", "not laid out"),
        (b"[" * 100_000, "not laid out"),
    ],
)
def test_a_forged_header_is_refused(header: object, message: str) -> None:
    assert_refused(forged(header), message)


@pytest.mark.parametrize("version", [0, 2, 2**32 - 1])
def test_another_format_version_is_refused(version: int) -> None:
    assert_refused(forged(HEADER, version=version), f"has format version {version}, not 1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"device_version": "2.0"}, "was made by npu 1.0, not npu 2.0"),
        ({"device": "gpu"}, "was made by npu 1.0, not gpu 1.0"),
    ],
)
def test_an_entry_of_another_device_is_refused(
    cache: Cache, change: dict[str, str], message: str
) -> None:
    cache.write(ENTRY, PROGRAM)
    with Warnings() as warnings:
        assert cache.read(replace(ENTRY, **change)) is None  # type: ignore[arg-type]  # all strings
    assert len(warnings) == 1
    assert message in warnings[0]


def test_the_name_of_the_model_is_only_for_people(cache: Cache) -> None:
    cache.write(ENTRY, PROGRAM)
    assert cache.read(replace(ENTRY, model="renamed", operations=99)) == PROGRAM


def test_a_folder_in_the_place_of_an_entry_is_no_problem(cache: Cache) -> None:
    file_of(cache).mkdir()
    with Warnings() as warnings:
        assert cache.read(ENTRY) is None
        cache.write(ENTRY, PROGRAM)
    assert len(warnings) == 2
    assert [listed.entry for listed in cache.listing()] == [None]
    assert cache.prune(0) == 0


def test_discarding_says_why(cache: Cache) -> None:
    cache.write(ENTRY, PROGRAM)
    with Warnings() as warnings:
        cache.discard(ENTRY, "the device does not like it")
        cache.discard(ENTRY, "nor its absence")
    assert "the device does not like it; compiling again" in warnings[0]
    assert not file_of(cache).exists()


def test_a_failed_write_leaves_nothing_behind(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with Warnings() as warnings:
        cache.write(ENTRY, PROGRAM)
    assert len(warnings) == 1
    assert "could not be written (No space left on device)" in warnings[0]
    assert list(cache.folder.iterdir()) == []


def test_an_interrupted_write_leaves_nothing_behind(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(source: str, target: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cache.write(ENTRY, PROGRAM)
    assert list(cache.folder.iterdir()) == []


def test_a_vanished_folder_is_worth_a_warning(cache: Cache) -> None:
    cache.folder.rmdir()
    with Warnings() as warnings:
        assert cache.read(ENTRY) is None
        cache.write(ENTRY, PROGRAM)
    assert len(warnings) == 1
    assert "could not be written" in warnings[0]


UNUSABLE: dict[str, Callable[[Path], Path]] = {
    "below a file": lambda file: file / "cache",
    "a file": lambda file: file,
    "far below a file": lambda file: file / "a" / "b",
    "a name that is too long": lambda file: file.parent / ("x" * 300),
}


@pytest.mark.parametrize("place", UNUSABLE)
def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("something")
    folder = UNUSABLE[place](tmp_path / "file")
    with pytest.raises(CacheError, match=r"cannot be written to .*; pass another folder") as caught:
        Cache(folder)
    assert str(folder) in str(caught.value)
    assert (tmp_path / "file").read_text() == "something"


@pytest.fixture
def filled(cache: Cache) -> list[Entry]:
    """Four entries of 1,000 bytes and some more each, the first used longest ago."""
    entries = [replace(ENTRY, key=f"{i:064}", model=f"model{i}") for i in range(4)]
    for i, entry in enumerate(entries):
        cache.write(entry, bytes(1000))
        os.utime(file_of(cache, entry), (1000 + i, 1000 + i))
    return entries


def test_a_listing_has_the_latest_first(cache: Cache, filled: list[Entry]) -> None:
    listing = cache.listing()
    assert [listed.entry for listed in listing] == filled[::-1]
    for listed in listing:
        assert listed.size == listed.path.stat().st_size > 1000
        assert listed.problem == ""
    assert [listed.used for listed in listing] == [1003, 1002, 1001, 1000]


def test_reading_makes_an_entry_the_latest(cache: Cache, filled: list[Entry]) -> None:
    assert cache.read(filled[0]) == bytes(1000)
    assert cache.listing()[0].entry == filled[0]


def test_a_listing_shows_damage_and_leaves_it(cache: Cache, filled: list[Entry]) -> None:
    file_of(cache, filled[1]).write_bytes(b"nonsense")
    (listed,) = (listed for listed in cache.listing() if listed.problem)
    assert listed.entry is None
    assert listed.problem == "is cut off in its first bytes"
    assert file_of(cache, filled[1]).exists()


def test_pruning_removes_damage_and_the_oldest(cache: Cache, filled: list[Entry]) -> None:
    size = file_of(cache, filled[3]).stat().st_size
    file_of(cache, filled[3]).write_bytes(bytes(100_000))
    (cache.folder / "notes.txt").write_text("not ours")
    assert cache.prune(2 * size) == 2
    assert [listed.entry for listed in cache.listing()] == [filled[2], filled[1]]
    assert cache.prune(2 * size) == 0
    assert cache.prune(0) == 2
    assert [path.name for path in cache.folder.iterdir()] == ["notes.txt"]


def test_pruning_to_any_size_keeps_what_fits(cache: Cache, filled: list[Entry]) -> None:
    assert cache.prune(2**40) == 0
    assert len(cache.listing()) == 4


def test_the_default_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", str(tmp_path / "mine"))
    assert default_folder() == tmp_path / "mine"
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder().name == "crosschip"
