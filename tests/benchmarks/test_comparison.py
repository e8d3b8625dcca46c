"""Two competitors are compared block by block, and disturbed blocks are left out."""

import math
from collections.abc import Callable, Iterator

import benchmarks.comparison
import pytest
from benchmarks.comparison import Block, Comparison, Estimate, compare
from benchmarks.neighbours import Watch


def test_ratio_and_overhead_of_a_comparison() -> None:
    result = Comparison((Block(2.0, 1.0, 0.0), Block(2.0, 2.0, 0.25), Block(4.0, 4.0, 0.0)))
    assert (result.ours_ms, result.direct_ms, result.others) == (2.0, 2.0, 0.25)
    assert result.ratio.value == 1.0
    assert result.added_us.value == 0.0


def test_blocks_that_agree_leave_no_doubt() -> None:
    assert Estimate.of([3.0, 3.0, 3.0]) == Estimate(3.0, 0.0)
    assert Estimate.of([1.0, 2.0, 3.0]).error == pytest.approx(1.253 * 1.483 / math.sqrt(3))
    assert f"{Estimate(1.25, 0.125):.2f}" == "1.25 ± 0.12"


def opener(name: str, opened: list[str]) -> Callable[[], Callable[[], None]]:
    def compile() -> Callable[[], None]:
        opened.append(name)
        return lambda: None

    return compile


def test_who_is_compiled_first_alternates() -> None:
    opened: list[str] = []
    compare(opener("ours", opened), opener("direct", opened), seconds=1e-4, blocks=2)
    assert opened == ["direct", "ours", "ours", "direct"]


@pytest.mark.parametrize(
    ("shares", "counted"),
    [([0.5, 0.01, 0.06, 0.0], [0.01, 0.0]), ([0.01, 0.02], [0.01, 0.02])],
)
def test_disturbed_blocks_are_repeated(
    shares: list[float], counted: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmarks.comparison, "Watch", watches(shares))
    nothing: list[str] = []
    open = opener("", nothing)
    result = compare(open, open, seconds=1e-4, blocks=2, patience=60)
    assert sorted(block.others for block in result.blocks) == sorted(counted)
    assert len(nothing) == 2 * len(shares)


def test_without_patience_the_calmest_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks.comparison, "Watch", watches([0.5, 0.25]))
    open = opener("", [])
    assert compare(open, open, seconds=1e-4, blocks=2).others == 0.5


def watches(shares: list[float]) -> Callable[[], Watch]:
    """A stand-in for `Watch`: each reports the next share."""
    left: Iterator[float] = iter(shares)

    class Told(Watch):
        def share(self) -> float:
            return next(left)

    return Told


def test_the_share_of_others_is_a_share() -> None:
    watch = Watch()
    sum(range(100_000))
    assert 0 <= watch.share() <= 1
