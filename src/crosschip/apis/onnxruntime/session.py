"""Sessions: compiled models with ONNX Runtime's interface."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from crosschip.apis.onnxruntime.binding import IOBinding
from crosschip.apis.onnxruntime.description import (
    Description,
    ModelMetadata,
    NodeArg,
    describe,
    describe_operands,
    replaced_initializers,
    with_independent_sizes,
)
from crosschip.apis.onnxruntime.errors import (
    Fail,
    InvalidArgument,
    InvalidProtobuf,
    NoSuchFile,
    as_onnxruntime,
    translate,
)
from crosschip.apis.onnxruntime.memory import HOST_MEMORY, OrtMemoryInfo
from crosschip.apis.onnxruntime.options import RunOptions, SessionOptions
from crosschip.apis.onnxruntime.profiling import Profiler
from crosschip.apis.onnxruntime.providers import (
    AUTO,
    Provider,
    devices_of,
    normalize,
    with_processor,
)
from crosschip.apis.onnxruntime.values import OrtValue, OrtValueVector
from crosschip.ir import Error, ModelFileError
from crosschip.runtime.artifact.container import looks_like_shipped_file
from crosschip.runtime.artifact.loading import load_compiled
from crosschip.runtime.compile.front_door import compile
from crosschip.runtime.compiled import CompiledModel

_POLL_SECONDS = 0.005
_LOADS_OPTIONS = "ORT_LOAD_CONFIG_FROM_MODEL"
_OPTIONS_ENTRY = "ort_config"

logger = logging.getLogger("crosschip")


class InferenceSession:
    """A model that has been compiled for the devices of its providers.

    Args:
        path_or_bytes: the path or the content of a file that `crosschip.load` reads.
        sess_options: how to create the session.
        providers: names of providers or of devices, or pairs of a name and options, in the order
            of preference; the processor's if left out.
        provider_options: the options of each provider, if `providers` has names only.
        kwargs: arguments that ONNX Runtime's class takes, too; not used.

    Raises:
        TypeError, ValueError: an argument is malformed.
        OnnxRuntimeError: the model cannot be read or compiled.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, dict[Any, Any]]] | None = None,
        provider_options: Sequence[dict[Any, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        if isinstance(path_or_bytes, str | os.PathLike):
            self._source: Path | bytes = Path(path_or_bytes)
        elif isinstance(path_or_bytes, bytes):
            self._source = path_or_bytes
        else:
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        if not isinstance(sess_options, SessionOptions | None):
            raise TypeError(f"sess_options is of type '{type(sess_options)}'")
        self._options = sess_options or SessionOptions()
        if isinstance(self._source, Path) and not self._source.exists():
            raise NoSuchFile.of(
                f"Load model from {self._source} failed: Load model {self._source} failed. "
                f"File doesn't exist"
            )
        description = describe(self._source)
        if description and os.environ.get(_LOADS_OPTIONS) == "1":
            entries = description.metadata.custom_metadata_map
            self._options.load_json(entries.get(_OPTIONS_ENTRY, '{"session_options": {}}'))
        self._profiler: Profiler | None = None
        if self._options.enable_profiling:
            self._profiler = Profiler(self._options.profile_file_prefix)
        self._create(normalize(providers, provider_options) or self._options.providers, description)

    def _create(self, providers: Sequence[Provider], description: Description | None) -> None:
        self._overridden: tuple[frozenset[str], CompiledModel] | None = None
        source = self._edited_source()
        # Programs read these two, too, though their names are private.
        self._provider_options = with_processor(providers)
        self._providers = [*self._provider_options]
        self._devices = devices_of(providers)
        with self._event("model_loading_uri"), as_onnxruntime():
            self._compiled = self._compile(source, description)
        self._description = description or describe_operands(
            self._compiled.inputs, self._compiled.outputs
        )
        self._description = self._description.with_sizes(
            self._options.sizes_by_name, self._options.sizes_by_denotation
        )
        self._input_names = [node_arg.name for node_arg in self._description.inputs]
        self._output_names = [node_arg.name for node_arg in self._description.outputs]
        self._initializer_names = {arg.name for arg in self._description.initializers}
        self._run = self._compiled.run
        self._has_independent_sizes = not self._description.is_onnx
        if self._options.optimized_model_filepath:
            with as_onnxruntime():
                self._compiled.save(self._options.optimized_model_filepath)

    def _edited_source(self, inputs: Iterable[str] = ()) -> Path | bytes:
        """Return the model with the initializers of the options, and others as inputs.

        Args:
            inputs: the names of the initializers that become inputs.
        """
        values: dict[str, Any] = {n: v.numpy() for n, v in self._options.initializers.items()}
        values |= dict.fromkeys(inputs)
        if not values:
            return self._source
        try:
            return replaced_initializers(self._source, values)
        except KeyError as error:
            raise Fail.of(f"add_initializer: the model has no initializer {error}") from None

    def _compile(self, source: Path | bytes, description: Description | None) -> CompiledModel:
        options = self._options
        shapes: dict[str, Any] = {}
        if description and (options.sizes_by_name or options.sizes_by_denotation):
            fixed = description.with_sizes(options.sizes_by_name, options.sizes_by_denotation)
            for node_arg in fixed.inputs:
                shapes[node_arg.name] = [s if isinstance(s, int) else None for s in node_arg.shape]
        threads = options.intra_op_num_threads or None
        try:
            if isinstance(source, Path) and looks_like_shipped_file(source):
                return load_compiled(source, threads=threads)
            # `auto` answers as early as ONNX Runtime, and measures on the program's own inputs.
            wait = self._devices != AUTO
            return compile(source, self._devices, shapes=shapes or None, threads=threads, wait=wait)
        except ModelFileError as error:
            if description is None:
                raise InvalidProtobuf.of(error) from error
            raise

    def get_session_options(self) -> SessionOptions:
        """Return the options of the session."""
        return self._options

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs."""
        return self._description.inputs

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs."""
        return self._description.outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return the inputs that have a default."""
        return self._description.initializers

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Return the memory of each input: the processor's."""
        return [HOST_MEMORY for _ in self._description.inputs]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Return the memory of each output: the processor's."""
        return [HOST_MEMORY for _ in self._description.outputs]

    def get_input_epdevices(self) -> list[None]:
        """Return `None` for each input: devices are not described as ONNX Runtime's plug-ins."""
        return [None for _ in self._description.inputs]

    def get_tuning_results(self) -> list[Any]:
        """Return nothing: devices tune their kernels themselves."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        """Return the metadata of the model's file."""
        return self._description.metadata

    def get_providers(self) -> list[str]:
        """Return the names of the providers, in the order of preference."""
        return [*self._providers]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Return the options of the providers, by name."""
        return {name: dict(options) for name, options in self._provider_options.items()}

    def set_providers(
        self, providers: Sequence[Any] | None = None, provider_options: Sequence[Any] | None = None
    ) -> None:
        """Compile the model for other providers."""
        pairs = normalize(providers, provider_options)
        for name in providers or ():
            if name not in dict(pairs) and isinstance(name, str):
                raise RuntimeError(f"Unknown Provider Type: {name}")
        self._create(pairs, describe(self._source))

    def enable_fallback(self) -> None:
        """Do nothing: operations that a device does not run always go to the next one."""

    def disable_fallback(self) -> None:
        """Do nothing: operations that a device does not run always go to the next one."""

    @property
    def compiled(self) -> CompiledModel:
        """The compiled model, with its placement, reasons and profiles."""
        return self._compiled

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Compute outputs.

        Args:
            output_names: the names of the outputs; all if `None` or empty.
            input_feed: an array, list, dictionary or `OrtValue` for each input, by name.
            run_options: how to run.

        Returns:
            The outputs in the order of their names.

        Raises:
            ValueError: an input is missing.
            InvalidArgument: an input does not fit the model, or there is no such output.
            OnnxRuntimeError: the run failed.
        """
        if run_options is None and self._profiler is None:
            try:
                results = self._run(input_feed)
            except Error as error:
                results = self._run_again(input_feed, error)
        else:
            results = self._run_observed(input_feed, run_options)
        return _select(results, output_names)

    def _run_again(self, feed: Mapping[str, Any], error: Error) -> dict[str, Any]:
        """Run with inputs that only ONNX Runtime takes, or raise its exception for an error."""
        names = feed.keys()
        missing = [n for n in self._input_names if n not in names and not self._is_optional(n)]
        if missing:
            raise ValueError(
                f"Required inputs ({missing}) are missing from input feed ({[*feed]})."
            ) from error
        unknown = [n for n in feed if n not in self._input_names]
        for name in unknown:
            if name not in self._initializer_names:
                raise InvalidArgument.of(f"Invalid input name: {name}") from error
        values = {name: _plain(value) for name, value in feed.items()}
        for name in self._input_names:
            values.setdefault(name, None)
        compiled = self._compiled_with_inputs(frozenset(unknown)) if unknown else self._compiled
        if not unknown and all(values[name] is feed.get(name, _NOTHING) for name in values):
            if self._has_independent_sizes or not self._description.sizes_differ(values):
                raise translate(error) from error
            compiled = self._separate_sizes()
        with as_onnxruntime():
            return compiled.run(values)

    def _separate_sizes(self) -> CompiledModel:
        """Compile the model so that sizes of one name may differ, and use it from now on.

        ONNX Runtime takes the names of sizes for comments.
        """
        logger.warning(
            "inputs have different sizes where the model has one name; it is compiled without names"
        )
        source = with_independent_sizes(self._edited_source())
        with as_onnxruntime():
            self._compiled = self._compile(source, self._description)
        self._run = self._compiled.run
        self._has_independent_sizes = True
        return self._compiled

    def _is_optional(self, name: str) -> bool:
        types = {node_arg.name: node_arg.type for node_arg in self._description.inputs}
        return types[name].startswith("optional")

    def _compiled_with_inputs(self, initializers: frozenset[str]) -> CompiledModel:
        """Return the model with initializers as inputs."""
        if self._overridden is None or self._overridden[0] != initializers:
            source = self._edited_source(initializers)
            with as_onnxruntime():
                self._overridden = initializers, self._compile(source, self._description)
        return self._overridden[1]

    def _run_observed(self, feed: Mapping[str, Any], options: RunOptions | None) -> dict[str, Any]:
        """Run until the options say to terminate; record the run in the profile."""
        with self._event("model_run"):
            if options is None:
                try:
                    return self._run(feed)
                except Error as error:
                    return self._run_again(feed, error)
            _check_terminate(options)
            try:
                request = self._compiled.submit(feed)
            except Error as error:
                return self._run_again(feed, error)
            while True:
                try:
                    with as_onnxruntime():
                        return request.result(_POLL_SECONDS)
                except FutureTimeout:
                    if options.terminate:
                        request.cancel()
                    _check_terminate(options)

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[Any, Any, str], None],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Queue a run; call a function with its outputs, the user's data and an error message.

        Args:
            output_names: as for `run`.
            input_feed: as for `run`.
            callback: the function; in case of an error the outputs are empty.
            user_data: the second argument of the function.
            run_options: as for `run`.
        """

        def finish(request: Any) -> None:
            try:
                outputs, message = _select(request.result(), output_names), ""
            except Exception as error:  # the callback hears of it
                outputs, message = [], str(translate(error) if isinstance(error, Error) else error)
            callback(outputs, user_data, message)

        try:
            request = self._compiled.submit(input_feed)
        except Error as error:
            results = self._run_again(input_feed, error)
            callback(_select(results, output_names), user_data, "")
        else:
            request.add_done_callback(finish)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> OrtValueVector:
        """Compute outputs as values from inputs that are values."""
        feed = {name: _plain(value) for name, value in input_dict_ort_values.items()}
        return OrtValueVector(map(OrtValue, self.run(output_names, feed, run_options)))

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: Sequence[OrtValue],
        fetch_names: Sequence[str],
        fetches: OrtValueVector,
        fetch_devices: Sequence[Any],
    ) -> None:
        """Compute outputs from inputs in order; append them to `fetches`."""
        values = dict(zip(feed_names, feeds, strict=True))
        fetches.extend(self.run_with_ort_values(fetch_names, values, run_options))

    @property
    def _sess(self) -> _WrappedSession:
        """The session below ONNX Runtime's class, which some programs call directly."""
        return _WrappedSession(self)

    def io_binding(self) -> IOBinding:
        """Return an object that binds inputs and outputs."""
        return IOBinding(self)

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        """Compute the bound outputs from the bound inputs."""
        targets = {name: array for name, array in iobinding.targets.items() if array is not None}
        missing = [name for name in self._input_names if name not in iobinding.inputs]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are not bound.")
        if run_options is not None:
            _check_terminate(run_options)
        with self._event("model_run"), as_onnxruntime():
            results = self._run(iobinding.inputs, targets or None)
        iobinding.take([results[name] for name in iobinding.targets])

    def end_profiling(self) -> str:
        """Write the profile to a file; return its name, or an empty text without profiling."""
        if self._profiler is None:
            return ""
        profiler, self._profiler = self._profiler, None
        return profiler.write()

    def get_profiling_start_time_ns(self) -> int:
        """Return when profiling began, in nanoseconds of `time.perf_counter_ns`."""
        return self._profiler.start_ns if self._profiler else 0

    def _event(self, name: str) -> Any:
        return self._profiler.event(name) if self._profiler else nullcontext()


class _WrappedSession:
    """The methods of ONNX Runtime's session below its class, whose arguments have another order."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def run_with_ort_values(
        self,
        feeds: Mapping[str, OrtValue],
        output_names: Sequence[str],
        run_options: RunOptions | None = None,
    ) -> OrtValueVector:
        """Compute outputs as values from inputs that are values."""
        return self._session.run_with_ort_values(output_names, feeds, run_options)


_NOTHING = object()


def _select(results: Mapping[str, Any], names: Sequence[str] | None) -> list[Any]:
    """Return the outputs in the order of their names; all without names.

    Raises:
        InvalidArgument: there is no such output.
    """
    if not names:
        return [*results.values()]
    try:
        return [results[name] for name in names]
    except KeyError as error:
        raise InvalidArgument.of(f"Invalid output name:{error.args[0]}") from None


def _plain(value: Any) -> Any:
    """Return an input as crosschip takes it: scalars as arrays, bytes as text, values bare."""
    if isinstance(value, OrtValue):
        return value.value
    array = np.asarray(value) if isinstance(value, np.generic) else value
    if isinstance(array, np.ndarray) and array.dtype.kind in "SV":
        texts = [bytes(item).decode() for item in array.ravel().tolist()]
        return np.array(texts, object).reshape(array.shape)
    return array


def _check_terminate(options: RunOptions) -> None:
    if options.terminate:
        raise Fail.of("Exiting due to terminate flag being set to true.")
