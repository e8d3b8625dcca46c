"""`isolate=True`: devices in processes of their own, as callers of `compile` see them."""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.apis.nnrt.programs import Code, done, tensor
from tests.drivers.serving import until
from tests.modelling import DelegatingDevice, chain

import crosschip
from crosschip.apis import nnrt
from crosschip.apis.nnrt import OH_NNExecutor
from crosschip.apis.nnrt.compilation import Shared
from crosschip.drivers.client.device import RemoteDevice
from crosschip.drivers.client.driver import Driver
from crosschip.drivers.client.policy import Policy
from crosschip.hal import DeviceLost, Options, Program, urgency
from crosschip.ir import Array, DeviceError, InputError, Model
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.unary import Exp
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.requests import Priority

LONG = 60.0
X = np.array([-1, 2], np.float32)


pytestmark = pytest.mark.usefixtures("runtime")


def driver_of(compiled: CompiledModel, name: str = "reference@driver") -> Driver:
    device = compiled.devices[name].device
    assert isinstance(device, RemoteDevice)
    return device.driver


def kill(driver: Driver) -> None:
    """Kill a driver's process, and wait until it is known to be dead."""
    link = driver.link()
    told = threading.Event()
    end = driver.on_death(lambda _: told.set())
    os.kill(link.connection.process, signal.SIGKILL)
    assert told.wait(LONG)
    end()


def test_each_device_is_in_a_process_of_its_own() -> None:
    with crosschip.compile(
        chain(Relu), ["reference"], placement=crosschip.PlacementOptions(isolate=True), cache=False
    ) as compiled:
        assert compiled.placement.devices == ("reference@driver",)
        process = driver_of(compiled).link().connection.process
        assert process != os.getpid()
        assert compiled(X).tolist() == [0, 2]
        named = crosschip.compile(chain(Relu), "reference@driver", cache=False)
        assert driver_of(named).link().connection.process == process, "it is shared"
        named.close()


def test_a_network_computes_the_same(isolated_network: str) -> None:
    path = Path("build/models/onnx/mobilenet_v3_small.onnx")
    inputs = {"x": np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)}
    shapes = {"x": [1, 3, 224, 224]}
    with (
        crosschip.compile(path, isolated_network, shapes=shapes, cache=False) as local,
        crosschip.compile(
            path,
            isolated_network,
            shapes=shapes,
            placement=crosschip.PlacementOptions(isolate=True),
            cache=False,
        ) as remote,
    ):
        expected, made = local.run(inputs), remote.run(inputs)
    for name, array in expected.items():
        np.testing.assert_array_equal(made[name], array)


@pytest.fixture(params=["onnxruntime", "openvino"])
def isolated_network(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_an_instance_is_in_this_process() -> None:
    with pytest.raises(InputError, match="is in this process already; isolate needs its name"):
        crosschip.compile(
            chain(Relu), [DelegatingDevice()], placement=crosschip.PlacementOptions(isolate=True)
        )


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("reference@nowhere", "there is no place 'nowhere'; write reference@driver"),
        ("reference@unix:/nowhere/it.sock", "no driver serves there; start one with"),
        ("refrence@driver", "there is no device 'refrence' .did you mean 'reference'"),
    ],
)
def test_places_that_there_are_not(name: str, told: str) -> None:
    with pytest.raises((InputError, DeviceError), match=told):
        crosschip.compile(chain(Relu), name, cache=False)


def test_settings_of_the_device_and_of_its_driver() -> None:
    properties = {"reference": {"driver_silence": "soon"}}
    with pytest.raises(InputError, match="driver_silence is 'soon', but must be a number"):
        crosschip.compile(
            chain(Relu),
            "reference",
            properties=properties,
            placement=crosschip.PlacementOptions(isolate=True),
        )
    unknown = {"reference": {"cores": "2"}}
    with pytest.raises(DeviceError, match="ReferenceDevice has no property 'cores'"):
        crosschip.compile(
            chain(Relu),
            "reference",
            properties=unknown,
            placement=crosschip.PlacementOptions(isolate=True),
        )


def test_a_death_is_a_number_and_a_call() -> None:
    with crosschip.compile(
        chain(Relu), "reference", placement=crosschip.PlacementOptions(isolate=True), cache=False
    ) as compiled:
        driver = driver_of(compiled)
        told: queue.SimpleQueue[str] = queue.SimpleQueue()
        end = compiled.on_death(told.put)
        kill(driver)
        assert "died of SIGKILL" in told.get(timeout=LONG)
        assert compiled(X).tolist() == [0, 2]
        assert driver.restarts == 1
        assert [death.process for death in driver.endpoint.deaths()] != []
        end()
        kill(driver)
        assert compiled(X).tolist() == [0, 2]
        assert told.empty()


@pytest.mark.slow
def test_a_driver_that_dies_too_often_is_left_for_the_next_device() -> None:
    with crosschip.compile(
        chain(Relu, Exp), ["reference@driver", "reference"], cache=False
    ) as compiled:
        driver = driver_of(compiled)
        driver.record.policy = Policy(deaths=3, pause=1000.0, longest=1000.0)
        expected = compiled(X)
        for _ in range(3):
            kill(driver)
        assert driver.record.pause > 900
        np.testing.assert_array_equal(compiled(X), expected)
        np.testing.assert_array_equal(compiled.submit({"x0": X}).result()["y0"], expected)
        into = np.zeros(2, np.float32)
        assert compiled.run({"x0": X}, outputs={"y0": into})["y0"] is into
        np.testing.assert_array_equal(into, expected)
        driver.record.until = 0.0
        np.testing.assert_array_equal(compiled(X), expected)
        assert driver.record.in_a_row == 0, "it is used again"


def answers(path: Path) -> bool:
    """Tell whether a driver listens: its socket is there a moment before."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        return one.connect_ex(str(path)) == 0


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("saved", [False, True])
def test_a_driver_of_somebody_elses_that_is_gone_is_left(
    runtime: Path, sent: signal.Signals, saved: bool
) -> None:
    """Crosschip does not start it again, whether it died or only gives no answer any more."""
    path = runtime / "it.sock"
    command = [sys.executable, "-m", "crosschip", "driver", "serve", "reference"]
    with subprocess.Popen([*command, "--socket", str(path)]) as served, ExitStack() as ended:
        ended.callback(served.kill)
        until(lambda: answers(path), "the driver serves")
        name = f"reference@unix:{path}"
        settings = {name: {"driver_silence": "0.3"}}
        cache = crosschip.Memory() if saved else False
        with crosschip.compile(
            chain(Relu, Exp), [name, "reference"], properties=settings, cache=cache
        ) as compiled:
            expected = compiled(X)
            served.send_signal(sent)
            np.testing.assert_array_equal(compiled(X), expected)
            np.testing.assert_array_equal(compiled(X), expected)


def test_without_another_device_the_caller_is_told() -> None:
    with crosschip.compile(
        chain(Relu), "reference", placement=crosschip.PlacementOptions(isolate=True), cache=False
    ) as compiled:
        driver = driver_of(compiled)
        driver.record.policy = Policy(deaths=1, pause=1000.0, longest=1000.0)
        kill(driver)
        with pytest.raises(DeviceLost, match=r"died 1 times in a row.*SIGKILL"):
            compiled(X)


def test_a_device_that_cannot_take_over_is_named() -> None:
    other = DelegatingDevice(name="npu", declines=("EXP",))
    with crosschip.compile(chain(Exp), ["reference@driver", other], cache=False) as compiled:
        driver = driver_of(compiled)
        driver.record.policy = Policy(deaths=1, pause=1000.0, longest=1000.0)
        kill(driver)
        with pytest.raises(
            DeviceLost, match=r"(?s)no other device runs the model: .*npu.*not implemented"
        ):
            compiled(X)


class Noting(DelegatingDevice):
    """A device that notes the urgency of each run."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def compile(self, model: Model, options: Options) -> Program:
        program = super().compile(model, options)
        run = program.run

        def noting(inputs: Any) -> Any:
            self.seen.append(urgency.get())
            return run(inputs)

        program.run = noting  # type: ignore[method-assign]
        return program


def test_priorities_reach_the_device() -> None:
    device = Noting()
    with crosschip.compile(chain(Relu), [device], cache=False) as compiled:
        compiled.run({"x0": X})
        for priority in Priority:
            compiled.submit({"x0": X}, priority=priority).result()
        compiled.run({"x0": X})
    assert device.seen == [2, 0, 1, 2, 3, 2]


def test_nnrt_is_told_that_its_service_died() -> None:
    """The driver is frozen with the run in flight, so that it is killed in the middle of it."""
    compiled = crosschip.compile(
        chain(Relu), "reference", placement=crosschip.PlacementOptions(isolate=True), cache=False
    )
    executor = OH_NNExecutor(Shared(compiled, Priority.NONE))
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()
    done(nnrt.OH_NNExecutor_SetOnRunDone(executor, lambda *given: told.put(given[:2])))
    done(nnrt.OH_NNExecutor_SetOnServiceDied(executor, lambda data: told.put(("died", data))))
    process = driver_of(compiled).link().connection.process
    os.kill(process, signal.SIGSTOP)
    made = tensor(np.full(2, 9, np.float32))
    wait = int(LONG * 1000)
    done(nnrt.OH_NNExecutor_RunAsync(executor, [tensor(X)], [made], wait, "it"))
    os.kill(process, signal.SIGKILL)
    assert sorted([told.get(timeout=LONG), told.get(timeout=LONG)], key=str) == [
        ("died", "it"),
        ("it", Code.OH_NN_SUCCESS),
    ]
    array: Array = made.array
    assert array.tolist() == [0, 2]
    nnrt.OH_NNExecutor_Destroy(executor)
