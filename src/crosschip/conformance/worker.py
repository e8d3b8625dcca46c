"""A process that runs cases one by one, so that a device that crashes takes nothing else along.

It reads case ids from standard input, a line each, and writes a JSON document a line to where
standard output was; whatever the device prints goes to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from crosschip.conformance.cases import case_of
from crosschip.conformance.claims import claims_of
from crosschip.conformance.judge import Result, Verdict, judge
from crosschip.hal import Device, Options
from crosschip.ir import DeviceError, Error
from crosschip.runtime.discovery import open_device, origins
from crosschip.runtime.plain import from_plain


def main() -> None:
    """Open the device that the arguments name, and run the cases that come in."""
    parser = argparse.ArgumentParser()
    parser.add_argument("device")
    parser.add_argument("--claims", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--options", type=_options, default=Options())
    parser.add_argument("--properties", type=json.loads, default={})
    arguments = parser.parse_args()
    # The device's own code may print; the results go where only this process writes.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(document: dict[str, object]) -> None:
        out.write(json.dumps(document) + "\n")
        out.flush()

    try:
        device = named(arguments.device, arguments.properties)
        check_threads(device, arguments.options)
        claims = claims_of(type(device), arguments.claims)
    except Error as error:
        say({"error": str(error)})
        return
    say({"device": device.name, "version": str(device.version)})
    for line in sys.stdin:
        id = line.rstrip("\n")
        try:
            case = case_of(id)
        except KeyError:
            result = Result(id, Verdict.NOT_RUN, "there is no such case")
        else:
            result = judge(case, device, claims, arguments.seed, arguments.options)
        say({"id": result.id, "verdict": result.verdict.value, "detail": result.detail})
    device.close()


def named(name: str, properties: Mapping[str, str]) -> Device:
    """The device of an entry point, or of a class given as `module:Class`, with its settings.

    Raises:
        DeviceError: there is no such device, or it does not load.
    """
    module, colon, class_name = name.partition(":")
    if not colon or module in origins():
        return open_device(name, properties).device
    try:
        found: object = getattr(import_module(module), class_name)
    except (ImportError, AttributeError) as error:
        raise DeviceError(f"{name!r} cannot be imported: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Device)):
        raise DeviceError(f"{name!r} is not a subclass of crosschip.hal.Device")
    return found(properties)


def check_threads(device: Device, options: Options) -> None:
    """Refuse to try a device with a number of threads that it cannot keep.

    Raises:
        DeviceError: it says that it cannot set the threads, and the options do.
    """
    if options.threads is not None and not device.capabilities().threads:
        raise DeviceError(f"{device.name} cannot set the number of threads; leave it to the device")


def _options(text: str) -> Options:
    return from_plain(Options, json.loads(text))


if __name__ == "__main__":
    main()
