"""The file of a cache entry: what is read is what was written with the same secret, or nothing."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosschip.runtime.cache.entry import BLOCK_SIZE, Damaged, Entry, begin, head, read

ENTRY = Entry("0" * 64, "npu", "1.0", "model.0", 3)
PROGRAM = bytes(range(256)) * 3
SECRET = bytes(range(32))
OTHER_SECRET = bytes(32)


def contents(program: bytes = PROGRAM, entry: Entry = ENTRY, secret: bytes = SECRET) -> bytes:
    """An entry's file."""
    return head(entry, [program], secret) + program


GOOD = contents()


def read_back(content: bytes, secret: bytes = SECRET) -> tuple[Entry, bytes]:
    """The entry, and its bytes, read from a file with this content."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "entry")
        path.write_bytes(content)
        found = read(path, secret)
        mapped = begin(path, secret, mapped=True)
        assert (mapped.entry, bytes(mapped.checked())) == found
        return found


def assert_damaged(content: bytes, message: str = "") -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "entry")
        path.write_bytes(content)
        for mapped in (False, True):
            with pytest.raises(Damaged) as caught:
                begin(path, SECRET, mapped=mapped).checked()
            assert message in str(caught.value)


@given(st.binary(max_size=200))
def test_what_is_read_is_what_was_written(program: bytes) -> None:
    assert read_back(contents(program)) == (ENTRY, program)


@pytest.mark.parametrize(
    "size", [0, 1, BLOCK_SIZE - 1, BLOCK_SIZE, BLOCK_SIZE + 1, 2 * BLOCK_SIZE + 5]
)
def test_programs_of_any_size(size: int) -> None:
    program = os.urandom(size)
    assert read_back(contents(program)) == (ENTRY, program)


@given(
    texts=st.tuples(*[st.text(st.characters(exclude_categories=[]))] * 4),
    operations=st.integers(0, 2**70),
)
def test_any_text_describes_an_entry(texts: tuple[str, str, str, str], operations: int) -> None:
    """Lone surrogates too, which no encoding takes."""
    entry = Entry(*texts, operations)
    assert read_back(contents(entry=entry)) == (entry, PROGRAM)


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    """A good entry with a few things changed: bits, cuts, insertions, pieces moved or copied."""
    content = bytearray(GOOD)
    for _ in range(draw(st.integers(1, 4))):
        a, b = sorted(draw(st.tuples(*[st.integers(0, len(content))] * 2)))
        match draw(st.sampled_from(["flip", "cut", "drop", "insert", "append", "move", "copy"])):
            case "flip" if a < len(content):
                content[a] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del content[a:]
            case "drop":
                del content[a:b]
            case "insert":
                content[a:a] = draw(st.binary(min_size=1, max_size=50))
            case "append":
                content += draw(st.binary(min_size=1, max_size=50))
            case "move":
                content = content[a:b] + content[:a] + content[b:]
            case "copy":
                content[b:b] = content[a:b]
    return bytes(content)


@given(mutations())
def test_a_changed_file_is_never_another_program(content: bytes) -> None:
    if content == GOOD:
        assert read_back(content) == (ENTRY, PROGRAM)
    else:
        assert_damaged(content)


@pytest.mark.parametrize("start", range(0, len(GOOD), 200))
def test_every_bit_counts(start: int) -> None:
    for place in range(start * 8, min(start + 200, len(GOOD)) * 8, 5):
        content = bytearray(GOOD)
        content[place // 8] ^= 1 << place % 8
        assert_damaged(bytes(content))


@given(st.binary(max_size=200))
def test_a_file_of_something_else_is_noticed(content: bytes) -> None:
    assert_damaged(content)


def test_damage_in_any_block_is_noticed() -> None:
    program = bytes(2 * BLOCK_SIZE + 5)
    good = contents(program)
    for block in range(3):
        content = bytearray(good)
        content[-len(program) + block * BLOCK_SIZE + 2] ^= 1
        assert_damaged(bytes(content), f"damaged bytes in block {block}")


def test_a_large_program_is_a_view_of_its_file_whose_memory_is_aligned() -> None:
    for operations in range(0, 10**6, 99_999):  # headers of several lengths
        entry = replace(ENTRY, operations=operations)
        content = contents(bytes(2**20), entry)
        with TemporaryDirectory() as folder:
            path = Path(folder, "entry")
            path.write_bytes(content)
            program = begin(path, SECRET, mapped=True).checked()
            path.unlink()
            assert isinstance(program, memoryview)
            assert program.readonly
            assert np.frombuffer(program, np.uint8).ctypes.data % 64 == 0
            assert bytes(program) == bytes(2**20)


def test_two_blocks_that_change_places_are_noticed() -> None:
    one, other = b"a" * BLOCK_SIZE, b"b" * BLOCK_SIZE
    content = head(ENTRY, [one, other], SECRET) + other + one
    assert_damaged(content, "damaged bytes in block 0")


def test_the_program_of_another_entry_is_noticed() -> None:
    """Nothing of an authentic entry makes another program one."""
    other = bytes(reversed(PROGRAM))
    assert_damaged(head(ENTRY, [PROGRAM], SECRET) + other, "damaged bytes in block 0")


def test_another_secret_is_noticed() -> None:
    assert_damaged(contents(secret=OTHER_SECRET), "was written with another secret than yours")


def test_a_forger_who_names_the_right_secret_is_noticed() -> None:
    """All but the secret is known to whoever can read an entry."""
    content = bytearray(contents(bytes(768), secret=OTHER_SECRET))
    content[:32] = GOOD[:32]
    assert_damaged(bytes(content), "has a header that is damaged or forged")


HEADER: dict[str, Any] = {
    "key": ENTRY.key,
    "device": "npu",
    "device_version": "1.0",
    "model": "model.0",
    "operations": 3,
    "whole": False,
    "size": len(PROGRAM),
    "blocks": [hashlib.sha256(PROGRAM).hexdigest()],
}


def authentic(header: object, version: int = 4) -> bytes:
    """A file with this header, laid out and authenticated as docs/formats.md says."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    name = hmac.digest(SECRET, b"crosschip cache secret", "sha256")[:16]
    preamble = struct.pack("<8sII16s", b"\x93CHIP\r\n\x1a", version, len(text), name)
    return preamble + hmac.digest(SECRET, preamble + text, "sha256") + text + PROGRAM


def test_a_file_by_the_book_is_read() -> None:
    assert read_back(authentic(HEADER)) == (ENTRY, PROGRAM)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({**HEADER, "size": len(PROGRAM) - 1}, "has 768 bytes of program where 767 belong"),
        ({**HEADER, "size": -1}, "bytes of program where -1 belong"),
        ({**HEADER, "size": 2**80}, "bytes of program where"),
        ({**HEADER, "size": "768"}, "bytes of program where"),
        ({**HEADER, "blocks": []}, "not laid out"),
        ({**HEADER, "blocks": HEADER["blocks"] * 2}, "not laid out"),
        ({**HEADER, "blocks": None}, "not laid out"),
        ({**HEADER, "blocks": [1]}, "damaged bytes in block 0"),
        ({k: v for k, v in HEADER.items() if k != "model"}, "not laid out"),
        ({}, "not laid out"),
        ([], "not laid out"),
        (b"", "not laid out"),
        (b"{", "not laid out"),
        (b"\xff", "not laid out"),
    ],
)
def test_an_authentic_header_of_another_make_is_refused(header: object, message: str) -> None:
    assert_damaged(authentic(header), message)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 2**32 - 1])
def test_another_format_version_is_refused(version: int) -> None:
    assert_damaged(authentic(HEADER, version), f"has format version {version}, not 4")


def test_a_header_that_claims_to_be_huge_is_not_read() -> None:
    content = bytearray(GOOD)
    content[12:16] = b"\xff" * 4
    assert_damaged(bytes(content), "has a header that is damaged or forged")


def _link(path: Path) -> None:
    path.with_name("target").write_bytes(GOOD)
    path.symlink_to("target")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


NOT_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pipe": (os.mkfifo, "cannot be read (is not a regular file)"),
    "a folder": (Path.mkdir, "cannot be read (is not a regular file)"),
    "a link to a good entry": (_link, "cannot be read (Too many levels of symbolic links)"),
    "a link to a device": (lambda path: path.symlink_to("/dev/zero"), "cannot be read"),
    "a link to itself": (lambda path: path.symlink_to(path), "cannot be read"),
    "a socket": (_socket, "cannot be read"),
}


@pytest.mark.parametrize("kind", NOT_FILES)
def test_only_regular_files_are_read(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, message = NOT_FILES[kind]
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    make(Path("entry"))
    with pytest.raises(Damaged) as caught:
        read(Path("entry"), SECRET)
    assert message in str(caught.value)


def test_a_device_is_not_read() -> None:
    with pytest.raises(Damaged, match="is not a regular file"):
        read(Path("/dev/zero"), SECRET)


def test_no_file_is_another_thing_than_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "entry", SECRET)
