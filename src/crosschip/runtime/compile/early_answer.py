"""`compile` with `wait=False`: an answer from the device that is ready first."""

from __future__ import annotations

import threading
from typing import Any
from weakref import ref

from crosschip.ir import Model
from crosschip.runtime.cache.store import Store
from crosschip.runtime.compile.candidates import Candidates
from crosschip.runtime.compile.device_trials import DeviceTrials
from crosschip.runtime.compile.first_ready import FirstReady
from crosschip.runtime.compile.request import CompileRequest
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.placement.log_messages import log, messages
from crosschip.runtime.plans.plans import Plans


def compile_first(
    source: Model | Any, request: CompileRequest, store: Store | None, plans: Plans | None
) -> CompiledModel | None:
    """Compile a model for the device that is ready first; the others will be tried.

    Args:
        source: the model, or an argument for `crosschip.load`.
        request: the request.
        store: the store of programs and choices; `None` for none.
        plans: stores the plan; `None` if the model can have none.

    Returns:
        The model, whose trials have not begun; `None` if there is nothing to choose from, or no
        device runs the whole model.

    Raises:
        Error: as for `crosschip.compile`, but not for devices.
    """
    candidates = Candidates.of(source, request, store, plans)
    if candidates is None:
        return None
    ready = FirstReady(candidates, candidates.names)
    try:
        with candidates.recording():
            candidates.load()
            first = ready.first()
    except BaseException:
        if ready.is_active:  # and cannot be interrupted
            threading.Thread(target=_close, args=(ready, candidates), daemon=True).start()
        else:
            candidates.close()
        raise
    if first is None:
        candidates.close()
        return None
    device, compiled = first
    log(messages(compiled.placement))
    DeviceTrials(compiled, device, lambda: (candidates, ready))
    return compiled


def _close(ready: FirstReady, candidates: Candidates) -> None:
    """Close the devices when no compilation for them is in progress."""
    ready.join()
    candidates.close()


def open_candidates(
    compiled: ref[CompiledModel],
    device: str,
    source: Model | Any,
    request: CompileRequest,
    store: Store | None,
    plans: Plans | None,
) -> tuple[Candidates, FirstReady] | None:
    """Open the devices for a model that was loaded by a plan.

    Args:
        compiled: the model.
        device: the name of its device.
        source: as for `compile_first`.
        request: as for `compile_first`.
        store: as for `compile_first`.
        plans: as for `compile_first`.

    Returns:
        The devices, and the compilations for all but its own; `None` if there is nothing to choose
        from.
    """
    candidates, model = Candidates.of(source, request, store, plans), compiled()
    if candidates is None or model is None:
        return None
    candidates.adopt(model.devices)
    return candidates, FirstReady(candidates, [n for n in candidates.names if n != device])
