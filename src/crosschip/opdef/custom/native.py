"""Operators whose reference is a C kernel; see `crosschip_kernel.h`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from crosschip.ir import Array, ElementType, InputError, Operand, Quantization, TensorType
from crosschip.ir.errors import install_command
from crosschip.opdef.custom.operator import CustomOperator
from crosschip.ops.definition.kernel import Kernel
from crosschip.ops.definition.slots import Parameter, Slot, Tensors

if TYPE_CHECKING:
    from cffi import FFI

HEADER = Path(__file__).with_name("crosschip_kernel.h")
"""The header for kernels."""

_VERSION = 1
_MESSAGE = 256
_FOR_COMPILERS = re.compile(
    r"^#ifdef __cplusplus.*?^#endif$|^#include .*?$|^#(ifndef|define) CROSSCHIP_KERNEL_H$|^#endif$",
    re.MULTILINE | re.DOTALL,
)


class NativeOperator(CustomOperator):
    """Base of operators that a kernel in a shared library computes.

    Attributes:
        library: the file of the library.
        function: the name of the kernel; by default that of the operator.
    """

    __slots__ = ()
    library: ClassVar[Path]
    function: ClassVar[str] = ""

    @classmethod
    def computes(cls) -> bool:
        return True

    @classmethod
    def key_parts(cls) -> Sequence[bytes]:
        try:
            return (*super().key_parts(), Path(cls.library).read_bytes())
        except OSError as error:
            raise InputError(
                f"{cls.type}: {cls.library} cannot be read: {error.strerror}; build it first"
            ) from None

    def kernel(self) -> Kernel:
        kernel = load_kernel(Path(self.library), self.function or self.title)
        return self.rules.guard_kernel(self, _Call(self, kernel).run)


KernelArgument = tuple[Any, Array | None, Quantization | None]
"""A tensor's name as a C string, its elements, and their quantization."""


class _Call:
    """Calls of the kernel for one operation."""

    def __init__(self, operation: CustomOperator, kernel: Any) -> None:
        self._operation = operation
        self._kernel = kernel
        slots = [
            (name, getattr(type(operation), slot_name))
            for name, slot_name in operation.tensors.items()
        ]
        self._inputs = [(_c_string(name), slot) for name, slot in slots if not slot.parameter]
        self._settings = [(_c_string(name), slot) for name, slot in slots if slot.parameter]
        names = operation.results
        last = len(names) - 1
        self._results = [_c_string(names[min(i, last)]) for i in range(len(operation.outputs))]
        self._types: dict[object, Sequence[TensorType]] = {}
        if all(output.type.static_shape is not None for output in operation.outputs):
            self._types[None] = [output.type for output in operation.outputs]

    def run(self, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
        """Call the kernel.

        Raises:
            ValueError: the shapes break a rule.
            RuntimeError: the kernel returned an error code.
        """
        types = self._types.get(None) or self._infer_types(arrays)
        arrays_out = tuple(np.empty(t.static_shape or (), t.element_type.dtype) for t in types)
        ffi = declarations()
        keep_alive: list[Any] = []  # memory that the structures point to
        inputs = [
            t for name, slot in self._inputs for t in self._kernel_arguments(name, slot, arrays)
        ]
        settings = [
            t for name, slot in self._settings for t in self._kernel_arguments(name, slot, arrays)
        ]
        results = [
            (name, array, type_.quantization)
            for name, array, type_ in zip(self._results, arrays_out, types, strict=True)
        ]
        message = ffi.new("char[]", _MESSAGE)
        call = ffi.new("crosschip_call *")
        call.size = ffi.sizeof("crosschip_call")
        call.input_count, call.inputs = len(inputs), _to_structs(inputs, keep_alive)
        call.parameter_count, call.parameters = len(settings), _to_structs(settings, keep_alive)
        call.output_count, call.outputs = len(results), _to_structs(results, keep_alive)
        call.message, call.message_length = message, _MESSAGE
        code = self._kernel(call)
        if code != 0:
            text = ffi.string(message, _MESSAGE).decode("utf-8", "replace")
            raise RuntimeError(f"returned {code}{': ' if text else ''}{text}")
        return arrays_out

    def _kernel_arguments(
        self, name: Any, slot: Slot, arrays: Sequence[Array | None]
    ) -> Iterator[KernelArgument]:
        """Yield the kernel arguments of a slot; an empty parameter has its default."""
        inputs = self._operation.inputs
        if isinstance(slot, Tensors):
            stop = len(inputs) - slot.after
            pairs = zip(arrays[slot.index : stop], inputs[slot.index : stop], strict=True)
        else:
            pairs = zip(arrays[slot.index :][:1], inputs[slot.index :][:1], strict=True)
        for array, operand in pairs:
            if array is None and isinstance(slot, Parameter) and slot.default is not None:
                array = slot.encode(slot.default)
            yield name, array, operand.type.quantization if operand else None

    def _infer_types(self, arrays: Sequence[Array | None]) -> Sequence[TensorType]:
        """Infer the output types for the input shapes and parameter values of a run."""
        operation = self._operation
        shapes = tuple(None if array is None else array.shape for array in arrays)
        settings = [s for s in operation.slots if s.parameter and arrays[s.index] is not None]
        values = tuple(np.asarray(arrays[slot.index]).tobytes() for slot in settings)
        if (shapes, values) not in self._types:
            inputs = tuple(
                operand
                if operand is None or array is None or operand.is_constant
                else Operand(
                    operand.name,
                    TensorType(operand.type.element_type, array.shape, operand.type.quantization),
                    array if index in {slot.index for slot in settings} else None,
                )
                for index, (operand, array) in enumerate(zip(operation.inputs, arrays, strict=True))
            )
            if len(self._types) > _MOST_SHAPES:
                self._types.clear()
            self._types[shapes, values] = operation.with_inputs(inputs).infer()
        return self._types[shapes, values]


_MOST_SHAPES = 256


def _to_structs(arguments: Sequence[KernelArgument], keep_alive: list[Any]) -> Any:
    ffi = declarations()
    tensors = ffi.new("crosschip_tensor[]", max(1, len(arguments)))
    keep_alive.append(tensors)
    for tensor, (name, array, quantization) in zip(tensors, arguments, strict=False):
        tensor.size, tensor.name = ffi.sizeof("crosschip_tensor"), name
        tensor.rank, tensor.quantization.axis = -1, -1
        if array is None:
            continue
        keep_alive.append(array)
        tensor.type = ElementType.of(array.dtype).code
        tensor.rank = array.ndim
        sizes = ffi.new("int64_t[]", [*array.shape, *array.strides, 0])
        keep_alive.append(sizes)
        tensor.shape, tensor.strides = sizes, sizes + array.ndim
        tensor.data = ffi.cast("void *", array.__array_interface__["data"][0])
        if quantization is not None:
            _fill_quantization(tensor.quantization, quantization, keep_alive)
    return tensors


def _fill_quantization(target: Any, quantization: Quantization, keep_alive: list[Any]) -> None:
    ffi = declarations()
    target.count = len(quantization.scale)
    target.axis = -1 if quantization.axis is None else quantization.axis
    scales = ffi.new("float[]", quantization.scale)
    zero_points = ffi.new("int64_t[]", quantization.zero_point)
    keep_alive += [scales, zero_points]
    target.scales, target.zero_points = scales, zero_points


@lru_cache(maxsize=1)
def declarations() -> FFI:
    """Return a cffi instance with the header's declarations.

    Raises:
        InputError: cffi is not installed.
    """
    try:
        from cffi import FFI
    except ImportError:
        raise InputError(f"kernels in C need cffi; {install_command('native')}") from None
    ffi = FFI()
    ffi.cdef(_FOR_COMPILERS.sub("", HEADER.read_text(encoding="utf-8")))
    ffi.cdef("extern int32_t crosschip_kernel_version;")
    return ffi


@cache
def _c_string(text: str) -> Any:
    return declarations().new("char[]", text.encode())


@cache
def _open_library(library: Path) -> Any:
    ffi = declarations()
    try:
        lib = ffi.dlopen(str(library), ffi.RTLD_NOW | ffi.RTLD_LOCAL)
    except OSError as error:
        raise InputError(f"{library}: cannot be loaded: {error}; build it first") from None
    try:
        version = lib.crosschip_kernel_version
    except AttributeError:
        raise InputError(
            f"{library}: does not export crosschip_kernel_version; crosschip_kernel.h says how"
        ) from None
    if version != _VERSION:
        raise InputError(
            f"{library}: is made for version {version} of crosschip_kernel.h; this is version "
            f"{_VERSION}; compile it again"
        )
    return lib


@cache
def load_kernel(library: Path, name: str) -> Any:
    """Return a kernel of a library, which is opened once per process.

    Raises:
        InputError: the library cannot be loaded, has another version, or lacks the kernel.
    """
    lib = _open_library(library)
    declarations().cdef(f"int {name}(const crosschip_call *);", override=True)
    try:
        return getattr(lib, name)
    except AttributeError:
        raise InputError(f"{library}: does not export {name}") from None
