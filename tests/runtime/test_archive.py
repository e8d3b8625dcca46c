"""The content of a cache as one file: what is imported is what was exported, or nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import chain

import crosschip
from crosschip import CacheOptions
from crosschip.ir import InputError, ModelFileError
from crosschip.ops.definition.serialization import to_bytes
from crosschip.ops.standard.activation import Relu
from crosschip.runtime.artifact.container import Artifact, encode
from crosschip.runtime.cache.archive import export_entries, import_entries
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.folder import Cache
from crosschip.runtime.outline import StoredOutline

ENTRY = Entry("0" * 64, "npu", "1.0", "model.0", 3)
WHOLE = Entry("mine", "npu,gpu", "0.3", "model", 9, whole=True)


def exported(programs: dict[Entry, bytes]) -> bytes:
    with TemporaryDirectory() as name:
        cache = Cache(Path(name, "cache"))
        for entry, program in programs.items():
            cache.write(entry, program)
        assert export_entries(cache, Path(name, "file")) == len(programs)
        return Path(name, "file").read_bytes()


GOOD = exported({ENTRY: b"program" * 100, WHOLE: b"model" * 50})


@given(st.dictionaries(st.integers(0, 9), st.binary(max_size=100)), st.booleans())
def test_what_is_imported_is_what_was_exported(contents: dict[int, bytes], whole: bool) -> None:
    entries = {
        replace(ENTRY, key=f"{n:064}", operations=n): program for n, program in contents.items()
    }
    if whole:
        entries[WHOLE] = b"model"
    with TemporaryDirectory() as name:
        cache = Cache(Path(name))
        assert import_entries(cache, exported(entries)) == len(entries)
        assert {listed.entry for listed in cache.listing()} == set(entries)
        for entry, program in entries.items():
            assert cache.read(entry) == program


@given(st.integers(0, len(GOOD) - 1), st.integers(0, 7))
def test_a_flipped_bit_is_noticed(place: int, bit: int) -> None:
    damaged = bytearray(GOOD)
    damaged[place] ^= 1 << bit
    with TemporaryDirectory() as name, pytest.raises(ModelFileError):
        import_entries(Cache(Path(name)), bytes(damaged))


@given(st.integers(0, len(GOOD) - 1))
def test_a_file_that_is_cut_off_is_noticed(size: int) -> None:
    with TemporaryDirectory() as name:
        cache = Cache(Path(name))
        with pytest.raises(ModelFileError):
            import_entries(cache, GOOD[:size])
        assert cache.listing() == []


def header_of(**changes: Any) -> dict[str, Any]:
    with Artifact(GOOD) as file:
        entries = [
            {**archived, "entry": {**archived["entry"], **changes}}
            for archived in file.metadata["entries"]
        ]
    return {"entries": entries}


@pytest.mark.parametrize(
    "changes",
    [
        {"key": "../../evil", "whole": False},
        {"key": "../../evil", "whole": True},
        {"key": "/etc/passwd", "whole": True},
        {"key": "0" * 63, "whole": False},
        {"key": 3},
        {"operations": "three"},
        {"extra": 1},
    ],
    ids=str,
)
def test_an_entry_that_is_none_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Above all, one whose file would be elsewhere; nothing at all is written then."""
    content = b"".join(encode("cache", header_of(**changes), [b"one", b"two"]))
    cache = Cache(tmp_path / "a" / "b" / "cache")
    with pytest.raises(ModelFileError, match="not laid out as it should be"):
        import_entries(cache, content)
    assert cache.listing() == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="is a file of a compiled model, not of cache entries"):
        import_entries(Cache(tmp_path), b"".join(encode("compiled model", {}, [])))
    with pytest.raises(ModelFileError, match="has 1 parts, which are not those of its entries"):
        import_entries(Cache(tmp_path), b"".join(encode("cache", header_of(), [b"one"])))


@pytest.mark.parametrize("count", [-1, 0, 2, 2**70, "1", None])
def test_an_entry_with_another_number_of_parts_is_refused(tmp_path: Path, count: object) -> None:
    header = header_of()
    header["entries"][0]["parts"] = count
    with pytest.raises(ModelFileError):
        import_entries(Cache(tmp_path), b"".join(encode("cache", header, [b"one", b"two"])))
    assert Cache(tmp_path).listing() == []


def test_compiled_models_and_plans_are_exported_with_their_parts(tmp_path: Path) -> None:
    """What was compiled on one machine is found on the other."""
    path = tmp_path / "model.chipm"
    path.write_bytes(to_bytes(chain(Relu)))
    caches = [Cache(tmp_path / "one"), Cache(tmp_path / "other")]
    for token in (False, "mine"):
        crosschip.compile(
            path, ["reference"], cache=CacheOptions(caches[0].folder, token=token)
        ).close()
    assert export_entries(caches[0], tmp_path / "file") == 3
    assert import_entries(caches[1], tmp_path / "file") == 3
    assert {each.entry for each in caches[0].listing()} == {
        each.entry for each in caches[1].listing()
    }
    for token in (False, "mine"):
        with crosschip.compile(
            path, ["reference"], cache=CacheOptions(caches[1].folder, token=token)
        ) as model:
            assert model.report.cache == "hit"
            assert isinstance(model.executable.outline, StoredOutline) is not token
            assert model(np.array([-1, 1], np.float32)).tolist() == [0, 1]


def test_damaged_entries_are_not_exported(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    cache.write(ENTRY, b"program")
    (cache.folder / f"{1:064}.chip").write_bytes(b"damaged")
    assert export_entries(cache, tmp_path / "file") == 1


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    for place, why in [(tmp_path, "is no file"), (tmp_path / "no" / "file", "No such file")]:
        with pytest.raises(InputError, match=why):
            export_entries(cache, place)
