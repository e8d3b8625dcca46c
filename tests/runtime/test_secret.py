"""The user's secret: made once, of the user alone, and never guessed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.modelling import at_once

from crosschip.ir import CacheError
from crosschip.runtime.cache.secret import SIZE, secret, secret_file


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place that the secret belongs in; nothing is there."""
    place = tmp_path / "data" / "crosschip" / "cache.secret"
    monkeypatch.setenv("CROSSCHIP_CACHE_SECRET", str(place))
    return place


def test_it_is_made_once_for_the_user_alone(path: Path) -> None:
    made = secret()
    assert made == secret() == path.read_bytes()
    assert len(made) == SIZE
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o077 == 0
    assert list(path.parent.iterdir()) == [path]


def test_two_are_never_the_same(path: Path) -> None:
    first = secret()
    path.unlink()
    assert secret() != first


MAKING = """
import sys
from crosschip.runtime.cache.secret import secret
sys.stdin.readline()
print(secret().hex())
"""


@pytest.mark.slow
def test_eight_processes_make_one(path: Path) -> None:
    assert len(set(at_once(MAKING))) == 1
    assert secret().hex() + "\n" in at_once(MAKING, count=1)
    assert list(path.parent.iterdir()) == [path]


def test_it_lies_in_the_users_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CROSSCHIP_CACHE_SECRET", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert Path(secret_file()).parent.name == "crosschip"
    assert Path(secret_file()).name == "cache.secret"


def test_a_link_to_it_is_followed(path: Path, tmp_path: Path) -> None:
    """Mounted secrets are links."""
    made = secret()
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert secret() == made


def _holding(content: bytes, mode: int = 0o600) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        path.write_bytes(content)
        path.chmod(mode)

    return make


UNUSABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (_holding(b""), "does not hold exactly 32 bytes; remove it"),
    "short": (_holding(bytes(31)), "does not hold exactly 32 bytes"),
    "long": (_holding(bytes(33)), "does not hold exactly 32 bytes"),
    "readable by all": (_holding(bytes(32), 0o644), "is open to other users"),
    "readable by a group": (_holding(bytes(32), 0o640), "is open to other users"),
    "writable by all": (_holding(bytes(32), 0o602), "is open to other users"),
    "a pipe": (os.mkfifo, "is not a regular file"),
    "a folder": (Path.mkdir, "is not a regular file"),
    "a link to itself": (lambda path: path.symlink_to(path), "symbolic links"),
    "a link to a device": (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_what_is_no_secret_is_refused(path: Path, kind: str) -> None:
    make, message = UNUSABLE[kind]
    path.parent.mkdir(parents=True)
    make(path)
    with pytest.raises(CacheError, match=re.escape(message)) as caught:
        secret()
    assert str(path) in str(caught.value)


def test_the_secret_of_another_user_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret()
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(CacheError, match=r"belongs to another user; set CROSSCHIP_CACHE_SECRET"):
        secret()


@pytest.mark.parametrize("place", ["/dev/null/cache.secret", "/proc/cache.secret"])
def test_a_secret_that_cannot_be_made_is_refused(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSCHIP_CACHE_SECRET", place)
    with pytest.raises(CacheError, match=r"cannot be made or read .*cache=False"):
        secret()
