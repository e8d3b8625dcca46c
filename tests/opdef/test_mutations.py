"""Documents with random damage: they read, or there is an error with line and column."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from tests.opdef.documents import RIGHT

from crosschip.opdef.documents import parse
from crosschip.opdef.problems import OpDefError

COUNT = 1000
SOURCES = [path.read_bytes() for path in RIGHT]
TAG = re.compile(rb"<[^>]*>")
WORDS = [
    b"<", b">", b"&", b"]]>", b"<![CDATA[", b"<!--", b"-->", b"<?xml?>", b"<!DOCTYPE a>", b"&a;",
    b"&#0;", b"&#xD800;", b"\0", b"\xff", b'"', b"<OpDef/>", b"</OpDef>", b"<Name>x</Name>",
    b"<Default>[[1, 2</Default>", b"QNN_DATATYPE_INT_8", b"BACKEND_SPECIFIC", b"SCALAR", b"true",
    b"\xe2\x80\xa8", b"9" * 5000, b"[" * 500, b"<a>" * 50, b' xmlns="x"', b' Type="Value"',
]  # fmt: skip

Mutation = Callable[[random.Random, bytes], bytes]


def flip(chance: random.Random, text: bytes) -> bytes:
    at = chance.randrange(len(text))
    return text[:at] + bytes([text[at] ^ (1 << chance.randrange(8))]) + text[at + 1 :]


def insert(chance: random.Random, text: bytes) -> bytes:
    at = chance.randrange(len(text))
    return text[:at] + chance.choice(WORDS) + text[at:]


def cut(chance: random.Random, text: bytes) -> bytes:
    at = chance.randrange(len(text))
    return text[:at] + text[at + chance.randrange(1, 60) :]


def repeat(chance: random.Random, text: bytes) -> bytes:
    at, to = sorted(chance.randrange(len(text)) for _ in range(2))
    return text[:to] + text[at:to] + text[to:]


def swap_tags(chance: random.Random, text: bytes) -> bytes:
    tags = list(TAG.finditer(text))
    if len(tags) < 2:
        return text
    first, second = sorted(chance.sample(tags, 2), key=lambda tag: tag.start())
    between = text[first.end() : second.start()]
    return text[: first.start()] + second[0] + between + first[0] + text[second.end() :]


def rename(chance: random.Random, text: bytes) -> bytes:
    """Rename an element in both tags, so that the document stays well-formed."""
    names = sorted(set(re.findall(rb"<(\w+)", text))) or [b"Name"]
    old, new = chance.choice(names), chance.choice(names)
    found = list(re.finditer(rb"<%s>([^<]*)</%s>" % (old, old), text))
    if not found:
        return text
    one = chance.choice(found)
    return text[: one.start()] + b"<%s>%s</%s>" % (new, one[1], new) + text[one.end() :]


def move_text(chance: random.Random, text: bytes) -> bytes:
    """Return the text of one element becomes that of another."""
    found = list(re.finditer(rb">([^<>]*)</", text))
    if not found:
        return text
    one, other = chance.choice(found), chance.choice(found)
    return text[: one.start(1)] + other[1] + text[one.end(1) :]


MUTATIONS: list[Mutation] = [flip, insert, cut, repeat, swap_tags, rename, move_text]


@pytest.mark.parametrize("seed", range(10))
def test_damage_is_an_error_with_a_place(seed: int) -> None:
    chance = random.Random(seed)
    refused = 0
    for _ in range(COUNT // 10):
        text = chance.choice(SOURCES)
        for _ in range(chance.randint(1, 3)):
            text = chance.choice(MUTATIONS)(chance, text) or b"<"
        error = error_of(text)
        for problem in error.problems if error else ():
            location = problem.location
            assert 1 <= location.line <= text.count(b"\n") + text.count(b"\r") + 1
            assert 1 <= location.column <= len(text) + 1
            assert str(problem).startswith(f"damaged.xml:{location.line}:{location.column}: ")
        refused += error is not None
    assert refused > COUNT // 20


def error_of(text: bytes) -> OpDefError | None:
    """Return the error that a document is; what reads is also written as it was."""
    try:
        document = parse(text, "damaged.xml")
    except OpDefError as error:
        return error
    assert document.write(document.collection) == text
    return None
