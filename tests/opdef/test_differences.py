"""Differences between two collections, by name and place in the document."""

from __future__ import annotations

from tests.opdef.documents import CORPUS

from crosschip.opdef.definitions import OpDefCollection
from crosschip.opdef.differences import Difference, differences
from crosschip.opdef.documents import parse

FULL = (CORPUS / "right" / "all_elements.xml").read_text("utf-8")


def changed(*replacements: tuple[str, str]) -> OpDefCollection:
    text = FULL
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new, 1)
    return parse(text.encode()).collection


def found(*replacements: tuple[str, str]) -> list[Difference]:
    return list(differences(changed(), changed(*replacements)))


def test_there_are_none_between_the_same() -> None:
    assert found(("<!-- A description", "<!-- Another description")) == []


def test_attributes() -> None:
    assert found(('Version="1.0"', 'Version="2.0" UseQHPI="1"')) == [
        Difference("Version", "changed", "1.0", "2.0"),
        Difference("UseQHPI", "added", None, True),
    ]


def test_single_values() -> None:
    assert found(("<Rank>4D", "<Rank>ND"), ("<Default>repeat</Default>", "")) == [
        Difference("OpDef Blur/Input in[0]/Shape/Rank", "changed", "4D", "ND"),
        Difference("OpDef Blur/Parameter edges/Default", "removed", "repeat", None),
    ]


def test_lists_of_words() -> None:
    backend = "<SupportedBackend>{}</SupportedBackend>".format
    assert found((backend("CPU"), backend("GPU"))) == [
        Difference("OpDef Blur/SupportedBackend", "removed", "CPU", None),
        Difference("OpDef Blur/SupportedBackend", "added", None, "GPU"),
    ]
    zero, repeat = "<Enum>zero</Enum>", "<Enum>repeat</Enum>"
    assert found((zero, ""), (repeat, repeat + zero)) == [
        Difference(
            "OpDef Blur/Parameter edges/Enumeration/Enum",
            "reordered",
            ["zero", "repeat"],
            ["repeat", "zero"],
        )
    ]


def test_nodes_with_names() -> None:
    renamed = found((">radius<", ">reach<"), ("<Name>radius", "<Name>reach"))
    supplement = "SupplementalOpDefList HTP/SupplementalOpDef Blur"
    assert [(d.path, d.how) for d in renamed] == [
        ("OpDef Blur/Parameter radius", "removed"),
        ("OpDef Blur/Parameter reach", "added"),
        (f"{supplement}/Parameter radius", "removed"),
        (f"{supplement}/Parameter reach", "added"),
    ]
    assert renamed[0].before["datatypes"] == ["QNN_DATATYPE_UINT_32"]
    constraint = found(('id="7" Type="Datatype">dtype(out[0]) == ', 'id="7" Type="Datatype">'))
    assert [(d.path, d.how) for d in constraint] == [
        ("OpDef Blur/Output out[0]/Constraint 7", "changed")
    ]


def test_descriptions_in_whole() -> None:
    (one,) = found(("Edges are repeated.", "Edges are zero."))
    assert (one.path, one.how) == ("OpDef Blur/Description", "changed")
    assert one.after[-1] == {"text": "Edges are zero.", "kind": "Content"}
