"""The answers of compilers, which take or refuse parts of models, kept in the cache folder.

A file a compiler and version, `answers/NAME.jsonl`; a line an answer: `["fingerprint", "why not"]`,
where nothing speaks against it an empty reason. Lines are only appended, so that any number of
processes may write; one that is no answer is passed over. It holds nothing that cannot be learned
again, and is written only to a folder that is the user's alone.
"""

from __future__ import annotations

import json
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from crosschip.hal.folders import cache_folder
from crosschip.ir.files import open_own, open_regular

_MOST_BYTES = 16 * 2**20
_LONGEST = 500


class Answers:
    """Reasons for refusals by fingerprint; empty where there is none.

    Args:
        name: the compiler's, with its version and all else that its answers depend on.
    """

    def __init__(self, name: str) -> None:
        safe = re.sub(r"[^A-Za-z0-9._-]+", "_", name)
        self._path = Path(cache_folder()) / "answers" / f"{safe}.jsonl"
        self._known: dict[str, str] = {}
        with suppress(OSError):
            if _is_ours(self._path.parent):
                with open_regular(self._path, follow=False) as file:
                    content = file.read(_MOST_BYTES + 1)
                lines = content.splitlines() if len(content) <= _MOST_BYTES else []
                for line in lines:
                    with suppress(ValueError, TypeError, RecursionError):
                        key, why = json.loads(line)
                        if isinstance(key, str) and isinstance(why, str):
                            self._known[key] = why

    def get(self, fingerprint: str) -> str | None:
        """The reason why something is refused, empty if it is not; `None` if nobody asked yet."""
        return self._known.get(fingerprint)

    def learn(self, fingerprint: str, why: str) -> str:
        """Add an answer; where the folder cannot be written to, for this process alone.

        Returns:
            The answer as it is from now on: a long one is cut off.
        """
        why = self._known.setdefault(fingerprint, why[:_LONGEST])
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_ours(self._path.parent):
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
                with open(open_own(self._path, flags), "ab", buffering=0) as file:
                    file.write(f"{json.dumps([fingerprint, why])}\n".encode())
        return why


def _is_ours(folder: Path) -> bool:
    """Tell whether nobody else can write to a folder."""
    status = folder.stat()
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
