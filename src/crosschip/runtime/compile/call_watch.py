"""Trials for a model that was loaded by a plan, which only unusual calls begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from crosschip.runtime.cache.store import Store
from crosschip.runtime.compile.device_trials import DeviceTrials
from crosschip.runtime.compile.request import CompileRequest
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.plans.plans import Plans

if TYPE_CHECKING:
    from crosschip.runtime.compile.candidates import Candidates
    from crosschip.runtime.compile.first_ready import FirstReady


def watch_calls(
    compiled: CompiledModel,
    source: Any,
    request: CompileRequest,
    store: Store | None,
    plans: Plans | None,
) -> None:
    """Have devices tried when a call's sizes differ much from the measured ones, or none were.

    Args:
        compiled: the model, which a plan has loaded.
        source: the model, or an argument for `crosschip.load`.
        request: the request.
        store: the store of programs and choices; `None` for none.
        plans: stores the plan.
    """
    choice = compiled.report.choice
    if choice is None or sum(trial.whole for trial in choice.trials) < 2:
        return
    if all(operand.type.static_shape is not None for operand in compiled.inputs.values()):
        return
    device, model = choice.order[0], ref(compiled)

    def open_candidates() -> tuple[Candidates, FirstReady] | None:
        # Imported late: importing the compiler takes longer than finding a plan.
        from crosschip.runtime.compile import early_answer

        return early_answer.open_candidates(model, device, source, request, store, plans)

    DeviceTrials(compiled, device, open_candidates, choice)
