"""The origin of a model: the files it was loaded from, and whether they are unchanged."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence

import xxhash

from crosschip.ir.dataclass import dataclass
from crosschip.ir.file_queries import Reading, State, repeat_query, state_of
from crosschip.ir.files import open_regular
from crosschip.ir.source_code import editable_code, state_of_code

_PIECE = 2**24
"""The number of bytes that are hashed at once; large, since each piece needs Python's lock."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The files and code that a model was loaded from.

    Attributes:
        seed: the random seed of the digests, against constructed collisions.
        files: the path of each file that was read, and the digest of its content (XXH3, 128 bits,
            which runs at the speed of memory; whoever can write to a model controls it anyway).
        answers: the other queries to the file system: the query, the path and the answer.
        code: the locations of code outside installed distributions, and the states of that code.
    """

    seed: int
    files: tuple[tuple[str, str], ...]
    answers: tuple[tuple[str, str, str], ...]
    code: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, reading: Reading, modules: Iterable[str]) -> Origin | None:
        """Return the origin of the recorded files; `None` if one has changed or is gone.

        Args:
            reading: the record of what was read.
            modules: the modules whose code affects the result of compiling.
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
        """Whether all files have the same bytes, and all queries the same answers."""
        try:
            return (
                all(
                    repeat_query(question, path) == answer
                    for question, path, answer in self.answers
                )
                and all(_has_digest(path, digest, self.seed) for path, digest in self.files)
                and all(state_of_code(location) == state for location, state in self.code)
            )
        except OSError:
            return False


def source_name(source: object) -> Sequence[str] | None:
    """Return the source's part of a plan's key: the path, or a digest of the content.

    `None` if the source is neither, so that it has no plan.
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
    """Return a file's digest and state; `None` if it does not exist, or changes during the read."""
    try:
        with open_regular(path) as file:
            state = state_of(file.fileno())
            digest = xxhash.xxh3_128(seed=seed)
            while piece := file.read(_PIECE):
                digest.update(piece)
            return (digest.hexdigest(), state) if state_of(file.fileno()) == state else None
    except OSError:
        return None
