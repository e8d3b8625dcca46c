"""Whole compiled models under tokens: NNAdapter's three ways to cache, and ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.modelling import DelegatingDevice, chain, close, float32, model_of, outputs_of
from tests.runtime.test_saving import Forgetful

import crosschip
from crosschip.hal import Device
from crosschip.ir import CacheError, InputError, Model
from crosschip.ops.standard.activation import Relu, Tanh
from crosschip.ops.standard.arithmetic import Add
from crosschip.runtime.artifact.digests import block_digests
from crosschip.runtime.cache.folder import Cache
from crosschip.runtime.guard.devices import GuardedDevice

Warnings = Callable[[], list[str]]
X = {"x0": np.array([-1, 0.5], np.float32)}


def compiled_with(
    device: DelegatingDevice, model: Model, cache: Any, token: str | bool = False, **more: Any
) -> tuple[str, int]:
    """The cache's word, and how often the device compiled; the answer is right."""
    cache = crosschip.CacheOptions(cache, token=token)
    with crosschip.compile(model, [device], cache=cache, **more) as compiled:
        close(compiled.run(X)["y0"], outputs_of(model, X)["y0"])
        return compiled.report.cache, len(device.compiled)


def npu(**more: Any) -> DelegatingDevice:
    return DelegatingDevice(name="npu", **more)


def test_a_token_with_a_folder(tmp_path: Path) -> None:
    """The model is kept as a whole, in a file named by the token, and as nothing else."""
    words = [compiled_with(npu(), chain(Relu), cache=tmp_path, token="mine") for _ in range(2)]
    assert words == [("miss", 1), ("hit", 0)]
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [".ledger", "mine.nnc"]
    (listed,) = Cache(tmp_path).listing()
    assert listed.entry is not None
    assert (listed.entry.key, listed.entry.whole, listed.problem) == ("mine", True, "")
    with crosschip.load_compiled(tmp_path, token="mine", devices=[npu()]) as loaded:
        assert loaded.run(X)["y0"].tolist() == [0, 0.5]
        assert loaded.token == "mine"


def test_a_token_with_a_buffer() -> None:
    with crosschip.compile(chain(Relu), [npu()], cache=False) as compiled:
        token, buffer = compiled.token, compiled.to_bytes()
    assert compiled_with(npu(), chain(Relu), cache=buffer, token=token) == ("hit", 0)
    with crosschip.load_compiled(buffer, token=token, devices=[npu()]) as loaded:
        assert loaded.run(X)["y0"].tolist() == [0, 0.5]


def test_neither_token_nor_cache() -> None:
    assert [compiled_with(npu(), chain(Relu), cache=False) for _ in range(2)] == [("off", 1)] * 2


def test_by_content(tmp_path: Path) -> None:
    """Ours, the default: no token is asked for, and the programs are kept one by one."""
    words = [compiled_with(npu(), chain(Relu), cache=tmp_path) for _ in range(2)]
    assert words == [("miss", 1), ("hit", 0)]
    assert not list(tmp_path.glob("*.nnc"))


def test_a_store_in_memory() -> None:
    store = crosschip.Memory()
    for more in ({}, {"token": "mine"}, {"token": True}):
        words = [compiled_with(npu(), chain(Relu), cache=store, **more) for _ in range(2)]
        assert words == [("miss", 1), ("hit", 0)]
    assert sorted(map(len, store.models)) == [4, 32]
    copy = crosschip.Memory(store.models)
    assert compiled_with(npu(), chain(Relu), cache=copy, token="mine") == ("hit", 0)


def test_tokens_made_from_content_do_not_collide(tmp_path: Path) -> None:
    """Models with inputs of the same shapes have other tokens, which are the same each time."""
    tokens: list[str] = []
    for operator, word in [(Relu, "miss"), (Tanh, "miss"), (Tanh, "hit"), (Relu, "hit")]:
        with crosschip.compile(
            chain(operator), [npu()], cache=crosschip.CacheOptions(location=tmp_path, token=True)
        ) as compiled:
            assert compiled.report.cache == word
            tokens.append(compiled.token)
    assert tokens[0] == tokens[-1] != tokens[1] == tokens[2]
    assert {path.stem for path in tmp_path.glob("*.nnc")} == set(tokens)
    assert all(len(token) == 32 for token in tokens)


def test_whatever_a_model_is_compiled_with_makes_another_token() -> None:
    def token(model: Model, *devices: Device, **more: Any) -> str:
        with crosschip.compile(model, devices, cache=False, **more) as compiled:
            return compiled.token

    renamed = model_of(lambda b, x: b.add(Relu, x), float32(2), name="other")
    pinned = crosschip.PlacementOptions(pin={"RELU": "gpu"})
    assert token(chain(Relu), npu()) == token(chain(Relu), npu())
    tokens = [
        token(chain(Relu), npu()),
        token(chain(Tanh), npu()),
        token(renamed, npu()),
        token(chain(Relu), DelegatingDevice(name="gpu")),
        token(chain(Relu), npu(), DelegatingDevice(name="gpu")),
        token(chain(Relu), npu(), threads=2),
        token(chain(Relu), npu(), DelegatingDevice(name="gpu"), placement=pinned),
        token(chain(Relu), npu(), placement=crosschip.PlacementOptions(min_segment=3)),
    ]
    assert len(set(tokens)) == len(tokens)


def of_another_model(tmp_path: Path) -> dict[str, Any]:
    crosschip.compile(
        chain(Tanh), [npu()], cache=crosschip.CacheOptions(location=tmp_path, token="mine")
    ).close()
    return {}


def with_other_options(tmp_path: Path) -> dict[str, Any]:
    crosschip.compile(
        chain(Relu), [npu()], cache=crosschip.CacheOptions(location=tmp_path, token="mine")
    ).close()
    return {"threads": 2}


class Newer(DelegatingDevice):
    @property
    def version(self) -> str:
        return "0.9"


def by_another_version(tmp_path: Path) -> dict[str, Any]:
    crosschip.compile(
        chain(Relu),
        [Newer(name="npu")],
        cache=crosschip.CacheOptions(location=tmp_path, token="mine"),
    ).close()
    return {}


def of_another_token(tmp_path: Path) -> dict[str, Any]:
    store = crosschip.Memory()
    crosschip.compile(
        chain(Relu), [npu()], cache=crosschip.CacheOptions(location=store, token="other")
    ).close()
    return {"cache": store.models["other"]}


def in_an_earlier_form(tmp_path: Path) -> dict[str, Any]:
    crosschip.compile(
        chain(Relu), [npu()], cache=crosschip.CacheOptions(location=tmp_path, token="mine")
    ).close()
    kept = tmp_path / "mine.nnc"
    content = kept.read_bytes()
    kept.write_bytes(content[:8] + (4).to_bytes(4, "little") + content[12:])
    return {}


def of_nothing(tmp_path: Path) -> dict[str, Any]:
    return {"cache": b"nothing"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (of_another_model, "is of another model (net)"),
        (with_other_options, "was compiled for other devices, or with other options"),
        (by_another_version, "npu 0.9 compiled it, and here is 1.0"),
        (of_another_token, "was kept under another token, other"),
        (in_an_earlier_form, "has format version 4, not 5: an earlier crosschip wrote it"),
        (of_nothing, "is no file that crosschip has saved"),
    ],
)
def test_what_does_not_belong_is_not_run(
    tmp_path: Path,
    warnings: Warnings,
    make: Callable[[Path], dict[str, Any]],
    message: str,
) -> None:
    """One warning says so, the model is compiled, and takes the place of what was there."""
    more = {"cache": tmp_path, "token": "mine", **make(tmp_path)}
    assert compiled_with(npu(), chain(Relu), **more) == ("miss", 1)
    (warning,) = warnings()
    assert message in warning
    assert "; compiling again" in warning
    if more["cache"] is tmp_path:
        assert compiled_with(npu(), chain(Relu), **more) == ("hit", 0)


def test_a_token_under_which_nothing_is(tmp_path: Path) -> None:
    with pytest.raises(CacheError, match=r"none\.nnc: there is no compiled model under the token"):
        crosschip.load_compiled(tmp_path, token="none")


def test_a_file_of_another_program_under_the_token_is_not_touched(
    tmp_path: Path, warnings: Warnings
) -> None:
    """Unless the token asks for its place: NNAdapter's own caches have the same suffix."""
    (tmp_path / "theirs.nnc").write_bytes(b"cnn.")
    cache = Cache(tmp_path)
    assert cache.listing() == []
    assert cache.prune(0) == 0
    assert (tmp_path / "theirs.nnc").exists()
    assert compiled_with(npu(), chain(Relu), cache=tmp_path, token="theirs") == ("miss", 1)
    (warning,) = warnings()
    assert "is no file that crosschip has saved" in warning


@pytest.mark.parametrize("token", ["", ".", "..", "../x", "a/b", "a\\b", "a b", "ä", "x" * 129, 3])
def test_a_token_that_is_no_name_is_refused(tmp_path: Path, token: Any) -> None:
    with pytest.raises(InputError, match=r"^token is .*, but must be 1 to 128 letters"):
        crosschip.compile(
            chain(Relu), [npu()], cache=crosschip.CacheOptions(location=tmp_path, token=token)
        )
    with pytest.raises(InputError, match=r"^token is"):
        crosschip.load_compiled(tmp_path, token=token)
    assert list(tmp_path.iterdir()) == []


def test_a_token_without_a_cache_is_refused() -> None:
    with pytest.raises(InputError, match="there is a token, but no cache"):
        crosschip.compile(
            chain(Relu), [npu()], cache=crosschip.CacheOptions(location=False, token="mine")
        )
    with pytest.raises(InputError, match="a buffer without the token that it is of"):
        crosschip.compile(chain(Relu), [npu()], cache=b"...")
    with pytest.raises(InputError, match="a buffer without the token that it is of"):
        crosschip.compile(
            chain(Relu), [npu()], cache=crosschip.CacheOptions(location=b"...", token=True)
        )


def test_what_cannot_be_saved_runs_all_the_same(tmp_path: Path, warnings: Warnings) -> None:
    device = Forgetful(name="npu")
    assert compiled_with(device, chain(Relu), cache=tmp_path, token="mine") == ("off", 1)
    (warning,) = warnings()
    assert warning.startswith("token mine: the compiled model cannot be saved: npu does not save")


@pytest.mark.parametrize("token", [False, True])
def test_weights_are_hashed_once(monkeypatch: pytest.MonkeyPatch, token: bool) -> None:
    """For the choice among devices, the program of each, and the whole model."""
    weights = np.random.default_rng(0).standard_normal(2**16).astype(np.float32)

    def make(b: Any, x: Any) -> Any:
        return b.add(Add, b.add(Add, x, b.constant(weights)), b.constant(weights[::-1].copy()))

    hashed: list[int] = []

    def counting(data: Any) -> list[bytes]:
        hashed.append(memoryview(data).nbytes)
        return block_digests(data)

    monkeypatch.setattr("crosschip.runtime.cache.fingerprints.block_digests", counting)
    devices = [npu(), DelegatingDevice(name="gpu")]
    opened = [GuardedDevice(device, device.name) for device in devices]
    monkeypatch.setattr(
        "crosschip.runtime.compile.devices.open_automatic", lambda _, isolate: opened
    )
    model = model_of(make, float32(2**16))
    with crosschip.compile(
        model, "auto", cache=crosschip.CacheOptions(location=crosschip.Memory(), token=token)
    ) as compiled:
        assert compiled.placement.choice is not None
        assert compiled.token
    assert sum(size for size in hashed if size >= weights.nbytes) == 2 * weights.nbytes
