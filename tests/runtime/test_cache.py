"""The cache's folder: whose programs are used, what is kept, and what goes first."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import at_once, python_path

from crosschip.hal.folders import cache_folder
from crosschip.ir import CacheError, InputError
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.folder import (
    DEFAULT_LIMIT,
    SUFFIX,
    Cache,
    default_limit,
)
from crosschip.runtime.cache.secret import secret, secret_file
from crosschip.runtime.cache.store import open_store

ENTRY = Entry("0" * 64, "npu", "1.0", "model.0", 3)
PROGRAM = bytes(range(256)) * 3


class Warnings(logging.Handler):
    """Keeps the messages of the cache's logger."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []
        self._logger = logging.getLogger("crosschip.cache")

    def emit(self, record: logging.LogRecord) -> None:
        assert record.levelno == logging.WARNING
        self.messages.append(record.getMessage())

    def __enter__(self) -> list[str]:
        self._logger.addHandler(self)
        self._logger.propagate = False
        return self.messages

    def __exit__(self, *_: object) -> None:
        self._logger.propagate = True
        self._logger.removeHandler(self)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def file_of(cache: Cache, entry: Entry = ENTRY) -> Path:
    return cache.folder / f"{entry.key}{SUFFIX}"


def entries_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(f"*{SUFFIX}"))


def unfinished_in(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / ".unfinished").glob("*"))


@given(st.lists(st.binary(max_size=200), min_size=1))
def test_the_last_that_was_written_is_read(programs: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder, Warnings() as warnings:
        cache = Cache(Path(folder))
        assert cache.read(ENTRY) is None
        for program in programs:
            cache.write(ENTRY, program)
            assert cache.read(ENTRY) == program
        assert warnings == []
        assert entries_in(cache.folder) == [f"{ENTRY.key}{SUFFIX}"]
        assert unfinished_in(cache.folder) == []


def test_what_does_not_authenticate_is_not_used(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry that is right in everything but its author is worth a warning, and is gone."""
    with monkeypatch.context() as patch:
        patch.setenv("CROSSCHIP_CACHE_SECRET", str(tmp_path / "another"))
        Cache(cache.folder).write(ENTRY, PROGRAM)
    with Warnings() as warnings:
        assert cache.read(ENTRY) is None
    (warning,) = warnings
    assert str(file_of(cache)) in warning
    assert warning.endswith("was written with another secret than yours; compiling again")
    assert entries_in(cache.folder) == []


def test_who_has_the_secret_shares_the_entries(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write(ENTRY, PROGRAM)
    copy = tmp_path / "copy"
    copy.write_bytes(Path(os.environ["CROSSCHIP_CACHE_SECRET"]).read_bytes())
    copy.chmod(0o600)
    monkeypatch.setenv("CROSSCHIP_CACHE_SECRET", str(copy))
    assert Cache(cache.folder).read(ENTRY) == PROGRAM


@pytest.mark.parametrize("damage", [b"", b"nonsense", bytes(500)])
def test_a_damaged_entry_is_a_warning_and_gone(cache: Cache, damage: bytes) -> None:
    file_of(cache).write_bytes(damage)
    with Warnings() as warnings:
        assert cache.read(ENTRY) is None
    (warning,) = warnings
    assert str(file_of(cache)) in warning
    assert warning.endswith("; compiling again")
    assert entries_in(cache.folder) == []


def test_a_pipe_in_the_place_of_an_entry_is_no_problem(cache: Cache) -> None:
    os.mkfifo(file_of(cache))
    with Warnings() as warnings:
        assert [listed.problem for listed in cache.listing()] == [
            "cannot be read (is not a regular file)"
        ]
        assert cache.read(ENTRY) is None
        cache.write(ENTRY, PROGRAM)
        assert cache.read(ENTRY) == PROGRAM
    assert len(warnings) == 1


def test_a_link_in_the_place_of_an_entry_is_not_followed(cache: Cache, tmp_path: Path) -> None:
    cache.write(ENTRY, PROGRAM)
    file_of(cache).rename(tmp_path / "elsewhere")
    file_of(cache).symlink_to(tmp_path / "elsewhere")
    with Warnings() as warnings:
        assert cache.read(ENTRY) is None
        cache.write(ENTRY, b"another")
    assert len(warnings) == 1
    assert cache.read(ENTRY) == b"another"
    assert (tmp_path / "elsewhere").read_bytes().endswith(PROGRAM)


def test_an_entry_under_the_name_of_another_is_not_used(cache: Cache) -> None:
    """Not even if the user wrote it; what its model is called cannot garble the warning."""
    other = replace(ENTRY, key="1" * 64, model="\ud800\x1b[31m")
    cache.write(other, PROGRAM)
    file_of(cache, other).rename(file_of(cache))
    with Warnings() as warnings:
        assert cache.read(ENTRY) is None
    (warning,) = warnings
    assert r"is for another model (\ud800\x1b[31m); compiling again" in warning


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"device_version": "2.0"}, "was made by npu 1.0, not npu 2.0"),
        ({"device": "gpu"}, "was made by npu 1.0, not gpu 1.0"),
    ],
)
def test_an_entry_of_another_device_is_refused(
    cache: Cache, change: dict[str, str], message: str
) -> None:
    cache.write(ENTRY, PROGRAM)
    with Warnings() as warnings:
        assert cache.read(replace(ENTRY, **change)) is None  # type: ignore[arg-type]  # all strings
    assert len(warnings) == 1
    assert message in warnings[0]


def test_the_name_of_the_model_is_only_for_people(cache: Cache) -> None:
    cache.write(ENTRY, PROGRAM)
    assert cache.read(replace(ENTRY, model="renamed", operations=99)) == PROGRAM


def test_a_folder_in_the_place_of_an_entry_is_no_problem(cache: Cache) -> None:
    file_of(cache).mkdir()
    with Warnings() as warnings:
        assert cache.read(ENTRY) is None
        cache.write(ENTRY, PROGRAM)
    assert len(warnings) == 2
    assert [listed.entry for listed in cache.listing()] == [None]
    assert cache.prune(0) == 0


def test_discarding_says_why(cache: Cache) -> None:
    cache.write(ENTRY, PROGRAM)
    with Warnings() as warnings:
        cache.discard(ENTRY, "the device does not like it")
        cache.discard(ENTRY, "nor its absence")
    assert "the device does not like it; compiling again" in warnings[0]
    assert not file_of(cache).exists()


def test_a_failed_write_leaves_nothing_behind(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with Warnings() as warnings:
        cache.write(ENTRY, PROGRAM)
    assert len(warnings) == 1
    assert "could not be written (No space left on device)" in warnings[0]
    assert entries_in(cache.folder) == unfinished_in(cache.folder) == []


def test_an_interrupted_write_leaves_nothing_behind(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(source: str, target: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cache.write(ENTRY, PROGRAM)
    assert entries_in(cache.folder) == unfinished_in(cache.folder) == []


def test_a_vanished_folder_is_worth_a_warning(cache: Cache) -> None:
    cache.folder.rmdir()
    with Warnings() as warnings:
        assert cache.read(ENTRY) is None
        cache.write(ENTRY, PROGRAM)
    assert len(warnings) == 1
    assert "could not be written" in warnings[0]


UNUSABLE: dict[str, Callable[[Path], Path]] = {
    "below a file": lambda file: file / "cache",
    "a file": lambda file: file,
    "far below a file": lambda file: file / "a" / "b",
    "a name that is too long": lambda file: file.parent / ("x" * 300),
}


@pytest.mark.parametrize("place", UNUSABLE)
def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("something")
    folder = UNUSABLE[place](tmp_path / "file")
    with pytest.raises(CacheError, match=r"cannot be written to .*; pass another folder") as caught:
        Cache(folder)
    assert str(folder) in str(caught.value)
    assert (tmp_path / "file").read_text() == "something"


@pytest.fixture
def filled(cache: Cache) -> list[Entry]:
    """Four entries of 1,000 bytes and some more each, the first used longest ago."""
    entries = [replace(ENTRY, key=f"{i:064}", model=f"model{i}") for i in range(4)]
    for i, entry in enumerate(entries):
        cache.write(entry, bytes(1000))
        os.utime(file_of(cache, entry), (1000 + i, 1000 + i))
    return entries


def test_a_listing_has_the_latest_first(cache: Cache, filled: list[Entry]) -> None:
    listing = cache.listing()
    assert [listed.entry for listed in listing] == filled[::-1]
    for listed in listing:
        assert listed.size == os.stat(listed.path).st_size > 1000
        assert listed.problem == ""
    assert [listed.used for listed in listing] == [1003, 1002, 1001, 1000]


def test_reading_makes_an_entry_the_latest(cache: Cache, filled: list[Entry]) -> None:
    assert cache.read(filled[0]) == bytes(1000)
    assert cache.listing()[0].entry == filled[0]


def test_a_listing_shows_damage_and_leaves_it(cache: Cache, filled: list[Entry]) -> None:
    file_of(cache, filled[1]).write_bytes(b"nonsense")
    (listed,) = (listed for listed in cache.listing() if listed.problem)
    assert listed.entry is None
    assert listed.problem == "is no file that crosschip has saved"
    assert file_of(cache, filled[1]).exists()


def test_pruning_removes_damage_and_the_oldest(cache: Cache, filled: list[Entry]) -> None:
    size = file_of(cache, filled[3]).stat().st_size
    file_of(cache, filled[3]).write_bytes(bytes(100_000))
    (cache.folder / "notes.txt").write_text("not ours")
    assert cache.prune(2 * size) == 2
    assert [listed.entry for listed in cache.listing()] == [filled[2], filled[1]]
    assert cache.prune(2 * size) == 0
    assert cache.prune(0) == 2
    assert entries_in(cache.folder) == []
    assert (cache.folder / "notes.txt").read_text() == "not ours"


def test_pruning_to_any_size_keeps_what_fits(cache: Cache, filled: list[Entry]) -> None:
    assert cache.prune(2**40) == 0
    assert len(cache.listing()) == 4


def test_only_what_has_the_name_of_an_entry_is_ours(cache: Cache, filled: list[Entry]) -> None:
    others = ["notes.chip", f"{1:063}.chip", f"{1:064}.chip.bak", f"{'G':0>64}.chip", "x.part"]
    for name in others:
        (cache.folder / name).write_bytes(bytes(5000))
    (cache.folder / ".unfinished" / "notes.txt").touch()
    os.utime(cache.folder / ".unfinished" / "notes.txt", (0, 0))
    assert len(cache.listing()) == 4
    assert cache.prune(0) == 4
    Cache(cache.folder, limit=0).write(ENTRY, PROGRAM)
    Cache(cache.folder, limit=2000).write(ENTRY, PROGRAM)
    assert {path.name for path in cache.folder.iterdir()} >= set(others)
    assert unfinished_in(cache.folder) == ["notes.txt"]


def total_of(cache: Cache) -> int:
    return sum(path.stat().st_size for path in cache.folder.glob(f"*{SUFFIX}"))


def numbered(number: int) -> Entry:
    return replace(ENTRY, key=f"{number:064}")


@given(
    limit=st.integers(2_000, 1_000_000),
    sizes=st.lists(st.integers(0, 200_000), max_size=20),
    repeat=st.booleans(),
)
def test_the_limit_is_kept(limit: int, sizes: list[int], repeat: bool) -> None:
    """After every write, by whichever of two processes; what was written is there if it fits."""
    with tempfile.TemporaryDirectory() as folder, Warnings() as warnings:
        caches = [Cache(Path(folder), limit), Cache(Path(folder), limit)]
        for number, size in enumerate(sizes):
            entry = numbered(number % 3 if repeat else number)
            told = len(warnings)
            caches[number % 2].write(entry, bytes(size))
            assert total_of(caches[0]) <= limit
            if len(warnings) == told:
                assert caches[0].read(entry) == bytes(size)
            else:
                assert size + 1_000 > limit


def test_the_least_recently_used_go_first(cache: Cache, filled: list[Entry]) -> None:
    assert cache.read(filled[0]) is not None
    size = file_of(cache, filled[0]).stat().st_size
    small = Cache(cache.folder, limit=4 * size)
    small.write(ENTRY, bytes(1000))
    kept = {listed.entry.key for listed in small.listing() if listed.entry}
    assert ENTRY.key in kept
    assert filled[0].key in kept
    assert filled[1].key not in kept


def test_far_from_the_limit_entries_are_not_looked_at(
    cache: Cache, filled: list[Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[object] = []
    real = os.scandir

    def scandir(folder: Any) -> Any:
        listed.append(folder)
        return real(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    for number in range(20):
        Cache(cache.folder).write(numbered(number), PROGRAM)
    assert set(listed) == {str(cache.folder / ".unfinished")}


def test_a_folder_without_a_ledger_is_counted_anew(cache: Cache, filled: list[Entry]) -> None:
    (cache.folder / ".ledger").unlink()
    small = Cache(cache.folder, limit=3 * file_of(cache, filled[0]).stat().st_size)
    small.write(ENTRY, bytes(1000))
    assert total_of(small) <= small.limit


def test_a_program_beyond_the_limit_is_not_kept(cache: Cache, filled: list[Entry]) -> None:
    small = Cache(cache.folder, limit=3_000_000)
    with Warnings() as warnings:
        small.write(ENTRY, bytes(3_000_000))
    (warning,) = warnings
    assert "not kept, as it takes 2.9 MB of the 2.9 MB" in warning
    assert "CROSSCHIP_CACHE_SIZE" in warning
    assert len(small.listing()) == 4


def begin(cache: Cache, name: str, size: int) -> BinaryIO:
    """A file that is being written, as long as it is open."""
    folder = cache.folder / ".unfinished"
    folder.mkdir(exist_ok=True)
    file = (folder / f".{name}.part").open("wb")
    fcntl.flock(file, fcntl.LOCK_EX)
    file.write(bytes(size))
    file.flush()
    return file


@pytest.mark.parametrize(
    "clean",
    [lambda c: c.write(ENTRY, PROGRAM), lambda c: c.prune(2**40), lambda c: Cache(c.folder)],
)
def test_what_killed_writers_left_is_removed(
    cache: Cache, clean: Callable[[Cache], object]
) -> None:
    """At once, and whoever still writes is left alone."""
    begin(cache, "killed", 1000).close()
    with begin(cache, "writing", 100):
        assert cache.unfinished_nbytes() == 1100
        clean(cache)
        assert unfinished_in(cache.folder) == [".writing.part"]
        assert cache.unfinished_nbytes() == 100


def test_what_is_being_written_counts_toward_the_limit(cache: Cache) -> None:
    with begin(cache, "writing", 3_000):
        small = Cache(cache.folder, limit=5_000)
        for number in range(5):
            small.write(numbered(number), bytes(500))
        assert 0 < total_of(small) <= 2_000


def test_what_is_no_file_among_unfinished_ones_is_no_problem(cache: Cache) -> None:
    folder = cache.folder / ".unfinished"
    (folder / "a.part").mkdir(parents=True)
    os.mkfifo(folder / "pipe.part")
    (folder / "link.part").symlink_to("/etc/passwd")
    Cache(cache.folder).write(ENTRY, PROGRAM)
    assert cache.read(ENTRY) == PROGRAM
    assert Path("/etc/passwd").exists()


FILLING = """
import sys
from pathlib import Path
from crosschip.runtime.cache.folder import Cache
from crosschip.runtime.cache.entry import Entry

sys.stdin.readline()
folder, limit = Path(sys.argv[1]), int(sys.argv[2])
for index in range(100):
    entry = Entry(f"{index * 7919 % 23:064}", "npu", "1.0", "model", 1)
    program = bytes([index * 7919 % 23]) * 10_000
    cache = Cache(folder, limit)
    assert cache.read(entry) in (None, program)
    cache.write(entry, program)
"""


@pytest.mark.slow
def test_eight_processes_keep_the_limit(cache: Cache) -> None:
    """Nobody reads a wrong program, nothing is left over, and together they hardly pass it."""
    limit, entry = 120_000, 10_500
    at_once(FILLING, str(cache.folder), str(limit))
    assert 0 < total_of(cache) <= limit + 8 * entry
    assert unfinished_in(cache.folder) == []
    assert {listed.problem for listed in cache.listing()} == {""}
    Cache(cache.folder, limit).write(ENTRY, PROGRAM)
    assert total_of(cache) <= limit


WRITING = """
import sys
from pathlib import Path
from crosschip.runtime.cache.folder import Cache
from crosschip.runtime.cache.entry import Entry

print("ready", flush=True)
while True:
    Cache(Path(sys.argv[1])).write(Entry("0" * 64, "npu", "1.0", "model", 1), bytes(20_000_000))
"""


def test_a_writer_that_is_killed_leaves_no_half_of_an_entry(cache: Cache) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITING, str(cache.folder)],
        env={**os.environ, "PYTHONPATH": python_path()},
        stdout=subprocess.PIPE,
    )
    assert writer.stdout is not None
    writer.stdout.readline()
    while not unfinished_in(cache.folder):
        assert writer.poll() is None
    writer.kill()
    writer.communicate()
    with Warnings() as warnings:
        assert cache.read(ENTRY) in (None, bytes(20_000_000))
        cache.write(ENTRY, PROGRAM)
        assert cache.read(ENTRY) == PROGRAM
    assert warnings == []
    assert unfinished_in(cache.folder) == []


@contextmanager
def another_user() -> Iterator[Path]:
    """A folder of an ordinary user, and that user's rights and secret, whoever runs the tests."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        patch.setenv("CROSSCHIP_CACHE_SECRET", str(folder / "cache.secret"))
        privileged = os.geteuid() == 0
        if privileged:
            os.chown(folder, 65534, 65534)
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if privileged:
                os.seteuid(0)


def test_a_warm_folder_that_is_only_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with another_user() as home, Warnings() as warnings:
        folder = home / "cache"
        Cache(folder).write(ENTRY, PROGRAM)
        damaged = file_of(Cache(folder), numbered(2))
        damaged.write_bytes(b"nonsense")
        before = sorted(path.stat().st_mtime_ns for path in folder.rglob("*"))
        folder.chmod(0o555)
        try:
            for _ in range(2):
                cache = Cache(folder)
                assert cache.read(ENTRY) == PROGRAM
                assert warnings == []
            for _ in range(2):
                Cache(folder).write(numbered(1), PROGRAM)
            (warning,) = warnings
            assert "cannot be written to (Permission denied)" in warning
            assert "new programs are not stored: pass another folder" in warning
            assert Cache(folder).read(numbered(2)) is None
            assert "is no file that crosschip has saved; compiling again" in warnings[1]
            with pytest.raises(CacheError, match="only read; nothing is changed"):
                Cache(folder).prune(0)
            assert sorted(path.stat().st_mtime_ns for path in folder.rglob("*")) == before
        finally:
            folder.chmod(0o700)


def test_a_large_program_is_a_view_that_outlives_its_entry(cache: Cache) -> None:
    large = bytes(range(256)) * 2**13
    cache.write(ENTRY, large)
    view = cache.begin_reading(ENTRY)()
    assert isinstance(view, memoryview)
    cache.write(ENTRY, large[::-1])
    assert bytes(view) == large
    other = cache.begin_reading(ENTRY)()
    assert other is not None
    assert bytes(other) == large[::-1]
    assert cache.prune(0) == 1
    assert bytes(other) == large[::-1]
    assert cache.begin_reading(ENTRY)() is None


@pytest.mark.parametrize("place", [0, 2**20, -1])
def test_damage_is_noticed_before_a_view_is_handed_out(cache: Cache, place: int) -> None:
    large = bytes(2**21)
    cache.write(ENTRY, large)
    content = bytearray(file_of(cache).read_bytes())
    content[place if place < 0 else len(content) - len(large) + place] ^= 1
    file_of(cache).write_bytes(content)
    with Warnings() as warnings:
        assert cache.begin_reading(ENTRY)() is None
    assert "damaged bytes in block 0" in warnings[0]
    assert entries_in(cache.folder) == []


def test_what_others_could_change_once_it_is_checked_is_copied(cache: Cache) -> None:
    large = bytes(2**21)
    cache.write(ENTRY, large)
    cache.folder.chmod(0o777)
    assert type(Cache(cache.folder).begin_reading(ENTRY)()) is bytes


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_a_folder_that_others_can_write_to_is_only_read(cache: Cache, mode: int) -> None:
    cache.write(ENTRY, PROGRAM)
    cache.folder.chmod(mode)
    open_to_all = Cache(cache.folder)
    with Warnings() as warnings:
        assert open_to_all.read(ENTRY) == PROGRAM
        open_to_all.write(numbered(1), PROGRAM)
        file_of(cache).write_bytes(b"planted")
        assert open_to_all.read(ENTRY) is None
        with pytest.raises(CacheError, match=r"others can write to it.*chmod go-w"):
            open_to_all.prune(0)
    assert len(warnings) == 2
    assert "others can write to it, so it is only read (chmod go-w" in warnings[0]
    assert entries_in(cache.folder) == [f"{ENTRY.key}{SUFFIX}"]
    assert file_of(cache).read_bytes() == b"planted"


def test_the_folder_of_another_user_is_only_read(cache: Cache) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to another user")
    cache.write(ENTRY, PROGRAM)
    os.chown(cache.folder, 65534, 65534)
    with Warnings() as warnings:
        assert Cache(cache.folder).read(ENTRY) == PROGRAM
        Cache(cache.folder).write(numbered(1), PROGRAM)
    (warning,) = warnings
    assert "belongs to another user" in warning
    assert len(entries_in(cache.folder)) == 1


def test_what_is_made_is_the_users_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        cache = Cache(tmp_path / "cache")
        cache.write(ENTRY, PROGRAM)
    finally:
        os.umask(before)
    assert cache.folder.stat().st_mode & 0o777 == 0o700
    assert file_of(cache).stat().st_mode & 0o777 == 0o600


class Raising:
    def __fspath__(self) -> str:
        raise RuntimeError("no path today")


class Bytes:
    def __fspath__(self) -> bytes:
        return b"folder"


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        (None, "None"),
        (123, "123"),
        (1, "1"),
        (0.5, "0.5"),
        (b"", "a buffer without the token that it is of"),
        (b"folder", "a buffer without the token that it is of"),
        ("", "''"),
        ([], "a list"),
        (Raising(), "a Raising"),
        (Bytes(), "a Bytes"),
    ],
)
def test_an_argument_that_names_no_folder_is_refused(argument: Any, shown: str) -> None:
    with pytest.raises(InputError) as caught:
        open_store(argument)
    assert str(caught.value) == (
        f"cache is {shown}, but must be True for the default folder, the path of a folder, a "
        f"buffer (with a token), a store, or False for no cache"
    )


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_a_folder_that_no_system_can_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CacheError, match=r"cannot be written to .*; pass another folder") as caught:
        open_store(str(tmp_path / name))
    assert str(caught.value).isprintable()


def test_arguments_that_name_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", str(tmp_path / "default"))
    arguments: dict[Any, Path] = {
        True: tmp_path / "default",
        str(tmp_path / "text"): tmp_path / "text",
        tmp_path / "path": tmp_path / "path",
    }
    for argument, folder in arguments.items():
        cache = open_store(argument, 5)
        assert isinstance(cache, Cache)
        assert (cache.folder, cache.limit) == (folder, 5)
    assert open_store(False) is None


def test_a_folder_in_the_users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert Cache("~/x").folder == tmp_path / "x"
    monkeypatch.setenv("CROSSCHIP_CACHE_SECRET", "~/secret")
    assert secret_file() == str(tmp_path / "secret")
    assert not (tmp_path / "~").exists()


FULL = """
import logging, resource, sys
logging.basicConfig(format="%(message)s")
import numpy as np
import crosschip as cc
from tests.modelling import chain
from crosschip.ops.standard.activation import Relu
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
with cc.compile(chain(Relu), ["reference"], cache=eval(sys.argv[1])) as compiled:
    print(compiled(np.array([-1, 2], np.float32)).tolist(), compiled.report.cache)
"""


@pytest.mark.parametrize("place", ["default", "folder"])
@pytest.mark.parametrize("present", ["nothing", "secret"])
def test_on_a_full_disk_nothing_is_kept_and_all_else_goes_on(
    place: str, present: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", str(tmp_path / "default"))
    monkeypatch.setenv("CROSSCHIP_CACHE_SECRET", str(tmp_path / "data" / "secret"))
    if present == "secret":
        secret()
    argument = "True" if place == "default" else repr(str(tmp_path / "folder"))
    ended = subprocess.run(
        [sys.executable, "-c", FULL, argument], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "[0.0, 2.0] miss\n"
    assert "File too large" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size]
    assert len(kept) == (present == "secret")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_folder_that_cannot_be_made_on_a_full_disk(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "makedirs", fail)
    cache = Cache(tmp_path / "folder")
    with Warnings() as messages:
        cache.write(ENTRY, PROGRAM)
    assert os.strerror(number) in messages[0]
    assert cache.read(ENTRY) is None
    assert cache.listing() == []
    with pytest.raises(CacheError, match=os.strerror(number)):
        cache.check_writable()


PLANTED: dict[str, Callable[[Path, Path], object]] = {
    "a link": lambda place, other: place.symlink_to(other),
    "a second name": lambda place, other: place.hardlink_to(other),
    "a pipe": lambda place, _: os.mkfifo(place),
    "a folder": lambda place, _: place.mkdir(),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_what_lies_in_the_place_of_the_ledger_is_left_alone(kind: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("precious")
    cache = Cache(tmp_path / "folder")
    PLANTED[kind](tmp_path / "folder" / ".ledger", other)
    with Warnings() as messages:
        cache.write(ENTRY, PROGRAM)
    assert other.read_text() == "precious"
    (message,) = messages
    assert "could not be written" in message


@pytest.mark.parametrize("limit", [-1, True, 0.5, "2G"])
def test_a_limit_that_is_no_size_is_refused(limit: Any) -> None:
    with pytest.raises(InputError, match=r"^cache_size is .*, but must be a number of bytes"):
        open_store(False, limit)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("", DEFAULT_LIMIT),
        ("0", 0),
        ("12345", 12345),
        ("3K", 3 * 2**10),
        ("500M", 500 * 2**20),
        (" 500 MB ", 500 * 2**20),
        ("1.5g", 3 * 2**29),
        ("2GiB", 2**31),
        ("1T", 2**40),
        ("7B", 7),
    ],
)
def test_the_limit_can_be_set(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSCHIP_CACHE_SIZE", text)
    assert default_limit() == size


def test_the_limit_is_two_gibibytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CROSSCHIP_CACHE_SIZE", raising=False)
    assert Cache(tmp_path).limit == 2 * 1024**3


@pytest.mark.parametrize(
    "text", ["lots", "-1", "1P", "1e9", "nan", "inf", "G", "9" * 400, "9" * 5000, "1." + "9" * 400]
)
def test_a_setting_that_is_no_size_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSCHIP_CACHE_SIZE", text)
    with pytest.raises(CacheError, match=r"which is no size; write a number of bytes, .*500M"):
        default_limit()


def test_the_default_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", str(tmp_path / "mine"))
    assert cache_folder() == str(tmp_path / "mine")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", "~/home")
    assert cache_folder() == str(tmp_path / "home")
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert os.path.basename(cache_folder()) == "crosschip"
