"""Sparse tensors in host memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosschip.apis.onnxruntime.enumerations import OrtSparseFormat
from crosschip.apis.onnxruntime.errors import Fail
from crosschip.apis.onnxruntime.types import name_of_array
from crosschip.apis.onnxruntime.values import CPU, OrtDevice, require_processor
from crosschip.ir import Array


@dataclass(frozen=True)
class SparseCooView:
    """Coordinates: one index into the flattened tensor, or one per axis, for each value."""

    _indices: Array

    def indices(self) -> Array:
        """Return the indices, read-only."""
        return _read_only(self._indices)


@dataclass(frozen=True)
class SparseCsrView:
    """Compressed rows."""

    _inner: Array
    _outer: Array

    def inner(self) -> Array:
        """Return the column of each value."""
        return _read_only(self._inner)

    def outer(self) -> Array:
        """Return the position of the first value of each row, and the number of values."""
        return _read_only(self._outer)


class SparseTensor:
    """A sparse tensor, which no model of crosschip takes as an input.

    Args:
        shape: the shape of the dense tensor.
        values: the values.
        format: the form of the indices.
        indices: the arrays of indices, by name.
    """

    def __init__(
        self,
        shape: Sequence[int],
        values: Array,
        format: OrtSparseFormat,
        indices: Mapping[str, Array],
    ) -> None:
        self._shape, self._values = list(shape), values
        self._format, self._indices = format, dict(indices)

    @classmethod
    def sparse_coo_from_numpy(
        cls, dense_shape: Sequence[int], values: Array, coo_indices: Array, ort_device: OrtDevice
    ) -> SparseTensor:
        """Return a tensor from values and their coordinates."""
        require_processor(ort_device.device_type())
        indices = {"indices": coo_indices}
        return cls(dense_shape, values, OrtSparseFormat.ORT_SPARSE_COO, indices)

    @classmethod
    def sparse_csr_from_numpy(
        cls,
        dense_shape: Sequence[int],
        values: Array,
        inner_indices: Array,
        outer_indices: Array,
        ort_device: OrtDevice,
    ) -> SparseTensor:
        """Return a matrix from values, their columns, and the positions of the rows."""
        require_processor(ort_device.device_type())
        indices = {"inner": inner_indices, "outer": outer_indices}
        return cls(dense_shape, values, OrtSparseFormat.ORT_SPARSE_CSRC, indices)

    def values(self) -> Array:
        """Return the values, read-only."""
        return _read_only(self._values)

    def as_coo_view(self) -> SparseCooView:
        """Return the coordinates.

        Raises:
            Fail: the tensor has another form.
        """
        self._require(OrtSparseFormat.ORT_SPARSE_COO)
        return SparseCooView(self._indices["indices"])

    def as_csrc_view(self) -> SparseCsrView:
        """Return the compressed rows.

        Raises:
            Fail: the tensor has another form.
        """
        self._require(OrtSparseFormat.ORT_SPARSE_CSRC)
        return SparseCsrView(self._indices["inner"], self._indices["outer"])

    def to_cuda(self, ort_device: OrtDevice) -> SparseTensor:
        """Raise: tensors are in host memory.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("to_cuda: crosschip keeps sparse tensors in host memory")

    def format(self) -> OrtSparseFormat:
        """Return the form of the indices."""
        return self._format

    def dense_shape(self) -> list[int]:
        """Return the shape of the dense tensor."""
        return list(self._shape)

    def data_type(self) -> str:
        """Return the name of the type, such as `sparse_tensor(float)`."""
        return f"sparse_{name_of_array(self._values)}"

    def device_name(self) -> str:
        """Return the name of the memory's device."""
        return CPU

    def _require(self, format: OrtSparseFormat) -> None:
        if self._format is not format:
            raise Fail.of(f"the sparse tensor is {self._format}, not {format}")


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view
