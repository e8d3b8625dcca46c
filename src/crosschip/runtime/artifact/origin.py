"""What a model was loaded from, and whether that is still the same."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence

import xxhash

from crosschip.ir.dataclass import dataclass
from crosschip.ir.files import open_regular
from crosschip.ir.reading import Reading, State, asked_again, state_of
from crosschip.ir.source_code import editable_code, state_of_code

_PIECE = 2**24
"""The most bytes that are hashed at once: the fewer pieces, the less it waits for other threads."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a model was loaded from.

    Attributes:
        seed: of the digests, so that nobody else makes a file that passes for another.
        files: the path of each file that was read, and the digest of its content (XXH3, 128 bits: a
            file is read at the speed of memory, and whoever may write to a model chooses what it
            answers anyway).
        answers: the other questions that the file system was asked, of which path, and the answers.
        code: the places of code outside installed distributions, and the states of that code.
    """

    seed: int
    files: tuple[tuple[str, str], ...]
    answers: tuple[tuple[str, str, str], ...]
    code: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, reading: Reading, modules: Iterable[str]) -> Origin | None:
        """Return the origin of what was read; `None` if a file has changed or is gone.

        Args:
            reading: the questions that were asked.
            modules: those whose code bears on what the model was compiled to.
        """
        seed = int.from_bytes(os.urandom(8))
        files = []
        for path, state in reading.files.items():
            current = _digest(path, seed)
            if current is None or current[1] != state:
                return None
            files.append((path, current[0]))
        answers = [(question, path, answer) for (question, path), answer in reading.answers.items()]
        return cls(seed, tuple(files), tuple(answers), tuple(editable_code(modules)))

    @property
    def is_same(self) -> bool:
        """Whether each file has the same bytes, and each question the same answer."""
        try:
            return (
                all(
                    asked_again(question, path) == answer for question, path, answer in self.answers
                )
                and all(_has_digest(path, digest, self.seed) for path, digest in self.files)
                and all(state_of_code(place) == state for place, state in self.code)
            )
        except OSError:
            return False


def source_name(source: object) -> Sequence[str] | None:
    """Return the key of a model's source by which its plan is found; `None` if it has none.

    A path is found again by where it leads to; what is there is compared afterwards. The content of
    a file is found by itself.
    """
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if isinstance(path, str) and "\0" not in path:
            return "path", os.path.abspath(path), os.path.realpath(path)
    if isinstance(source, bytes):
        return "content", hashlib.sha256(source).hexdigest()
    return None


def _has_digest(path: str, digest: str, seed: int) -> bool:
    current = _digest(path, seed)
    return current is not None and current[0] == digest


def _digest(path: str, seed: int) -> tuple[str, State] | None:
    """Return a file's digest and state; `None` if it does not exist, or changes meanwhile."""
    try:
        with open_regular(path) as file:
            state = state_of(file.fileno())
            digest = xxhash.xxh3_128(seed=seed)
            while piece := file.read(_PIECE):
                digest.update(piece)
            return (digest.hexdigest(), state) if state_of(file.fileno()) == state else None
    except OSError:
        return None
