"""What a model was loaded from, and whether that is still the same."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Thread

from crosschip.ir.dataclass import dataclass
from crosschip.ir.files import open_regular
from crosschip.ir.reading import Reading, State, asked_again, state_of
from crosschip.runtime.plans.code import state_of_code, worked_on

_PIECE = 2**24
"""The most bytes that are hashed at once: the fewer pieces, the less it waits for other threads."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a model was loaded from.

    Attributes:
        files: the path of each file that was read, and the SHA-256 of its content.
        answers: the other questions that the file system was asked, of which path, and the answers.
        code: the folders of packages that are being worked on, and the states of their code.
    """

    files: tuple[tuple[str, str], ...]
    answers: tuple[tuple[str, str, str], ...]
    code: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, reading: Reading, modules: Iterable[str]) -> Origin | None:
        """What was read; `None` if a file has changed meanwhile, or is gone.

        Args:
            reading: the questions that were asked.
            modules: those whose code bears on what the model was compiled to.
        """
        files = []
        for path, state in reading.files.items():
            found = _digest(path)
            if found is None or found[1] != state:
                return None
            files.append((str(path), found[0]))
        answers = [
            (question, str(path), answer) for (question, path), answer in reading.answers.items()
        ]
        return cls(tuple(files), tuple(answers), tuple(worked_on(modules)))

    @property
    def is_same(self) -> bool:
        """Tell whether each file has the same bytes, and each answer is the same."""
        try:
            return (
                all(
                    asked_again(question, Path(path)) == answer
                    for question, path, answer in self.answers
                )
                and all(_has(path, digest) for path, digest in self.files)
                and all(state_of_code(Path(folder)) == state for folder, state in self.code)
            )
        except OSError:
            return False

    def compared(self) -> Comparison:
        """`is_same`, found out by another thread while this one goes on."""
        comparison = Comparison(self)
        comparison.start()
        return comparison


class Comparison(Thread):
    """A thread that finds out whether what a model was loaded from is the same.

    A future would do, but importing those takes longer than to load a small model.
    """

    def __init__(self, origin: Origin) -> None:
        super().__init__(name="crosschip plan", daemon=True)
        self._origin = origin
        self._same = False
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._same = self._origin.is_same
        except BaseException as error:  # whoever waits is to hear of it
            self._error = error

    def result(self) -> bool:
        """What was found out, once it has been."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._same


def name_of(source: object) -> Sequence[str] | None:
    """What a plan is found by, of what a model is loaded from; `None` if of nothing.

    A path is found again by where it leads to; what is there is compared afterwards. The content
    of a file is found by itself.
    """
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if isinstance(path, str) and "\0" not in path:
            return "path", os.path.abspath(path), os.path.realpath(path)
    if isinstance(source, bytes):
        return "content", hashlib.sha256(source).hexdigest()
    return None


def _has(path: str, digest: str) -> bool:
    found = _digest(Path(path))
    return found is not None and found[0] == digest


def _digest(path: Path) -> tuple[str, State] | None:
    """SHA-256 of a file, and its state; `None` if it is not there, or changes meanwhile."""
    try:
        with open_regular(path) as file:
            state = state_of(file.fileno())
            digest = hashlib.sha256()
            piece = bytearray(min(_PIECE, os.fstat(file.fileno()).st_size + 1))
            view = memoryview(piece)
            while count := file.readinto(piece):
                digest.update(view[:count])
            return (digest.hexdigest(), state) if state_of(file.fileno()) == state else None
    except OSError:
        return None
