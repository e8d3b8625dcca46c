"""The one persisted form: what is read is what was written, with the same secret, or nothing."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosschip.ir import ModelFileError
from crosschip.runtime.artifact import container
from crosschip.runtime.artifact.container import (
    BLOCK_SIZE,
    Artifact,
    ArtifactError,
    MissingArtifactError,
    encode,
    looks_like_cache_entry,
    looks_like_shipped_file,
)
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.folder import KIND
from crosschip.runtime.plain import from_plain, to_plain

ENTRY = Entry("0" * 64, "npu", "1.0", "model.0", 3)
PROGRAM = bytes(range(256)) * 3
SECRET = bytes(range(32))
OTHER_SECRET = bytes(32)


def contents(program: bytes = PROGRAM, entry: Entry = ENTRY, secret: bytes = SECRET) -> bytes:
    """An entry's file."""
    return b"".join(encode(KIND, {}, [program], entry=to_plain(entry), secret=secret))


GOOD = contents()


def read(path: Path, secret: bytes | None = SECRET, *, mapped: bool = False) -> Any:
    """All that an artifact says, and its parts."""
    with Artifact(path, secret=secret, mapped=mapped) as artifact:
        ends = [artifact.begin_part(number) for number in range(artifact.count)]
    parts = [end() for end in ends]
    return artifact.kind, artifact.metadata, artifact.entry, parts


def read_back(content: bytes, secret: bytes = SECRET) -> tuple[Entry, bytes]:
    """The entry, and its bytes, read from a file with this content."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "entry")
        path.write_bytes(content)
        assert read(path, secret) == read(path, secret, mapped=True)
        kind, metadata, entry, (part,) = read(path, secret)
        assert (kind, metadata) == (KIND, {})
        return from_plain(Entry, entry), part


def assert_damaged(content: bytes, message: str = "") -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "entry")
        path.write_bytes(content)
        for mapped in (False, True):
            with pytest.raises(ArtifactError) as caught:
                read(path, mapped=mapped)
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
            (program,) = read(path, mapped=True)[3]
            path.unlink()
            assert isinstance(program, memoryview)
            assert program.readonly
            assert np.frombuffer(program, np.uint8).ctypes.data % 64 == 0
            assert bytes(program) == bytes(2**20)


def test_two_blocks_that_change_places_are_noticed() -> None:
    one, other = b"a" * BLOCK_SIZE, b"b" * BLOCK_SIZE
    head, *_ = encode(KIND, {}, [[one, other]], secret=SECRET)
    content = bytes(head) + other + one
    assert_damaged(content, "damaged bytes in block 0")


def test_the_program_of_another_entry_is_noticed() -> None:
    """Nothing of an authentic entry makes another program one."""
    other = bytes(reversed(PROGRAM))
    assert_damaged(GOOD[: -len(PROGRAM)] + other, "damaged bytes in block 0")


def test_another_secret_is_noticed() -> None:
    assert_damaged(contents(secret=OTHER_SECRET), "was written with another secret than yours")


def test_a_forger_who_names_the_right_secret_is_noticed() -> None:
    """All but the secret is known to whoever can read an entry."""
    content = bytearray(contents(bytes(768), secret=OTHER_SECRET))
    content[:32] = GOOD[:32]
    assert_damaged(bytes(content), "has a header that is damaged or forged")


PART: dict[str, Any] = {"size": len(PROGRAM), "blocks": [hashlib.sha256(PROGRAM).hexdigest()]}
HEADER: dict[str, Any] = {
    "kind": KIND,
    "crosschip": "0.3.0",
    "entry": {
        "key": ENTRY.key,
        "device": "npu",
        "device_version": "1.0",
        "model": "model.0",
        "operations": 3,
        "whole": False,
    },
    "metadata": {},
    "parts": [PART],
}


def sealed(header: object, version: int = 5, secret: bytes | None = SECRET) -> bytes:
    """A file with this header, laid out and authenticated as docs/formats.md says."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    name = bytes(16)
    if secret is not None:
        name = hmac.digest(secret, b"crosschip cache secret", "sha256")[:16]
    begin = struct.pack("<8sII16s", b"\x93CHIP\r\n\x1a", version, len(text), name)
    digest = hashlib.sha256(begin + text).digest()
    if secret is not None:
        digest = hmac.digest(secret, begin + text, "sha256")
    return begin + digest + text + PROGRAM


def test_a_file_by_the_book_is_read() -> None:
    assert read_back(sealed(HEADER)) == (ENTRY, PROGRAM)
    with Artifact(sealed({**HEADER, "entry": None}, secret=None)) as artifact:
        assert (artifact.kind, artifact.entry, [*artifact.parts()]) == (KIND, None, [PROGRAM])


def with_part(**changes: Any) -> dict[str, Any]:
    return {**HEADER, "parts": [{**PART, **changes}]}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (with_part(size=len(PROGRAM) - 1), "bytes where"),
        (with_part(size=len(PROGRAM) + 1), "bytes where"),
        (with_part(size=-1), "not laid out"),
        (with_part(size=2**80), "not laid out"),
        (with_part(size="768"), "not laid out"),
        (with_part(size=None), "not laid out"),
        (with_part(size=True), "not laid out"),
        (with_part(blocks=[]), "not laid out"),
        (with_part(blocks=PART["blocks"] * 2), "not laid out"),
        (with_part(blocks=None), "not laid out"),
        (with_part(blocks=[1]), "damaged bytes in block 0"),
        ({**HEADER, "parts": []}, "bytes where"),
        ({**HEADER, "parts": None}, "not laid out"),
        ({**HEADER, "parts": [1]}, "not laid out"),
        ({**HEADER, "metadata": None}, "not laid out"),
        *(({k: v for k, v in HEADER.items() if k != name}, "not laid out") for name in HEADER),
        ({}, "not laid out"),
        ([], "not laid out"),
        (b"", "not laid out"),
        (b"{", "not laid out"),
        (b"[" * 10_000, "not laid out"),
        (b"\xff", "not laid out"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_an_authentic_header_of_another_make_is_refused(header: object, message: str) -> None:
    assert_damaged(sealed(header), message)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 6, 2**32 - 1])
def test_another_format_version_is_refused(version: int) -> None:
    """Before its secret or its header is looked at; the sentence says who wrote it."""
    writer = "an earlier" if version < 5 else "a later"
    message = f"has format version {version}, not 5: {writer} crosschip wrote it"
    assert_damaged(sealed(HEADER, version), message)
    with pytest.raises(ArtifactError, match=message):
        Artifact(sealed(HEADER, version, secret=None))


def test_a_file_of_parts_of_an_earlier_crosschip_is_refused() -> None:
    header = b'{"kind": "compiled model", "parts": []}'
    begin = struct.pack("<8sIIQ8x", b"\x93CHIPS\r\n", 1, len(header), 64 + len(header))
    content = begin + hashlib.sha256(begin + header).digest() + header
    assert looks_like_shipped_file(content)
    with pytest.raises(ArtifactError, match=r"by an earlier crosschip, .*; compile the mod"):
        Artifact(content)
    assert_damaged(content, "was written by an earlier crosschip")


def test_a_header_that_claims_to_be_huge_is_not_read() -> None:
    content = bytearray(GOOD)
    content[12:16] = b"\xff" * 4
    assert_damaged(bytes(content), "has a header that is damaged or forged")


# Every kind is one form: in memory and in files, shipped and authenticated.

json_objects = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=[])),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=5,
    ),
    max_size=3,
)
pieces = st.lists(st.binary(max_size=90), max_size=4)
secrets = st.sampled_from([None, SECRET])
KINDS = [KIND, "compiled model", "cache"]


@given(st.sampled_from(KINDS), json_objects, st.lists(pieces, max_size=4), secrets, st.booleans())
def test_any_artifact_is_read_as_it_was_written(
    kind: str, metadata: dict[str, Any], parts: list[list[bytes]], secret: bytes | None, later: bool
) -> None:
    """Whether a part is handed over at once, in pieces, or read when it is needed."""
    given_parts: list[Any] = [partial(list, part) if later else part for part in parts]
    content = b"".join(encode(kind, metadata, given_parts, secret=secret))
    with TemporaryDirectory() as folder:
        path = Path(folder, "artifact")
        path.write_bytes(content)
        expected = (kind, metadata, None, [b"".join(part) for part in parts])
        assert read(path, secret) == read(path, secret, mapped=True) == expected
        assert (looks_like_shipped_file(path), looks_like_shipped_file(content)) == (
            secret is None,
        ) * 2
        assert (looks_like_cache_entry(path), looks_like_cache_entry(content)) == (
            secret is not None,
        ) * 2
    with Artifact(content, secret=secret) as artifact:
        assert list(artifact.parts()) == expected[3]
        with pytest.raises(ArtifactError, match=f"has no part {len(parts)}"):
            artifact.part(len(parts))


def refused(content: bytes, secret: bytes | None) -> None:
    with pytest.raises(ArtifactError), Artifact(content, secret=secret) as artifact:
        list(artifact.parts())


@given(st.sampled_from(KINDS), st.lists(st.binary(max_size=90), max_size=4), secrets, st.data())
def test_any_changed_artifact_is_refused(
    kind: str, parts: list[bytes], secret: bytes | None, data: st.DataObject
) -> None:
    """A bit that is flipped, an end that is missing, more at the end."""
    content = b"".join(encode(kind, {"name": "model"}, parts, secret=secret))
    place = data.draw(st.integers(0, len(content) - 1))
    flipped = bytearray(content)
    flipped[place] ^= 1 << data.draw(st.integers(0, 7))
    refused(bytes(flipped), secret)
    refused(content[:place], secret)
    refused(content + data.draw(st.binary(min_size=1, max_size=20)), secret)


def test_an_entry_is_not_taken_for_a_file_that_is_shipped_nor_the_reverse() -> None:
    with pytest.raises(ArtifactError, match="is an entry of a cache; load it by its token"):
        Artifact(GOOD)
    shipped = b"".join(encode(KIND, {}, [PROGRAM], entry=to_plain(ENTRY)))
    assert_damaged(shipped, "is not authenticated with a secret")


def test_a_plain_digest_is_no_authentication() -> None:
    """Whoever names the secret in a shipped file's header cannot seal it."""
    shipped = bytearray(encode_all(secret=None))
    shipped[16:32] = GOOD[16:32]
    shipped[32:64] = hashlib.sha256(shipped[:32] + shipped[64 : -len(PROGRAM)]).digest()
    assert_damaged(bytes(shipped), "has a header that is damaged or forged")


def encode_all(secret: bytes | None) -> bytes:
    return b"".join(encode(KIND, {}, [PROGRAM], entry=to_plain(ENTRY), secret=secret))


def test_a_part_that_changes_while_it_is_written_is_noticed() -> None:
    readings = iter([b"before", b"after"])
    with pytest.raises(ModelFileError, match="cache: has changed while it was written"):
        list(encode("cache", {}, [lambda: next(readings)]))


def test_a_header_that_no_reader_takes_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "_MAX_HEADER", 1000)
    with pytest.raises(ModelFileError, match="is too large for a file"):
        list(encode("cache", {}, [b""] * 100))


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
    with pytest.raises(ArtifactError) as caught:
        read(Path("entry"))
    assert message in str(caught.value)


def test_a_device_is_not_read() -> None:
    for secret in (None, SECRET):
        with pytest.raises(ArtifactError, match="is not a regular file"):
            read(Path("/dev/zero"), secret)


def test_no_file_is_another_thing_than_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(MissingArtifactError, match="there is no such file"):
        read(tmp_path / "entry")
