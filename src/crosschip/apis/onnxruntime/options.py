"""The options of sessions and runs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crosschip.apis.onnxruntime.enumerations import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
)
from crosschip.apis.onnxruntime.errors import NotImplemented

if TYPE_CHECKING:
    from crosschip.apis.onnxruntime.values import OrtValue

_IN_MODELS = (
    "enable_profiling",
    "execution_mode",
    "graph_optimization_level",
    "inter_op_num_threads",
    "intra_op_num_threads",
)
"""The options that a model may set, as in ONNX Runtime; a file must not name paths to write."""

ENTRY_LENGTHS = (1024, 2048)
"""The maximum lengths of a configuration entry's key and value."""


class _Entries:
    """Options, and configuration entries: texts by key.

    Setting an option that does not exist raises `AttributeError`, and a value of another type
    `TypeError`, as in ONNX Runtime.
    """

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}
        self._is_complete = False

    def __setattr__(self, name: str, value: Any) -> None:
        if vars(self).get("_is_complete"):
            current = getattr(self, name)
            allowed = (str, os.PathLike) if isinstance(current, str) else type(current)
            if not isinstance(value, allowed):
                raise TypeError(
                    f"{name} is a {type(current).__name__}, but {value!r} a {type(value).__name__}"
                )
        super().__setattr__(name, value)

    def _add_entry(self, key: str, value: str) -> None:
        for kind, text, most in zip(("key", "value"), (key, value), ENTRY_LENGTHS, strict=True):
            if len(text) > most or (kind == "key" and not text):
                raise RuntimeError(f"Config {kind} is empty or longer than maximum length {most}")
        self._entries[key] = value

    def _entry(self, key: str) -> str:
        try:
            return self._entries[key]
        except KeyError:
            raise RuntimeError(
                f"SessionOptions does not have configuration with key: {key}"
            ) from None


class SessionOptions(_Entries):
    """How to create a session.

    `intra_op_num_threads`, free dimension overrides, initializers, profiling and
    `optimized_model_filepath` have an effect; the other options are stored only, since the devices
    decide about memory, order and optimization.
    """

    def __init__(self) -> None:
        super().__init__()
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.inter_op_num_threads = 0
        self.intra_op_num_threads = 0
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.profile_file_prefix = "onnxruntime_profile_"
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self.sizes_by_name: dict[str, int] = {}
        self.sizes_by_denotation: dict[str, int] = {}
        self.initializers: dict[str, OrtValue] = {}
        self.providers: list[tuple[str, dict[str, str]]] = []
        self._is_complete = True

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Store a configuration entry."""
        self._add_entry(key, value)

    def get_session_config_entry(self, key: str) -> str:
        """Return a configuration entry."""
        return self._entry(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix the dynamic dimension with a name."""
        self.sizes_by_name[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Fix the dynamic dimensions with a denotation."""
        self.sizes_by_denotation[denotation] = int(size)

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Use a value for an initializer of the model."""
        self.initializers[name] = value

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Use values for initializers of the model that are stored outside of its file."""
        if len(names) != len(values):
            raise RuntimeError("Expecting names and ort_values lists to have equal length")
        self.initializers |= dict(zip(names, values, strict=True))

    def add_provider(self, name: str, options: Mapping[str, str]) -> None:
        """Add a provider to those of the session."""
        self.providers.append((name, dict(options)))

    def has_providers(self) -> bool:
        """Return whether `add_provider` has added providers."""
        return bool(self.providers)

    def load_json(self, text: str) -> None:
        """Set options from JSON text in a model's metadata; ignore others than `_IN_MODELS`.

        Raises:
            RuntimeError: the text is no JSON document of this form, or a value is invalid.
        """
        try:
            entries = json.loads(text)["session_options"]
            for name in _IN_MODELS:
                if name in entries:
                    setattr(self, name, type(getattr(self, name))(entries[name]))
        except (ValueError, LookupError, TypeError) as error:
            raise RuntimeError(f"the ORT config of the model cannot be read: {error!r}") from None

    def register_custom_ops_library(self, path: str) -> None:
        """Raise: kernels for ONNX Runtime run in it alone.

        Raises:
            NotImplemented: always.
        """
        raise NotImplemented.of(
            f"{path}: crosschip loads no kernels of ONNX Runtime; define the operators as "
            f"docs/custom-operators.md says"
        )


class RunOptions(_Entries):
    """How to run: `terminate` ends a run; the other options are stored only."""

    def __init__(self) -> None:
        super().__init__()
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False
        self._is_complete = True

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Store a configuration entry."""
        self._add_entry(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """Return a configuration entry."""
        return self._entry(key)

    def add_active_adapter(self, adapter: Any) -> None:
        """Raise: there are no adapters.

        Raises:
            NotImplemented: always.
        """
        raise NotImplemented.of("crosschip has no adapters; merge them into the model's weights")
