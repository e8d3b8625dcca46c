"""Finding the plan of a model, and keeping one."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crosschip.hal import Device
from crosschip.ir import DeviceError, InputError, ModelFileError
from crosschip.ir.reading import Reading, noting
from crosschip.ir.version import VERSION
from crosschip.runtime.cache import background_writer
from crosschip.runtime.cache.canonical import canonical
from crosschip.runtime.cache.container import Container, assemble
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.store import Store, begin_reading
from crosschip.runtime.compile_request import CompileRequest
from crosschip.runtime.discovery import automatic, open_device, settings_of
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.outline import KeptOutline
from crosschip.runtime.placement.telling import tell
from crosschip.runtime.plain import from_plain
from crosschip.runtime.plans.background_task import BackgroundTask
from crosschip.runtime.plans.lazy_placement import LazyPlacement
from crosschip.runtime.plans.outlines import outline_from
from crosschip.runtime.plans.record import FORMAT_VERSION, KIND, Record, Used
from crosschip.runtime.plans.sources import Origin, name_of
from crosschip.runtime.plans.surroundings import surroundings

if TYPE_CHECKING:
    from crosschip.runtime.compiled import CompiledModel
    from crosschip.runtime.guard.programs import GuardedProgram
    from crosschip.runtime.plans.recording import Made


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
        about = canonical([FORMAT_VERSION, VERSION, name, words, names, surroundings()])
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
        """The compiled model, if it is planned and all is as it was; else `None`."""
        background_writer.wait(self._entry.key)
        content = self._store.read(self._entry)
        if content is None:
            return None
        try:
            with Container(content) as file:
                plan = _Plan(file)
        except (ModelFileError, LookupError, TypeError, ValueError, AttributeError) as error:
            self._store.discard(self._entry, str(error))
            return None
        # All this is checked while engines are imported.
        saved = [begin_reading(self._store, entry) for entry in plan.record.programs]
        same = BackgroundTask(lambda: plan.record.origin.is_same)
        with ExitStack() as failing:
            compiled = self._loaded(plan, saved, failing)
            if compiled is None or not same.result():
                return None
            failing.pop_all()
        tell(plan.record.told)
        return compiled

    def _loaded(
        self,
        plan: _Plan,
        saved: Sequence[Callable[[], bytes | memoryview | None]],
        failing: ExitStack,
    ) -> CompiledModel | None:
        """The compiled model; what is opened for it is closed with `failing`."""
        record, outline = plan.record, plan.outline
        devices: dict[str, GuardedDevice] = {}
        for used in record.devices:
            device = self._opened(used)
            if device is None:
                return None
            devices[used.needs.name] = failing.enter_context(device)
            if used.needs.mismatch(device):
                return None
        # What runs models is imported while engines load their programs, without the interpreter.
        BackgroundTask(partial(import_module, "crosschip.runtime.compiled"))
        programs: list[GuardedProgram] = []
        for part, entry, read in zip(outline.segments, record.programs, saved, strict=True):
            content = read()
            if content is None:
                return None
            try:
                program = devices[part.device].load(content, part.model, record.options)
            except DeviceError as error:
                self._store.discard(entry, str(error))
                return None
            failing.callback(program.close)
            programs.append(program)
        from crosschip.runtime.compiled import CompiledModel, CompileReport
        from crosschip.runtime.details import Details

        several = len(record.names) > 1
        details = Details(
            plan.later.placement,
            lambda: record.identity,
            partial(self._substitute, record.origin) if several else None,
            partial(self._substitute, record.origin, None) if several else None,
            anew=partial(self._anew, record.origin),
        )
        compiled = CompiledModel(
            outline,
            programs,
            devices,
            record.options,
            CompileReport(0.0, lambda: "hit", record.choice),
            details,
            self._wishes.settings.in_flight,
            self._wishes.settings.queue_size,
        )
        compiled.own(devices.values())
        return compiled

    def _opened(self, used: Used) -> GuardedDevice | None:
        """A device by the place of its class; `None` if it does not open as it did."""
        try:
            found: Any = import_module(used.module)
            for attribute in used.attribute.split("."):
                found = getattr(found, attribute)
        except (ImportError, AttributeError):
            return None
        if not (isinstance(found, type) and issubclass(found, Device)):
            return None
        name = used.needs.name
        try:
            return open_device(name, settings_of(name, self._wishes.settings.properties), found)
        except (DeviceError, InputError):
            return None

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Take note of what a compilation reads, and of what it warns of."""
        # Only those who compile come here: who finds a plan need not import logging.
        from crosschip.runtime.plans.warning_recorder import WarningRecorder

        with noting() as reading, WarningRecorder() as heard:
            yield
        self._reading, self._warned = reading, heard.warned

    def keep(self, compiled: CompiledModel) -> None:
        """Keep the plan of a compiled model, soon, if it is one of which that can be done."""
        # Only those who have compiled come here, and have imported what that needs.
        from crosschip.runtime.plans.recording import record_of

        assert self._reading is not None, "it has been noted what was read"
        if self._warned:
            return
        made = record_of(compiled, self._reading)
        if made is not None:
            background_writer.put(self._entry.key, partial(self._write, made))

    def _write(self, make: Callable[[], Made | None]) -> None:
        made = make()
        if made is not None:
            header, parts = made
            self._store.write(self._entry, b"".join(assemble(KIND, header, parts)))

    def _anew(self, origin: Origin) -> CompiledModel:
        """The model compiled from what it was loaded from, which must be the same."""
        # Seldom needed: a plan is there to do without it.
        from crosschip.runtime.compiling import compiled_anew

        self._check(origin)
        return compiled_anew(self._source, self._wishes, self._store)

    def _check(self, origin: Origin) -> None:
        if not origin.is_same:
            name = "the model in memory" if isinstance(self._source, bytes) else self._source
            raise ModelFileError(f"{name}: has changed since it was compiled; compile it again")

    def _substitute(self, origin: Origin, lost: str | None) -> CompiledModel:
        """The model on all devices but one; for all inputs if none is lost."""
        # Seldom needed: a plan is there to do without it.
        from crosschip.runtime.compiling import substitute

        self._check(origin)
        return substitute(self._source, self._wishes, self._store, lost)


class _Plan:
    """A plan that has been read."""

    def __init__(self, file: Container) -> None:
        if file.kind != KIND:
            raise ValueError(f"is a file of a {file.kind}, not of a plan")
        self.record = from_plain(Record, file.header["record"])
        outline: Mapping[str, Any] = file.header["outline"]
        models, placement = file.part(0), file.part(1)
        self.later = LazyPlacement(models, placement)
        self.outline: KeptOutline = outline_from(outline, self.later.placement)
