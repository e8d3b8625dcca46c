"""`compile` with `wait=False`: an answer from the device that is ready first."""

from __future__ import annotations

import threading
from typing import Any

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
    _try_others(compiled, device, candidates, ready)
    return compiled


def _close(ready: FirstReady, candidates: Candidates) -> None:
    """Close the devices when no compilation for them is in progress."""
    ready.join()
    candidates.close()


def begin_trials(
    compiled: CompiledModel,
    source: Model | Any,
    request: CompileRequest,
    store: Store | None,
    plans: Plans | None,
) -> None:
    """Prepare trials for a model that was loaded by a plan, if they may change the choice.

    They may if its devices were measured on other inputs than those of calls, with dynamic sizes.
    Otherwise only calls whose sizes differ much from the measured ones have devices tried.
    """
    choice = compiled.report.choice
    if choice is None or sum(trial.whole for trial in choice.trials) < 2:
        return
    if all(operand.type.static_shape is not None for operand in compiled.inputs.values()):
        return
    candidates = Candidates.of(source, request, store, plans)
    if candidates is None:
        return
    candidates.adopt(compiled.devices)
    device = choice.order[0]
    ready = FirstReady(candidates, [name for name in candidates.names if name != device])
    _try_others(compiled, device, candidates, ready)


def _try_others(
    compiled: CompiledModel, device: str, candidates: Candidates, ready: FirstReady
) -> None:
    DeviceTrials(compiled, device, candidates, ready, compiled.report.choice)
    compiled.own([candidates])
