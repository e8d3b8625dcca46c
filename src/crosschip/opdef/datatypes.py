"""Datatypes of OpDef documents, and the element types that store them."""

from __future__ import annotations

from enum import Enum

from crosschip.ir import ElementType


class Datatype(Enum):
    """Type of a tensor's elements; `SFIXED_POINT` and `UFIXED_POINT` are quantized integers."""

    INT_8 = "QNN_DATATYPE_INT_8"
    INT_16 = "QNN_DATATYPE_INT_16"
    INT_32 = "QNN_DATATYPE_INT_32"
    INT_64 = "QNN_DATATYPE_INT_64"
    UINT_8 = "QNN_DATATYPE_UINT_8"
    UINT_16 = "QNN_DATATYPE_UINT_16"
    UINT_32 = "QNN_DATATYPE_UINT_32"
    UINT_64 = "QNN_DATATYPE_UINT_64"
    SFIXED_POINT_4 = "QNN_DATATYPE_SFIXED_POINT_4"
    SFIXED_POINT_8 = "QNN_DATATYPE_SFIXED_POINT_8"
    SFIXED_POINT_16 = "QNN_DATATYPE_SFIXED_POINT_16"
    SFIXED_POINT_32 = "QNN_DATATYPE_SFIXED_POINT_32"
    UFIXED_POINT_4 = "QNN_DATATYPE_UFIXED_POINT_4"
    UFIXED_POINT_8 = "QNN_DATATYPE_UFIXED_POINT_8"
    UFIXED_POINT_16 = "QNN_DATATYPE_UFIXED_POINT_16"
    UFIXED_POINT_32 = "QNN_DATATYPE_UFIXED_POINT_32"
    BOOL_8 = "QNN_DATATYPE_BOOL_8"
    FLOAT_16 = "QNN_DATATYPE_FLOAT_16"
    FLOAT_32 = "QNN_DATATYPE_FLOAT_32"
    FLOAT_64 = "QNN_DATATYPE_FLOAT_64"
    BACKEND_SPECIFIC = "BACKEND_SPECIFIC"
    """The datatypes are in the supplement of each backend."""

    @property
    def element_type(self) -> ElementType | None:
        """The element type that stores the datatype; `None` for `BACKEND_SPECIFIC`."""
        return _STORED.get(self)

    @property
    def quantized(self) -> bool:
        """Whether the elements are quantized integers."""
        return "FIXED_POINT" in self.name

    @property
    def integer(self) -> bool:
        """Whether the elements are plain integers."""
        return self.name.startswith(("INT_", "UINT_"))

    @classmethod
    def of(cls, element_type: ElementType, quantized: bool = False) -> Datatype | None:
        """Return the datatype for an element type; `None` if documents have none."""
        return _NAMED.get((element_type, quantized))


def _stored(datatype: Datatype) -> ElementType:
    kind, bits = datatype.name.rsplit("_", 1)
    if kind == "BOOL":
        return ElementType.BOOL
    word = {"SFIXED_POINT": "int", "UFIXED_POINT": "uint"}.get(kind, kind.lower())
    return ElementType(f"{word}{bits}")


_STORED = {
    datatype: _stored(datatype) for datatype in Datatype if datatype.name != "BACKEND_SPECIFIC"
}
_NAMED = {(stored, datatype.quantized): datatype for datatype, stored in _STORED.items()}
