"""The schema and the classes say the same: elements, their order, and the words of enumerations."""

from __future__ import annotations

from enum import Enum
from xml.etree import ElementTree

import pytest

from crosschip.ir import ElementType
from crosschip.opdef import definitions
from crosschip.opdef.datatypes import Datatype
from crosschip.opdef.definitions import Node, layout_of
from crosschip.opdef.schema import SCHEMA

XS = "{http://www.w3.org/2001/XMLSchema}"
TREE = ElementTree.parse(SCHEMA).getroot()


def classes() -> list[type[Node]]:
    found = [value for value in vars(definitions).values() if isinstance(value, type)]
    return [cls for cls in found if issubclass(cls, Node) and type_named(cls.__name__) is not None]


def type_named(name: str) -> ElementTree.Element | None:
    return TREE.find(f"{XS}complexType[@name='{name}']")


def elements(of: ElementTree.Element) -> list[str]:
    """Return the elements of a type in order, groups spelled out, each once."""
    found: list[str] = []
    for part in of.iter():
        if part.tag == f"{XS}group" and "ref" in part.attrib:
            group = TREE.find(f"{XS}group[@name='{part.attrib['ref']}']")
            assert group is not None
            found += elements(group)
        elif part.tag == f"{XS}element":
            found.append(part.attrib["name"])
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("cls", classes(), ids=lambda cls: cls.__name__)
def test_a_class_has_the_elements_of_its_type(cls: type[Node]) -> None:
    declared = type_named(cls.__name__)
    assert declared is not None
    layout = layout_of(cls).values()
    tags = [tag for xml in layout for tag in xml.kinds if tag]
    # Constraints may stand before Mandatory or after it; Mandatory is first where both are there.
    order = [tag for tag in elements(declared) if tag not in ("Constraint", "Mandatory")]
    assert [tag for tag in tags if tag not in ("Constraint", "Mandatory")] == order
    assert set(tags) == set(elements(declared))
    attributes = [part.attrib["name"] for part in declared.iter(f"{XS}attribute")]
    assert [xml.attribute for xml in layout if xml.attribute] == attributes


def test_every_class_has_a_type() -> None:
    assert len(classes()) == len(TREE.findall(f"{XS}complexType"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ConcreteDatatype", Datatype),
        ("Rank", definitions.Rank),
        ("Layout", definitions.Layout),
        ("ConstraintType", definitions.ConstraintType),
    ],
)
def test_enumerations_have_the_same_words(name: str, words: type[Enum]) -> None:
    found = TREE.findall(f"{XS}simpleType[@name='{name}']/{XS}restriction/{XS}enumeration")
    ours = [word.value for word in words if name != "ConcreteDatatype" or "QNN" in word.value]
    assert [enumeration.attrib["value"] for enumeration in found] == ours


def test_datatypes_are_the_twenty_of_the_document() -> None:
    concrete = set(Datatype) - {Datatype.BACKEND_SPECIFIC}
    assert len(concrete) == 20
    for datatype in concrete:
        stored = datatype.element_type
        assert stored is not None
        assert Datatype.of(stored, datatype.quantized) is datatype
    assert Datatype.UFIXED_POINT_4.element_type is ElementType.UINT4
    assert Datatype.of(ElementType.BFLOAT16) is None
    assert Datatype.BACKEND_SPECIFIC.element_type is None
