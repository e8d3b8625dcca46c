"""Records of costs in the cache."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.costs.devices import compilation_of, sleeping

from crosschip.hal import Options, Precision
from crosschip.runtime.cache.folder import Cache
from crosschip.runtime.cache.store import Memory, Store
from crosschip.runtime.costs.records import (
    TITLE,
    BlockRecord,
    DeviceRecord,
    Records,
    TransferRecord,
    machine,
    stored_records,
)

NUMBERS = st.floats(0, 10)
TRANSFERS = st.builds(TransferRecord, NUMBERS, NUMBERS)
RECORDS = st.builds(
    DeviceRecord,
    st.text(),
    st.text(),
    st.text(),
    st.text(),
    st.booleans(),
    st.none() | TRANSFERS,
    st.dictionaries(st.text(), TRANSFERS, max_size=3),
    st.dictionaries(st.text(), st.builds(BlockRecord, NUMBERS, NUMBERS, st.text()), max_size=3),
)


def records_in(store: Store | None, options: Options | None = None) -> Records:
    """The records of two devices."""
    devices = compilation_of(sleeping(a={}, b={})).devices
    return Records(devices, options or Options(), store)


@given(RECORDS)
def test_records_are_read_as_they_were_written(record: DeviceRecord) -> None:
    assert DeviceRecord.from_bytes(record.to_bytes()) == record


@given(st.binary(max_size=100) | RECORDS.map(lambda record: record.to_bytes()[:-1]))
def test_damaged_records_are_an_error(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"^no costs: "):
        DeviceRecord.from_bytes(content)


@pytest.mark.parametrize("seconds", [-1.0, float("inf"), float("nan")])
def test_impossible_durations_are_an_error(seconds: float) -> None:
    record = DeviceRecord("a", "1", "", "", blocks={"x": BlockRecord(seconds, 0.0, "")})
    with pytest.raises(ValueError, match="a duration is negative or infinite"):
        DeviceRecord.from_bytes(record.to_bytes())


def test_records_are_added_to_those_of_other_processes() -> None:
    store = Memory()
    first, second = records_in(store), records_in(store)
    first.add_block("a", "x", BlockRecord(1.0, 0.1, "relu"))
    second.add_block("a", "y", BlockRecord(2.0, 0.2, "tanh"))
    second.set_transfer("a", "b", TransferRecord(3.0, 0.0))
    first.save()
    second.save()
    read = records_in(store)
    assert set(read["a"].blocks) == {"x", "y"}
    assert read.transfer("a", "b") == TransferRecord(3.0, 0.0)
    assert read.transfer("b", "a") is None
    assert not read["b"].blocks


def test_records_depend_on_the_options() -> None:
    store = Memory()
    records = records_in(store)
    records.set_launch("a", TransferRecord(1.0, 0.0))
    records.save()
    assert records_in(store)["a"].launch == TransferRecord(1.0, 0.0)
    half = Options(precision=Precision.FLOAT16)
    other = records_in(store, half)["a"]
    assert other.launch is None
    assert other.options == "precision=Precision.FLOAT16"


def test_without_a_store_records_last_as_long_as_their_owner() -> None:
    records = records_in(None)
    records.set_launch("a", TransferRecord(1.0, 0.0))
    records.save()
    assert records["a"].launch == TransferRecord(1.0, 0.0)
    assert records_in(None)["a"].launch is None


def test_the_cache_lists_records(tmp_path: Path, warnings: Callable[[], list[str]]) -> None:
    cache = Cache(tmp_path)
    records = records_in(cache)
    records.add_block("a", "x", BlockRecord(1.0, 0.1, "relu"))
    records.set_launch("b", TransferRecord(1.0, 0.0))
    records.save()
    listed = {record.device: record for _, record in stored_records(cache)}
    assert listed == {"a": records["a"], "b": records["b"]}
    assert {item.entry.model for item in cache.listing() if item.entry} == {TITLE}
    (path,) = [item.path for item, record in stored_records(cache) if record.device == "a"]
    Path(path).write_bytes(b"garbage")
    assert [record.device for _, record in stored_records(cache)] == ["b"]
    assert not warnings()


def test_the_machine_has_a_name_and_cores() -> None:
    assert machine().endswith(" cores")
    assert len(machine()) > len(" cores") + 4
