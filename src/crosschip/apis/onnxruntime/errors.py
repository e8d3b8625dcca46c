"""ONNX Runtime's exceptions, and their counterparts among crosschip's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from crosschip import ir


class OnnxRuntimeError(Exception):
    """The common base of ONNX Runtime's exceptions, which share a form of message."""

    code: ClassVar[int]
    status: ClassVar[str]

    @classmethod
    def of(cls, message: object) -> OnnxRuntimeError:
        """Return an exception whose message has ONNX Runtime's form."""
        return cls(f"[ONNXRuntimeError] : {cls.code} : {cls.status} : {message}")


class Fail(OnnxRuntimeError):
    """An error without a more specific class."""

    code, status = 1, "FAIL"


class InvalidArgument(OnnxRuntimeError):
    """An argument, such as an input, does not fit the model."""

    code, status = 2, "INVALID_ARGUMENT"


class NoSuchFile(OnnxRuntimeError):
    """The model's file does not exist."""

    code, status = 3, "NO_SUCHFILE"


class NoModel(OnnxRuntimeError):
    """There is no model."""

    code, status = 4, "NO_MODEL"


class EngineError(OnnxRuntimeError):
    """An engine failed."""

    code, status = 5, "ENGINE_ERROR"


class RuntimeException(OnnxRuntimeError, RuntimeError):
    """A run failed."""

    code, status = 6, "RUNTIME_EXCEPTION"


class InvalidProtobuf(OnnxRuntimeError):
    """The file is not a model, or is damaged."""

    code, status = 7, "INVALID_PROTOBUF"


class ModelLoaded(OnnxRuntimeError):
    """A model has already been loaded."""

    code, status = 8, "MODEL_LOADED"


class NotImplemented(OnnxRuntimeError):  # ONNX Runtime's name
    """The model, or the call, needs something that does not exist here."""

    code, status = 9, "NOT_IMPLEMENTED"


class InvalidGraph(OnnxRuntimeError):
    """The model breaks a rule of ONNX."""

    code, status = 10, "INVALID_GRAPH"


class EPFail(OnnxRuntimeError, RuntimeError):
    """A device failed."""

    code, status = 11, "EP_FAIL"


class ModelLoadCanceled(OnnxRuntimeError):
    """Loading was cancelled."""

    code, status = 12, "MODEL_LOAD_CANCELED"


class ModelRequiresCompilation(OnnxRuntimeError):
    """The model has not been compiled, as the options demand."""

    code, status = 13, "MODEL_REQUIRES_COMPILATION"


class NotFound(OnnxRuntimeError):
    """There is no such object."""

    code, status = 14, "NOT_FOUND"


class DeviceReset(OnnxRuntimeError):
    """A device was reset."""

    code, status = 15, "DEVICE_RESET"


CLASSES = {cls.__name__: cls for cls in OnnxRuntimeError.__subclasses__()}

_COUNTERPARTS: tuple[tuple[type[ir.Error], type[OnnxRuntimeError]], ...] = (
    (ir.InputError, InvalidArgument),
    (ir.UnsupportedError, NotImplemented),
    (ir.BudgetError, Fail),
    (ir.ModelFileError, InvalidGraph),
    (ir.ModelError, InvalidGraph),
    (ir.DeviceError, EPFail),
)


@contextmanager
def as_onnxruntime() -> Iterator[None]:
    """Raise crosschip's errors as the exceptions of ONNX Runtime."""
    try:
        yield
    except ir.Error as error:
        raise translate(error) from error


def translate(error: ir.Error) -> OnnxRuntimeError:
    """Return ONNX Runtime's exception for one of crosschip's errors, with its message."""
    for kind, counterpart in _COUNTERPARTS:
        if isinstance(error, kind):
            return counterpart.of(error)
    return Fail.of(error)
