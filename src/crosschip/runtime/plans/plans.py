"""Finding the plan of a model, and keeping one."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crosschip.hal import Device
from crosschip.ir import DeviceError, InputError, ModelFileError
from crosschip.ir.reading import Reading, noting
from crosschip.ir.version import VERSION
from crosschip.runtime.artifact.container import FORMAT_VERSION
from crosschip.runtime.artifact.header import (
    KIND,
    DeviceRequirements,
    Header,
    Plan,
    read_header,
)
from crosschip.runtime.artifact.origin import Origin, name_of
from crosschip.runtime.cache import background_writer
from crosschip.runtime.cache.canonical import canonical
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.store import Store, begin_reading, open_stored, write_stored
from crosschip.runtime.compile_request import CompileRequest
from crosschip.runtime.discovery import automatic, open_device, settings_of
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.telling import tell
from crosschip.runtime.plans.background_task import BackgroundTask
from crosschip.runtime.plans.environment import environment
from crosschip.runtime.plans.lazy_placement import LazyPlacement
from crosschip.runtime.plans.outlines import outline_from

if TYPE_CHECKING:
    from crosschip.runtime.artifact.compiled_model import Contents
    from crosschip.runtime.compiled import CompiledModel
    from crosschip.runtime.guard.programs import GuardedProgram
    from crosschip.runtime.outline import StoredOutline


class Plans:
    """The plan of one call of `compile`.

    Args:
        source: what the model is loaded from.
        name: what it is found by.
        effective_options: what the caller wants.
        words: those as a text.
        store: where plans and programs are.
    """

    def __init__(
        self, source: Any, name: object, wishes: CompileRequest, words: str, store: Store
    ) -> None:
        self._source = source
        self._wishes = wishes
        self._store = store
        self._reading: Reading | None = None
        self._warned = False
        names = automatic() if wishes.devices == "auto" else []
        about = canonical([FORMAT_VERSION, VERSION, name, words, names, environment()])
        key = hashlib.sha256(about.encode(errors="surrogatepass")).hexdigest()
        self._entry = Entry(key, "plan", VERSION, "", 0)

    @classmethod
    def of(cls, source: Any, wishes: CompileRequest, store: Store) -> Plans | None:
        """The plan of a call; `None` where none is kept.

        That is so for models in memory, devices of the caller's or in other processes, and where
        packages of operators are registered: their code counts, too.

        Raises:
            InputError: a wish is none.
        """
        name = name_of(source)
        devices = wishes.devices
        if name is None or wishes.placement.isolate or not isinstance(devices, str | list | tuple):
            return None
        if any(not isinstance(device, str) or "@" in device for device in devices):
            return None
        packages = sys.modules.get("crosschip.ops.packages")
        if packages is not None and packages.packages():
            return None
        try:
            return cls(source, name, wishes, wishes.words(), store)
        except TypeError:  # a value that has no text is none that a plan is found by
            return None

    def find(self) -> CompiledModel | None:
        """Return the compiled model, if it is planned and all is as it was; else `None`."""
        background_writer.wait(self._entry.key)
        try:
            artifact = open_stored(self._store, self._entry)
            if artifact is None:
                return None
            with artifact:
                header = read_header(artifact, plan=True)
                assert header.plan is not None, "the reader has seen it"
                plan = header.plan
                later = LazyPlacement(artifact, header)
                outline = outline_from(plan.outline, later.placement)
        except (
            *(DeviceError, ModelFileError),
            *(LookupError, TypeError, ValueError, AttributeError),
        ) as error:
            self._store.discard(self._entry, str(error))
            return None
        # All this is checked while engines are imported.
        programs = [each.entry for each in header.segments if each.entry is not None]
        saved = [begin_reading(self._store, entry) for entry in programs]
        same = BackgroundTask(lambda: plan.origin.is_same)
        with ExitStack() as failing:
            devices = self._open_devices(header, plan, failing)
            if devices is None:
                return None
            # What runs models is imported while engines load programs, without the interpreter.
            BackgroundTask(partial(import_module, "crosschip.runtime.compiled"))
            loaded: list[GuardedProgram] = []
            for part, entry, read in zip(outline.segments, programs, saved, strict=True):
                content = read()
                if content is None:
                    return None
                try:
                    program = devices[part.device].load(content, part.model, header.options)
                except DeviceError as error:
                    self._store.discard(entry, str(error))
                    return None
                failing.callback(program.close)
                loaded.append(program)
            compiled = self._assemble(header, plan, later, outline, loaded, devices)
            if not same.result():
                return None
            failing.pop_all()
        tell(plan.messages)
        return compiled

    def _open_devices(
        self, header: Header, plan: Plan, failing: ExitStack
    ) -> dict[str, GuardedDevice] | None:
        """Open the devices that run something; `None` if one does not open, or is another."""
        devices: dict[str, GuardedDevice] = {}
        for required, (module, attribute) in zip(header.devices, plan.classes, strict=True):
            device = self._open_device(required, module, attribute)
            if device is None:
                return None
            devices[required.name] = failing.enter_context(device)
            if required.mismatch(device):
                return None
        return devices

    def _assemble(
        self,
        header: Header,
        plan: Plan,
        later: LazyPlacement,
        outline: StoredOutline,
        programs: Sequence[GuardedProgram],
        devices: dict[str, GuardedDevice],
    ) -> CompiledModel:
        from crosschip.runtime.compiled import CompiledModel
        from crosschip.runtime.details import CompileReport, Details

        several = len(plan.candidates) > 1
        details = Details(
            later.placement,
            lambda: header.identity,
            partial(self._substitute, plan.origin) if several else None,
            partial(self._substitute, plan.origin, None) if several else None,
            anew=partial(self._anew, plan.origin),
        )
        compiled = CompiledModel(
            outline,
            programs,
            devices,
            header.options,
            CompileReport(0.0, lambda: "hit", plan.choice),
            details,
            self._wishes.settings.in_flight,
            self._wishes.settings.queue_size,
        )
        compiled.own(devices.values())
        return compiled

    def _open_device(
        self, required: DeviceRequirements, module: str, attribute: str
    ) -> GuardedDevice | None:
        """Open a device by the location of its class; `None` if it does not open as it did."""
        try:
            device_class: Any = import_module(module)
            for name in attribute.split("."):
                device_class = getattr(device_class, name)
        except (ImportError, AttributeError):
            return None
        if not (isinstance(device_class, type) and issubclass(device_class, Device)):
            return None
        settings = settings_of(required.name, self._wishes.settings.properties)
        try:
            return open_device(required.name, settings, device_class)
        except (DeviceError, InputError):
            return None

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Take note of what a compilation reads, and of what it warns of."""
        from crosschip.runtime.plans.warning_recorder import WarningRecorder

        with noting() as reading, WarningRecorder() as heard:
            yield
        self._reading, self._warned = reading, heard.warned

    def keep(self, compiled: CompiledModel) -> None:
        """Keep the plan of a compiled model, soon, if it is one of which that can be done."""
        # Only those who have compiled come here, and have imported what that needs.
        from crosschip.runtime.plans.recording import plan_of

        assert self._reading is not None, "it has been noted what was read"
        if self._warned:
            return
        describe = plan_of(compiled, self._reading)
        if describe is not None:
            background_writer.put(self._entry.key, partial(self._write, describe))

    def _write(self, describe: Callable[[], Contents | None]) -> None:
        contents = describe()
        if contents is not None:
            write_stored(self._store, self._entry, KIND, *contents)

    def _anew(self, origin: Origin) -> CompiledModel:
        """The model compiled from what it was loaded from, which must be the same."""
        # Seldom needed: a plan is there to do without it.
        from crosschip.runtime.compiling import compile_model

        self._check(origin)
        return compile_model(self._source, self._wishes, self._store)

    def _check(self, origin: Origin) -> None:
        if not origin.is_same:
            name = "the model in memory" if isinstance(self._source, bytes) else self._source
            raise ModelFileError(f"{name}: has changed since it was compiled; compile it again")

    def _substitute(self, origin: Origin, lost: str | None) -> CompiledModel:
        """The model on all devices but one; for all inputs if none is lost."""
        # Seldom needed: a plan is there to do without it.
        from crosschip.runtime.compiling import compile_substitute

        self._check(origin)
        return compile_substitute(self._source, self._wishes, self._store, lost)
