"""The picture of a search: each timed trial is a point and a row, and nothing overlaps."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from tests.drawing.pictures import SVG, check_picture, text_areas

from crosschip.tuning.picture import picture
from crosschip.tuning.search import Trial
from crosschip.tuning.variants import Form, Variant

VARIANTS = st.builds(
    Variant,
    st.sampled_from(["openvino", "onnxruntime", "xla", "npu@" + "host" * 40, "<&>\x00"]),
    st.sampled_from(["float32", "bfloat16", "float16", "int8", "int4", "other"]),
    st.sampled_from([(), ("a", "b")]),
    st.sampled_from([None, *Form]),
    st.sampled_from(["", "percentile"]),
)
TRIALS = st.builds(
    Trial,
    VARIANTS,
    st.none()
    | st.just(0.0)
    | st.floats(0, allow_infinity=False)
    | st.sampled_from([math.nan, math.inf]),
    st.none() | st.floats(0, 1000),
)


@given(st.lists(TRIALS, max_size=40), st.floats(0, 100), st.text())
def test_points_rows_and_labels(trials: list[Trial], accuracy: float, title: str) -> None:
    trials.append(Trial(Variant("openvino"), 0.0, 1.0))
    root = check_picture(picture(trials, trials[-1], accuracy, title))
    timed = [
        trial
        for trial in trials
        if trial.speed is not None and trial.error is not None and math.isfinite(trial.error)
    ]
    circles = root.findall(f"{SVG}circle")
    assert len(circles) == len(timed)
    assert sum(circle.get("class") == "ring" for circle in circles) == 1
    texts = [area.what for area in text_areas(root)]
    assert texts.count("chosen") == 1
    assert any(str(len(trials) - len(timed)) in text for text in texts) or len(trials) == len(timed)
    for number in range(1, len(timed) + 1):
        assert str(number) in texts
    assert {"times as fast as float32", f"allowed: {accuracy:g}", "exact"} <= set(texts)


def test_a_wide_title_is_cut() -> None:
    check_picture(picture([Trial(Variant("xla"), 0.0, 1.0)], Trial(Variant("xla")), 0.1, "𑚺" * 99))


def test_trials_at_one_point_have_labels_of_their_own() -> None:
    trials = [Trial(Variant("openvino"), 1e-3, 2.0) for _ in range(12)]
    root = check_picture(picture(trials, trials[0], 1e-2, "equal"))
    labels = [t for t in root.iter(f"{SVG}text") if "halo" in (t.get("class") or "")]
    assert sorted(int(label.text or "") for label in labels) == list(range(1, 13))
