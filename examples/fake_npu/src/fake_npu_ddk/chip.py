"""The chip: memory, loaded programs, and a queue of runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np

from fake_npu_ddk import binary
from fake_npu_ddk.machine import Machine
from fake_npu_ddk.memory import Memory
from fake_npu_ddk.program import Program
from fake_npu_ddk.status import NpuError, Status
from fake_npu_ddk.tensors import Array, Tensor

MEMORY = 64 << 20
"""The bytes of memory that the chip has, unless it is opened with less."""


class Fence:
    """The end of a run."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._error: NpuError | None = None

    @property
    def passed(self) -> bool:
        """Tell whether the run has ended, well or not."""
        return self._ended.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the run has ended, at most `timeout` seconds; whether it has.

        Raises:
            NpuError: it failed.
        """
        ended = self._ended.wait(timeout)
        if ended and self._error is not None:
            raise self._error
        return ended

    def signal(self, error: NpuError | None = None) -> None:
        """Say that the run has ended; the chip does."""
        self._error = error
        self._ended.set()


@dataclass(frozen=True, slots=True)
class _Loaded:
    program: Program
    machine: Machine
    blocks: tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Run:
    """What to do; it keeps the memory that it needs, even where that is given back meanwhile."""

    machine: Machine
    inputs: Sequence[Array]
    outputs: Sequence[Array]
    fence: Fence


class Chip:
    """An open chip. Its functions may be called from several threads.

    Args:
        memory: the bytes that it has.
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self.memory = Memory(memory)
        self._programs: dict[int, _Loaded] = {}
        self._queue: SimpleQueue[_Run | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._worker = threading.Thread(target=self._work, name="fake-npu", daemon=True)
        self._worker.start()

    def load(self, saved: bytes) -> int:
        """Load a program into the chip's memory; its handle.

        Raises:
            NpuError: the bytes are no program, or there is no memory for it.
        """
        program = binary.read(saved)
        weights = self.memory.allocate(len(program.weights))
        try:
            arena = self.memory.allocate(program.arena)
        except NpuError:
            self.memory.release(weights)
            raise
        block = self.memory.block(weights)
        block[: len(program.weights)] = np.frombuffer(program.weights, np.uint8)
        machine = Machine(program, block, self.memory.block(arena))
        self._programs[arena] = _Loaded(program, machine, (weights, arena))
        return arena

    def unload(self, program: int) -> None:
        """Give back the memory of a program; no run of it may be under way."""
        for block in self._loaded(program).blocks:
            self.memory.release(block)
        del self._programs[program]

    def submit(self, program: int, inputs: Sequence[int], outputs: Sequence[int]) -> Fence:
        """Take on a run, behind those that were taken on before.

        Args:
            program: the handle of the program.
            inputs: the block of each input.
            outputs: the block of each output.

        Raises:
            NpuError: a handle is wrong, or the chip closed.
        """
        loaded = self._loaded(program)
        read = self._blocks(loaded.program.inputs, inputs)
        made = self._blocks(loaded.program.outputs, outputs)
        fence = Fence()
        with self._lock:
            if self._closed:
                raise NpuError(Status.CHIP_CLOSED)
            self._queue.put(_Run(loaded.machine, read, made, fence))
        return fence

    def close(self) -> None:
        """End, after the runs that were taken on."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._worker.join()

    def _loaded(self, program: int) -> _Loaded:
        loaded = self._programs.get(program)
        if loaded is None:
            raise NpuError(Status.INVALID_HANDLE, str(program))
        return loaded

    def _blocks(self, tensors: Sequence[Tensor], handles: Sequence[int]) -> list[Array]:
        if len(tensors) != len(handles):
            raise NpuError(
                Status.INVALID_ARGUMENT, f"{len(handles)} blocks for {len(tensors)} tensors"
            )
        blocks = [self.memory.block(handle) for handle in handles]
        for tensor, block in zip(tensors, blocks, strict=True):
            if tensor.size > len(block):
                raise NpuError(Status.INVALID_ARGUMENT, f"{tensor.size} bytes in {len(block)}")
        return blocks

    def _work(self) -> None:
        while (run := self._queue.get()) is not None:
            try:
                run.machine.run(run.inputs, run.outputs)
            except Exception as error:  # whatever it is, the next run is to come
                run.fence.signal(NpuError(Status.INTERNAL, str(error)))
            else:
                run.fence.signal()
            del run
