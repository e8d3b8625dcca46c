"""The form of a plan, but for its outline and placement."""

from __future__ import annotations

from crosschip.hal import Options
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.choice import Choice
from crosschip.runtime.plans.sources import Origin
from crosschip.runtime.saving.identity import Identity, Needs

KIND = "plan"
FORMAT_VERSION = 3


@dataclass(frozen=True, slots=True)
class Used:
    """A device that runs something.

    Attributes:
        needs: what it must be.
        module: the module of its class.
        attribute: the name of its class there.
    """

    needs: Needs
    module: str
    attribute: str


@dataclass(frozen=True, slots=True)
class Record:
    """A plan.

    Attributes:
        origin: what the model was loaded from.
        names: of the devices that it could go to.
        devices: those that run something.
        programs: the entry of each segment's program.
        options: how they were compiled.
        identity: by what the compiled model is known.
        told: what the caller was told of the placement: levels and texts.
        choice: how the devices did that `"auto"` means; `None` if the caller named them.
    """

    origin: Origin
    names: tuple[str, ...]
    devices: tuple[Used, ...]
    programs: tuple[Entry, ...]
    options: Options
    identity: Identity
    told: tuple[tuple[int, str], ...]
    choice: Choice | None
