"""Finding the plan of a model, and keeping one."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any

from crosschip.hal import Device
from crosschip.ir import DeviceError, InputError, ModelFileError
from crosschip.ir.reading import Reading, noting
from crosschip.ir.version import VERSION
from crosschip.runtime.artifact.container import FORMAT_VERSION, Artifact
from crosschip.runtime.artifact.header import (
    KIND,
    MODELS,
    PLACEMENT,
    DeviceRequirements,
    Header,
    Plan,
    read_header,
)
from crosschip.runtime.artifact.origin import Origin, source_name
from crosschip.runtime.cache import background_writer
from crosschip.runtime.cache.canonical import canonical
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.store import Store, begin_reading, open_stored, write_stored
from crosschip.runtime.compile.request import CompileRequest
from crosschip.runtime.discovery import automatic, open_device, settings_of
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.log_messages import log
from crosschip.runtime.plans.background_task import BackgroundTask
from crosschip.runtime.plans.environment import environment
from crosschip.runtime.plans.outlines import restore_outline

if TYPE_CHECKING:
    from crosschip.runtime.artifact.compiled_model import Contents
    from crosschip.runtime.compiled import CompiledModel
    from crosschip.runtime.guard.programs import GuardedProgram
    from crosschip.runtime.outline import StoredOutline
    from crosschip.runtime.placement.placement import Placement


class Plans:
    """The plan of one call of `compile`.

    Args:
        source: what the model is loaded from.
        name: the name of the source, part of the key.
        request: the request.
        words: the text of the request, part of the key.
        store: the store of plans and programs.
    """

    def __init__(
        self, source: Any, name: object, request: CompileRequest, words: str, store: Store
    ) -> None:
        self._source = source
        self._request = request
        self._store = store
        self._reading: Reading | None = None
        self._warned = False
        names = automatic() if request.devices == "auto" else []
        content = canonical([FORMAT_VERSION, VERSION, name, words, names, environment()])
        key = hashlib.sha256(content.encode(errors="surrogatepass")).hexdigest()
        self._entry = Entry(key, "plan", VERSION, "", 0)

    @classmethod
    def of(cls, source: Any, request: CompileRequest, store: Store) -> Plans | None:
        """Return the lookup of a call's plan; `None` where it can have none.

        That is so for models in memory, devices of the caller's or in other processes, and where
        packages of operators are registered: their code counts, too.

        Raises:
            InputError: a wish is none.
        """
        name = source_name(source)
        devices = request.devices
        if name is None or request.placement.isolate or not isinstance(devices, str | list | tuple):
            return None
        if any(not isinstance(device, str) or "@" in device for device in devices):
            return None
        packages = sys.modules.get("crosschip.ops.packages")
        if packages is not None and packages.packages():
            return None
        try:
            return cls(source, name, request, request.words(), store)
        except TypeError:  # a value that has no text is none that a plan is found by
            return None

    def find(self) -> CompiledModel | None:
        """Return the compiled model; `None` if there is no plan, or something has changed."""
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
                outline = restore_outline(plan.outline, later.placement)
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
        log(plan.messages)
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
        from crosschip.runtime.compile.assembly import assemble
        from crosschip.runtime.details import Details

        several = len(plan.candidates) > 1
        details = Details(
            later.placement,
            lambda: header.identity,
            partial(self._substitute, plan.origin) if several else None,
            partial(self._substitute, plan.origin, None) if several else None,
            anew=partial(self._recompile, plan.origin),
        )
        return assemble(
            outline,
            programs,
            devices,
            header.options,
            details,
            source=lambda: "hit",
            choice=plan.choice,
            owned=devices.values(),
            in_flight=self._request.settings.in_flight,
            queue_size=self._request.settings.queue_size,
        )

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
        settings = settings_of(required.name, self._request.settings.properties)
        try:
            return open_device(required.name, settings, device_class)
        except (DeviceError, InputError):
            return None

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Record what a compilation reads, and whether it warns."""
        from crosschip.runtime.plans.warning_recorder import WarningRecorder

        with noting() as reading, WarningRecorder() as heard:
            yield
        self._reading, self._warned = reading, heard.warned

    def keep(self, compiled: CompiledModel) -> None:
        """Schedule the writing of a compiled model's plan, if it can have one."""
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

    def _recompile(self, origin: Origin) -> CompiledModel:
        """Compile the model from its source, which must be unchanged."""
        # Seldom needed: a plan is there to do without it.
        from crosschip.runtime.compile.task import compile_model

        self._check(origin)
        return compile_model(self._source, self._request, self._store)

    def _check(self, origin: Origin) -> None:
        if not origin.is_same:
            name = "the model in memory" if isinstance(self._source, bytes) else self._source
            raise ModelFileError(f"{name}: has changed since it was compiled; compile it again")

    def _substitute(self, origin: Origin, lost: str | None) -> CompiledModel:
        """Compile the model for all devices but a lost one; for all inputs if none is lost."""
        # Seldom needed: a plan is there to do without it.
        from crosschip.runtime.compile.task import compile_substitute

        self._check(origin)
        return compile_substitute(self._source, self._request, self._store, lost)


class LazyPlacement:
    """A placement that is restored when it is asked for.

    Args:
        artifact: the plan, whose parts are read and checked at once.
        header: its header.
    """

    def __init__(self, artifact: Artifact, header: Header) -> None:
        self._models = bytes(artifact.part(MODELS))
        self._described = bytes(artifact.part(PLACEMENT))
        self._header = header
        self._lock = Lock()
        self._placement: Placement | None = None

    def placement(self) -> Placement:
        """Return the placement, without the large weights that the programs hold."""
        # Running needs none of it.
        from crosschip.runtime.artifact.compiled_model import restore_placement

        with self._lock:
            if self._placement is None:
                self._placement = restore_placement(
                    self._models, self._described, self._header, "the plan"
                )
            return self._placement
