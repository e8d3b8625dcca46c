"""What the Python sides of both of NNRt's libraries do with arguments and answers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from crosschip.apis.c.handles import HANDLES
from crosschip.apis.c.side import Side
from crosschip.apis.nnrt import OH_NN_QuantParam, OH_NN_ReturnCode, OH_NN_Tensor
from crosschip.apis.nnrt.results import RESULTS, invalid
from crosschip.apis.results import Handle

MOST = 200
"""How many tensors there may be in a list, and sizes in a shape: no more are read."""


class NNRtSide(Side[OH_NN_ReturnCode]):
    """What both libraries have in common.

    Args:
        ffi: the library's declarations.
        lib: what it has for this side.
    """

    def __init__(self, ffi: Any, lib: Any) -> None:
        super().__init__(ffi, lib, RESULTS)

    def handle(self, object_: object, whole: int = 0) -> int:
        """A new handle of what a function of the face made; 0 if it made nothing."""
        return 0 if object_ is None else HANDLES.add(object_, whole)

    def ended(self, name: str, place: Any, destroyed: Callable[[Any], Any]) -> Any:
        """Destroy the object of a handle that is stored somewhere; `NULL` takes its place."""
        self.needed(**{name: place})
        number = place[0]
        object_ = HANDLES.get(number)
        answer = destroyed(object_)
        if isinstance(object_, Handle) and object_.destroyed:
            HANDLES.remove(number)
            place[0] = 0
        return answer

    def empty(self, **places: Any) -> None:
        """Check that there are places to store a pointer, which have none yet.

        Raises:
            Failure: one is `NULL`, or what is there is not.
        """
        self.needed(**places)
        for name, place in places.items():
            if place[0]:
                raise invalid(f"*{name} is not NULL")

    def store_array(self, number: int, key: Hashable, kind: str, values: Sequence[int]) -> Any:
        """An array of C that is there as long as the object of a handle, or until the next one."""
        array = HANDLES.objects_of(number)[key] = self.ffi.new(kind, values)
        return array

    def numbers(self, name: str, pointer: Any, count: int) -> list[Any]:
        """The elements of an array.

        Raises:
            Failure: it is `NULL`, but not empty.
        """
        if not count:
            return []
        self.needed(**{name: pointer})
        values: list[Any] = self.ffi.unpack(pointer, count)
        return values

    def places(self, name: str, array: Any) -> list[int] | None:
        """The elements of an `OH_NN_UInt32Array`; `None` if there is none.

        Raises:
            Failure: there are too many, none where there should be, or some where there should
                be none.
        """
        if not array:
            return None
        if array.size > MOST:
            raise invalid(f"{name} has {array.size} elements, but {MOST} at most")
        if array.data and not array.size:
            raise invalid(f"{name}->data is not NULL, but {name}->size is 0")
        return self.numbers(f"{name}->data", array.data, array.size)

    def tensor(self, pointer: Any) -> OH_NN_Tensor | None:
        """An `OH_NN_Tensor` as the face has it; `None` if there is none.

        Raises:
            Failure: an array of it is `NULL`, or has too many elements.
        """
        if not pointer:
            return None
        if pointer.dimensionCount > MOST:
            raise invalid(f"{pointer.dimensionCount} axes are more than {MOST}")
        sizes = self.numbers("dimensions", pointer.dimensions, pointer.dimensionCount)
        params, quantization = None, pointer.quantParam
        if quantization and quantization.quantCount:
            params = OH_NN_QuantParam(
                self.numbers("numBits", quantization.numBits, quantization.quantCount),
                self.numbers("scale", quantization.scale, quantization.quantCount),
                self.numbers("zeroPoint", quantization.zeroPoint, quantization.quantCount),
            )
        return OH_NN_Tensor(pointer.dataType, tuple(sizes), params, pointer.type)
