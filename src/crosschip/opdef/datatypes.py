"""The datatypes of OpDef documents, and crosschip's element types for them."""

from __future__ import annotations

from enum import Enum

from crosschip.ir import ElementType


class Datatype(Enum):
    """The type of a tensor's elements; `SFIXED_POINT` and `UFIXED_POINT` are quantized integers."""

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
    """Each backend's supplement says which."""

    @property
    def element_type(self) -> ElementType | None:
        """The type that the elements are stored in; `None` if it is the backends' to say."""
        return _STORED.get(self)

    @property
    def quantized(self) -> bool:
        """Tell whether the elements are integers that stand for reals."""
        return "FIXED_POINT" in self.name

    @property
    def integer(self) -> bool:
        """Tell whether the elements are integers that stand for themselves."""
        return self.name.startswith(("INT_", "UINT_"))

    @classmethod
    def of(cls, element_type: ElementType, quantized: bool = False) -> Datatype | None:
        """The datatype of elements; `None` where the document has no word for them."""
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
