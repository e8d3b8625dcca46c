"""Right documents read and are written as they were; wrong ones are refused with the reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.opdef.documents import CORPUS, RIGHT, WRONG, expected, named

from crosschip.opdef.datatypes import Datatype
from crosschip.opdef.definitions import ConstraintType, Content, Layout, Rank
from crosschip.opdef.documents import parse, read, write
from crosschip.opdef.problems import OpDefError
from crosschip.opdef.tree import MAX_BYTES, MAX_ELEMENTS


def test_there_are_enough() -> None:
    assert len(RIGHT) >= 15
    assert len(WRONG) >= 40
    assert expected().keys() == {path.stem for path in WRONG}


@pytest.mark.parametrize("path", WRONG, ids=named)
def test_a_wrong_document_is_refused_with_the_place(path: Path) -> None:
    with pytest.raises(OpDefError) as caught:
        parse(path.read_bytes(), path.name)
    assert str(caught.value).splitlines() == expected()[path.stem]
    assert all(problem.location.file == path.name for problem in caught.value.problems)


@pytest.mark.parametrize("path", WRONG, ids=named)
def test_the_place_is_where_the_defect_begins(path: Path) -> None:
    """Of what is well-formed: a tag begins at the place, with the name of the message's element."""
    for line in expected()[path.stem]:
        _, row, column, message = line.split(":", 3)
        text = path.read_text("utf-8", "replace").splitlines()
        rest = text[int(row) - 1][int(column) - 1 :] if text else ""
        if "well-formed" not in message and " is not utf-8" not in message:
            assert rest.startswith("<"), line


@pytest.mark.parametrize("path", RIGHT, ids=named)
def test_a_right_document_is_written_as_it_was(path: Path) -> None:
    document = read(path)
    assert document.write(document.collection) == path.read_bytes()
    made = write(document.collection)
    assert parse(made).collection == document.collection
    assert write(parse(made).collection) == made


@pytest.mark.parametrize("path", RIGHT, ids=named)
def test_a_change_leaves_all_else_as_it_was(path: Path) -> None:
    document = read(path)
    changed = replace(document.collection, version="77.7")
    made = document.write(changed)
    assert parse(made).collection == changed
    encoding = document.source.encoding
    before, after = path.read_bytes().decode(encoding), made.decode(encoding)
    now = document.collection.version
    assert any(
        before.replace(f"Version={quote}{now}{quote}", 'Version="77.7"', 1) == after
        for quote in "\"'"
    )


def test_all_elements_are_read() -> None:
    (op_def,) = read(CORPUS / "right" / "all_elements.xml").collection.definitions.op_defs
    assert op_def.description is not None
    kinds = [(type(part).__name__, part.text[:8]) for part in op_def.description.parts]
    assert kinds == [("Content", "Averages"), ("Code", "out = su"), ("Content", "Edges ar")]
    assert op_def.description.parts[0].text.endswith("as far as <radius>.")
    assert [reference.source for reference in op_def.references] == ["SciPy", ""]
    (image,), (blurred,), (radius, edges) = op_def.inputs, op_def.outputs, op_def.parameters
    assert image.description is not None
    assert image.description.parts == (Content(text="images"),)
    assert [c.id for c in image.constraints] == [0, 1]
    assert [c.type for c in blurred.constraints] == [
        ConstraintType.DATATYPE,
        ConstraintType.VALUE,
        ConstraintType.DESCRIPTION,
    ]
    assert (image.default, image.repeated, image.static) == ("{{{{0.5}}}}", True, False)
    assert (image.shape.rank, image.shape.layout) == (Rank.FOUR, Layout.NHWC)
    assert (radius.default, radius.mandatory, radius.datatypes) == ("1", False, (Datatype.UINT_32,))
    assert edges.enumeration is not None
    assert (edges.default, edges.enumeration.names) == ("repeat", ("zero", "repeat"))
    assert (op_def.use_default_translation, op_def.backends) == (False, ("CPU", "HTP"))


def test_all_supplements_are_read() -> None:
    (htp,) = read(CORPUS / "right" / "all_elements.xml").collection.supplements
    (blur,) = htp.op_defs
    (image,), (radius,) = blur.inputs, blur.parameters
    assert htp.supported is not None
    assert (htp.backend, htp.supported.names, blur.name) == ("HTP", ("Blur",), "Blur")
    assert [c.text for c in image.constraints] == ["at most 8 images"]
    assert image.datatypes == (Datatype.FLOAT_16,)
    assert image.shape is not None
    assert image.shape.layout is Layout.NHCW
    assert (image.only_default, radius.only_default) == (False, True)


def test_all_datatypes_are_read() -> None:
    (op_def,) = read(CORPUS / "right" / "all_datatypes.xml").collection.definitions.op_defs
    assert set(op_def.inputs[0].datatypes) == set(Datatype) - {Datatype.BACKEND_SPECIFIC}


def test_what_is_too_large_is_not_parsed(tmp_path: Path) -> None:
    large = tmp_path / "large.xml"
    large.write_bytes(b"<a>" * (MAX_BYTES // 3 + 1))
    with pytest.raises(OpDefError, match=r"large.xml:1:1: has \d+ bytes; an OpDef document has at"):
        read(large)


def test_what_has_too_many_elements_is_not_checked() -> None:
    with pytest.raises(OpDefError, match=r"<document>:1:\d+: b: is one of more than 200000 elem"):
        parse(b"<a>" + b"<b/>" * MAX_ELEMENTS + b"</a>")


def test_an_element_with_too_many_attributes_is_not_checked() -> None:
    attributes = " ".join(f'a{index}=""' for index in range(1000))
    with pytest.raises(OpDefError, match="<document>:1:1: a: has 1000 attributes, which is too"):
        parse(f"<a {attributes}/>".encode())


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OpDefError, match=r"none.xml:1:1: cannot be read: No such file"):
        read(tmp_path / "none.xml")
    with pytest.raises(OpDefError, match="cannot be read"):
        read(tmp_path)


@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-le", "utf-32-be"])
def test_a_document_in_utf_32_is_refused(encoding: str) -> None:
    text = (CORPUS / "right" / "plain.xml").read_text("utf-8")
    for content in (text, text.partition("?>")[2].strip(), f"\ufeff{text}"):
        with pytest.raises(OpDefError, match="<document>:1:1: is in UTF-32, which is not read"):
            parse(content.encode(encoding))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "latin-1"])
@pytest.mark.parametrize("location", [1, 2, 60])
def test_a_character_that_xml_does_not_allow_is_refused(encoding: str, location: int) -> None:
    """Also where expat would take the text for one of another encoding."""
    plain = (CORPUS / "right" / "least.xml").read_text("utf-8").partition("?>")[2].strip()
    text = plain[:location] + "\0" + plain[location:]
    with pytest.raises(OpDefError, match=r":\d+: (has the character U|is in UTF-32)"):
        parse(text.encode(encoding))


def test_of_many_problems_the_first_are_named() -> None:
    text = (CORPUS / "right" / "plain.xml").read_text("utf-8")
    wrong = text.replace("</OpDefList>", "<OpDef/>" * 150 + "</OpDefList>")
    with pytest.raises(OpDefError, match="… and more") as caught:
        parse(wrong.encode())
    assert len(caught.value.problems) == 100
