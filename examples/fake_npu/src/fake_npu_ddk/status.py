"""What can go wrong, by code: every failure of the DDK is one of these."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """The outcome of a call."""

    SUCCESS = 0
    INVALID_ARGUMENT = 1
    INVALID_HANDLE = 2
    UNSUPPORTED_OPERATOR = 3
    UNSUPPORTED_TYPE = 4
    UNSUPPORTED_SHAPE = 5
    UNSUPPORTED_SETTING = 6
    PROGRAM_TOO_LARGE = 7
    OUT_OF_MEMORY = 8
    DAMAGED_PROGRAM = 9
    WRONG_VERSION = 10
    CHIP_CLOSED = 11
    INTERNAL = 12


_TEXTS = {
    Status.SUCCESS: "success",
    Status.INVALID_ARGUMENT: "an argument is invalid",
    Status.INVALID_HANDLE: "there is no memory, or no program, of this handle",
    Status.UNSUPPORTED_OPERATOR: "the chip does not have the operator",
    Status.UNSUPPORTED_TYPE: "the operator does not take tensors of this type",
    Status.UNSUPPORTED_SHAPE: "the operator does not take tensors of this shape",
    Status.UNSUPPORTED_SETTING: "the operator does not take this setting",
    Status.PROGRAM_TOO_LARGE: "the program does not fit the chip's memory",
    Status.OUT_OF_MEMORY: "the chip's memory is full",
    Status.DAMAGED_PROGRAM: "the bytes are no program, or a damaged one",
    Status.WRONG_VERSION: "the program is of another version of the compiler",
    Status.CHIP_CLOSED: "the chip has been closed",
    Status.INTERNAL: "the chip failed",
}


def text(status: Status) -> str:
    """The sentence for a code."""
    return _TEXTS[status]


class NpuError(Exception):
    """A call failed.

    Attributes:
        status: the code.
        detail: what exactly was wrong; empty if the code says it all.
    """

    def __init__(self, status: Status, detail: str = "") -> None:
        sentence = f"{text(status)}: {detail}" if detail else text(status)
        super().__init__(f"error {status.value}, {sentence}")
        self.status = status
        self.detail = detail or text(status)
