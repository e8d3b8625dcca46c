"""The order of runs, for any that come and end in any order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crosschip.drivers.service.queue import Queue

WORK = st.tuples(st.integers(0, 3), st.booleans())


@given(st.lists(WORK | st.none(), max_size=60), st.integers(1, 4))
def test_urgent_work_is_first_and_what_must_be_alone_is(
    steps: list[tuple[int, bool] | None], workers: int
) -> None:
    """Work comes where a step says so, and otherwise the one that is longest under way ends."""
    queue: Queue[tuple[int, int, bool]] = Queue(workers)
    waiting: list[tuple[int, int, bool]] = []
    running: list[tuple[int, int, bool]] = []
    for number, step in enumerate([*steps, *[None] * (2 * len(steps))]):
        if step is not None:
            priority, alone = step
            waiting.append((-priority, number, alone))
            queue.put(waiting[-1], priority, alone=alone)
        elif running:
            running.pop(0)
            queue.end()
        while (work := queue.take()) is not None:
            assert work == min(waiting)
            waiting.remove(work)
            running.append(work)
        assert queue.running == len(running) <= workers
        assert queue.waiting == len(waiting)
        assert len(running) == 1 or not any(alone for _, _, alone in running)
        busy = len(running) == workers or any(alone for _, _, alone in running)
        assert not waiting or busy or (min(waiting)[2] and running), "nothing waits in vain"
    assert not waiting
    assert not running
