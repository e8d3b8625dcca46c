"""Lookup and storage of the plan of a model."""

from __future__ import annotations

import hashlib
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from crosschip.hal import Device
from crosschip.ir import DeviceError, InputError, ModelFileError
from crosschip.ir.file_queries import Reading, record_queries
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
from crosschip.runtime.plans.environment import environment
from crosschip.runtime.plans.outlines import restore_outline

if TYPE_CHECKING:
    from crosschip.runtime.artifact.compiled_model import Contents
    from crosschip.runtime.compiled import CompiledModel
    from crosschip.runtime.guard.programs import GuardedProgram
    from crosschip.runtime.outline import StoredOutline
    from crosschip.runtime.placement.placement import Placement

T = TypeVar("T")

_logger = logging.getLogger("crosschip")


class Plans:
    """The lookup of the plan for one call of `compile`.

    Args:
        source: the path or content of the model.
        name: the name of the source, part of the key.
        request: the request.
        words: the text of the request, part of the key.
        store: the store of plans and programs.
        kind: a text for each kind of compilation whose result differs for one request.
    """

    def __init__(
        self,
        source: Any,
        name: object,
        request: CompileRequest,
        words: str,
        store: Store,
        kind: str,
    ) -> None:
        self._source = source
        self._request = request
        self._store = store
        self._reading: Reading | None = None
        self._warned = False
        names = automatic() if request.devices == "auto" else []
        content = canonical([FORMAT_VERSION, VERSION, name, words, kind, names, environment()])
        key = hashlib.sha256(content.encode(errors="surrogatepass")).hexdigest()
        self._entry = Entry(key, "plan", VERSION, "", 0)

    @classmethod
    def of(cls, source: Any, request: CompileRequest, store: Store, kind: str = "") -> Plans | None:
        """Return the lookup for a call; `None` if the call can have no plan.

        That is so for models in memory, for devices that are instances or in other processes, and
        if packages of operators are registered, since their code is not part of the key.

        Raises:
            InputError: an option is invalid.
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
            return cls(source, name, request, request.words(), store, kind)
        except TypeError:  # a value has no canonical text
            return None

    def find(self) -> CompiledModel | None:
        """Return the compiled model; `None` if there is no valid plan."""
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
        # Other threads read and check programs and files while engines are imported.
        programs = [each.entry for each in header.segments if each.entry is not None]
        saved = [begin_reading(self._store, entry) for entry in programs]
        same = BackgroundTask(lambda: plan.origin.is_same)
        with ExitStack() as failing:
            devices = self._open_devices(header, plan, failing)
            if devices is None:
                return None
            # Imported while engines load programs, which does not hold the interpreter's lock.
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
        """Open the devices in use; `None` if one cannot be opened or does not match."""
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
            recompiled=partial(self._recompile, plan.origin),
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
        """Open a device by the location of its class; `None` if that fails."""
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
    def recording(self) -> Iterator[None]:
        """Record the files that a compilation reads, and whether it logs a warning."""
        with record_queries() as reading, WarningRecorder() as recorder:
            yield
        self._reading, self._warned = reading, recorder.warned

    def save(self, compiled: CompiledModel) -> None:
        """Schedule the writing of a compiled model's plan, if it can have one."""
        # Imported late: only a compilation needs it.
        from crosschip.runtime.plans.plan_contents import plan_of

        assert self._reading is not None, "set by `recording`"
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
        # Imported late: rarely needed after a plan was found.
        from crosschip.runtime.compile.task import compile_model

        self._check(origin)
        return compile_model(self._source, self._request, self._store)

    def _check(self, origin: Origin) -> None:
        if not origin.is_same:
            name = "the model in memory" if isinstance(self._source, bytes) else self._source
            raise ModelFileError(f"{name}: has changed since it was compiled; compile it again")

    def _substitute(self, origin: Origin, lost: str | None) -> CompiledModel:
        """Compile the model without a lost device; if `None`, without conditions on inputs."""
        # Imported late: rarely needed after a plan was found.
        from crosschip.runtime.compile.task import compile_substitute

        self._check(origin)
        return compile_substitute(self._source, self._request, self._store, lost)


class LazyPlacement:
    """A placement that is restored on demand.

    Args:
        artifact: the plan, whose parts are read and checked at once.
        header: the header of the plan.
    """

    def __init__(self, artifact: Artifact, header: Header) -> None:
        self._models = bytes(artifact.part(MODELS))
        self._described = bytes(artifact.part(PLACEMENT))
        self._header = header
        self._lock = Lock()
        self._placement: Placement | None = None

    def placement(self) -> Placement:
        """Return the placement, without the large weights that the programs hold."""
        # Imported late: runs do not need it.
        from crosschip.runtime.artifact.compiled_model import restore_placement

        with self._lock:
            if self._placement is None:
                self._placement = restore_placement(
                    self._models, self._described, self._header, "the plan"
                )
            return self._placement


class BackgroundTask(Thread, Generic[T]):
    """A thread that computes a result from now on.

    It replaces a future, whose import takes longer than loading a small model.

    Args:
        compute: returns the result.
    """

    def __init__(self, compute: Callable[[], T]) -> None:
        super().__init__(name="crosschip plan", daemon=True)
        self._compute = compute
        self._results: list[T] = []
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._results.append(self._compute())
        except BaseException as error:  # `result` raises it
            self._error = error

    def result(self) -> T:
        """Wait for the result and return it, or raise the exception of the computation."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._results[0]


class WarningRecorder(logging.Handler):
    """A context manager that records whether a warning is logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.warned = False

    def emit(self, record: logging.LogRecord) -> None:
        self.warned = True

    def __enter__(self) -> WarningRecorder:
        _logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        _logger.removeHandler(self)
