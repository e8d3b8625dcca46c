"""Compilers' answers about parts of models, stored in the cache folder.

There is a file per compiler and version, `answers/NAME.jsonl`, with a line per answer:
`["fingerprint", "reason"]`; the reason is empty for parts that the compiler accepts. Lines are only
appended, so that several processes may write; malformed lines are ignored. The files can be deleted
without loss, and are written only to a folder that only the user can write to.
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

_MAX_BYTES = 16 * 2**20
_MAX_REASON = 500


class Answers:
    """Refusal reasons by fingerprint; empty for accepted parts.

    Args:
        name: the compiler's name, with its version and all other facts that answers depend on.
    """

    def __init__(self, name: str) -> None:
        safe = re.sub(r"[^A-Za-z0-9._-]+", "_", name)
        self._path = Path(cache_folder()) / "answers" / f"{safe}.jsonl"
        self._reasons: dict[str, str] = {}
        with suppress(OSError):
            if _is_private(self._path.parent):
                with open_regular(self._path, follow=False) as file:
                    content = file.read(_MAX_BYTES + 1)
                lines = content.splitlines() if len(content) <= _MAX_BYTES else []
                for line in lines:
                    with suppress(ValueError, TypeError, RecursionError):
                        key, reason = json.loads(line)
                        if isinstance(key, str) and isinstance(reason, str):
                            self._reasons[key] = reason

    def get(self, fingerprint: str) -> str | None:
        """Return the refusal reason, empty if accepted; `None` if there is no answer yet."""
        return self._reasons.get(fingerprint)

    def learn(self, fingerprint: str, reason: str) -> str:
        """Add an answer; if the folder cannot be written to, for this process only.

        Returns:
            The stored reason, which may be truncated.
        """
        reason = self._reasons.setdefault(fingerprint, reason[:_MAX_REASON])
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_private(self._path.parent):
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
                with open(open_own(self._path, flags), "ab", buffering=0) as file:
                    file.write(f"{json.dumps([fingerprint, reason])}\n".encode())
        return reason


def _is_private(folder: Path) -> bool:
    """Return whether only the user can write to a folder."""
    status = folder.stat()
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
