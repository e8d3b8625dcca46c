"""Changes of a document by hand: what is near them stays, and what is new fits in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.opdef.documents import CORPUS

from crosschip.ir import InputError
from crosschip.opdef.datatypes import Datatype
from crosschip.opdef.definitions import OpDef, OpDefCollection, OpDefList, Reference
from crosschip.opdef.documents import parse, read, write

FULL = CORPUS / "right" / "all_elements.xml"


def with_op_def(collection: OpDefCollection, **changes: Any) -> OpDefCollection:
    (op_def,) = collection.definitions.op_defs
    return replace(collection, definitions=OpDefList(op_defs=(replace(op_def, **changes),)))


def lines_changed(before: bytes, after: bytes) -> tuple[list[str], list[str]]:
    old, new = before.decode().splitlines(), after.decode().splitlines()
    return [line for line in old if line not in new], [line for line in new if line not in old]


def test_one_word_changes_one_line() -> None:
    document = read(FULL)
    image = document.collection.definitions.op_defs[0].inputs[0]
    changed = with_op_def(
        document.collection, inputs=(replace(image, datatypes=(Datatype.FLOAT_16,)),)
    )
    made = document.write(changed)
    assert parse(made).collection == changed
    assert made == FULL.read_bytes().replace(b"FLOAT_32</Data", b"FLOAT_16</Data", 1)


def test_what_is_added_stands_where_its_like_do() -> None:
    document = read(FULL)
    references = document.collection.definitions.op_defs[0].references
    new = Reference(source="OpenCV", url="https://docs.opencv.org/?a=1&b=2")
    made = document.write(with_op_def(document.collection, references=(*references, new)))
    gone, come = lines_changed(FULL.read_bytes(), made)
    assert gone == []
    assert come == [
        '            <Reference Source="OpenCV" Url="https://docs.opencv.org/?a=1&amp;b=2"/>'
    ]
    after = made.decode().splitlines()
    assert (
        after.index(come[0])
        == after.index('            <Reference Source="" Url=""></Reference>') + 1
    )


def test_what_is_removed_leaves_no_gap() -> None:
    document = read(FULL)
    made = document.write(with_op_def(document.collection, references=(), description=None))
    old, new = FULL.read_text("utf-8").splitlines(), made.decode().splitlines()
    first = next(i for i, line in enumerate(old) if "A description is" in line)
    last = next(i for i, line in enumerate(old) if 'Url=""' in line)
    assert new == old[:first] + old[last + 1 :]


def test_comments_elsewhere_stay() -> None:
    text = FULL.read_text("utf-8").replace("<Rank>", "<!-- how many axes --><Rank>")
    document = parse(text.encode())
    made = document.write(with_op_def(document.collection, backends=("GPU",)))
    assert made.decode().count("<!-- how many axes -->") == text.count("<!-- how many axes -->")
    assert "<SupportedBackend>GPU</SupportedBackend>" in made.decode()


def test_attributes_change_in_their_place() -> None:
    document = read(CORPUS / "right" / "schema_location.xml")
    changed = replace(document.collection, domain='a "b" & c', use_qhpi=True)
    made = document.write(changed)
    assert parse(made).collection == changed
    gone, come = lines_changed((CORPUS / "right" / "schema_location.xml").read_bytes(), made)
    assert gone == ['     PackageName="Filters" Domain="example" Version="1.0">']
    assert come == [
        '     PackageName="Filters" Domain=\'a "b" &amp; c\' Version="1.0" UseQHPI="true">'
    ]
    assert parse(made).write(document.collection) == made.replace(
        b"'a \"b\" &amp; c'", b'"example"'
    ).replace(b' UseQHPI="true"', b"")


def test_what_an_encoding_lacks_becomes_a_reference() -> None:
    document = read(CORPUS / "right" / "latin1.xml")
    made = document.write(replace(document.collection, domain="模糊 é"))
    assert b'Domain="&#27169;&#31946; \xe9"' in made
    assert parse(made).collection.domain == "模糊 é"


@pytest.mark.parametrize("name", ["utf16", "byte_order_mark", "gb18030", "crlf"])
def test_encoding_and_line_ends_stay(name: str) -> None:
    path = CORPUS / "right" / f"{name}.xml"
    document = read(path)
    op_def = document.collection.definitions.op_defs[0]
    made = document.write(
        with_op_def(document.collection, references=(Reference(source="模糊", url="x"),))
    )
    assert parse(made).collection.definitions.op_defs[0].references[0].source == "模糊"
    assert made[:2] == path.read_bytes()[:2]
    text = made.decode(document.source.encoding)
    assert ("\r\n" in text) == (name == "crlf")
    assert text.replace("\r\n", "").count("\n") == (0 if name == "crlf" else text.count("\n"))
    assert parse(made).write(with_op_def(document.collection, references=op_def.references)) == (
        path.read_bytes()
    )


def test_what_would_not_be_read_is_not_written() -> None:
    collection = read(CORPUS / "right" / "plain.xml").collection
    with pytest.raises(InputError, match=r"cannot be written\nwhat would be .*OpDef: ends without"):
        write(with_op_def(collection, inputs=(), outputs=(), parameters=(), backends=()))
    with pytest.raises(InputError, match="has space that a document does not keep"):
        write(replace(collection, version=" 1.0"))
    with pytest.raises(InputError, match=r"has the character U\+0000, which XML"):
        write(replace(collection, domain="\0"))
    with pytest.raises(InputError, match="cannot be written"):
        read(CORPUS / "right" / "plain.xml").write(replace(collection, domain="\ud800"))


def test_places_make_no_difference() -> None:
    first, second = (parse((CORPUS / "right" / f"{n}.xml").read_bytes()) for n in ("plain", "crlf"))
    assert first.collection == second.collection
    op_def: OpDef = first.collection.definitions.op_defs[0]
    assert op_def.location is not None
    assert (op_def.location.line, op_def.location.column) == (4, 9)
