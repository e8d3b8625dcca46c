"""The worker process that runs cases, so that a crash of a device does not end the kit.

It reads requests from standard input, one JSON document per line: the ids of cases, and the maximum
number of operations of a program of several cases. It writes events to the original standard
output, one JSON document per line: `result` of a case; `joined`, the ids of a program's cases
before it is compiled, with `wrong` or `broken` for its failures; `compiling`, whether a call that
may compile is running; `done` at the end of a request. The device's own output goes to standard
error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

from crosschip.conformance.cases import Case, case_of
from crosschip.conformance.claims import claims_of
from crosschip.conformance.joint_programs import (
    CaseWrong,
    ProgramBroken,
    ProgramStarted,
    judge_jointly,
)
from crosschip.conformance.judge import Result, Verdict, judge
from crosschip.hal import Device, Options
from crosschip.ir import DeviceError, Error
from crosschip.runtime.discovery import open_device, origins
from crosschip.runtime.plain import from_plain


def main() -> None:
    """Open the device that the arguments name, and run the requested cases."""
    parser = argparse.ArgumentParser()
    parser.add_argument("device")
    parser.add_argument("--claims", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--options", type=_options, default=Options())
    parser.add_argument("--properties", type=json.loads, default={})
    arguments = parser.parse_args()
    # The device's code may print to standard output, so results go to a copy of its descriptor.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    lock = threading.Lock()

    def say(document: Mapping[str, object]) -> None:
        with lock:  # a case may compile in several threads
            out.write(json.dumps(document) + "\n")
            out.flush()

    try:
        device = named(arguments.device, arguments.properties)
        check_threads(device, arguments.options)
        claims = claims_of(type(device), arguments.claims)
    except Error as error:
        say({"error": str(error)})
        return
    report_compilations(type(device), lambda begins: say({"compiling": begins}))
    say({"device": device.name, "version": str(device.version)})
    for line in sys.stdin:
        request = json.loads(line)
        cases: list[Case] = []
        for id in request["cases"]:
            try:
                cases.append(case_of(id))
            except KeyError:
                say(_to_document(Result(id, Verdict.NOT_RUN, "there is no such case")))
        common = (device, claims, arguments.seed, arguments.options)
        events: Iterable[Result | ProgramStarted | ProgramBroken | CaseWrong]
        if request["together"] > 1:
            events = judge_jointly(cases, *common, request["together"])
        else:
            events = (judge(case, *common) for case in cases)
        for event in events:
            say(_to_document(event))
        say({"done": True})
    device.close()


def _to_document(
    event: Result | ProgramStarted | ProgramBroken | CaseWrong,
) -> Mapping[str, object]:
    """Return an event as a document."""
    if isinstance(event, Result):
        verdict = event.verdict.value
        return {"result": {"id": event.id, "verdict": verdict, "detail": event.detail}}
    if isinstance(event, ProgramStarted):
        return {"joined": event.cases}
    return {"broken" if isinstance(event, ProgramBroken) else "wrong": asdict(event)}


def report_compilations(device: type[Device], report: Callable[[bool], None]) -> None:
    """Make a device class report the calls in which it may compile.

    Further instances that a case opens are of the same class, so their calls are reported, too.

    Args:
        device: the class, which is modified.
        report: called with `True` when a call begins and no other is running, with `False` when the
            last one ends.
    """
    lock, under_way = threading.Lock(), 0

    def count(change: int) -> None:
        nonlocal under_way
        with lock:
            before, under_way = under_way, under_way + change
            if bool(before) != bool(under_way):
                report(bool(under_way))

    def reported(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*arguments: Any, **named: Any) -> Any:
            count(1)
            try:
                return method(*arguments, **named)
            finally:
                count(-1)

        return call

    for name in ("compile", "query", "supports"):
        method = getattr(device, name)
        if method is not getattr(Device, name):  # the default of one calls the other
            setattr(device, name, reported(method))


def named(name: str, properties: Mapping[str, str]) -> Device:
    """Open a device by name, or by class as `module:Class`, with its properties.

    Raises:
        DeviceError: there is no such device, or it does not load.
    """
    module, colon, class_name = name.partition(":")
    if not colon or module in origins():
        return open_device(name, properties).device
    try:
        device_class: object = getattr(import_module(module), class_name)
    except (ImportError, AttributeError) as error:
        raise DeviceError(f"{name!r} cannot be imported: {error}") from None
    if not (isinstance(device_class, type) and issubclass(device_class, Device)):
        raise DeviceError(f"{name!r} is not a subclass of crosschip.hal.Device")
    return device_class(properties)


def check_threads(device: Device, options: Options) -> None:
    """Raise if the options set a number of threads that the device cannot set.

    Raises:
        DeviceError: the device has no `threads` capability.
    """
    if options.threads is not None and not device.capabilities().threads:
        raise DeviceError(f"{device.name} cannot set the number of threads; leave it to the device")


def _options(text: str) -> Options:
    return from_plain(Options, json.loads(text))


if __name__ == "__main__":
    main()
