"""An observer that records what it is told."""

from __future__ import annotations

from crosschip.progress import Observer, Task


class Recorder(Observer):
    """Records tasks as they start and end, and their steps."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.tasks: list[Task] = []
        self.steps: list[tuple[str, str]] = []

    def on_start(self, task: Task) -> None:
        self.events.append(("start", task.name))
        self.tasks.append(task)

    def on_change(self, task: Task) -> None:
        if task.detail:
            self.steps.append((task.name, task.detail))

    def on_end(self, task: Task) -> None:
        self.events.append(("end", task.name))

    @property
    def names(self) -> list[str]:
        """The names of the tasks, in the order in which they started."""
        return [task.name for task in self.tasks]

    def details(self, name: str) -> list[str]:
        """The steps of the tasks of a name."""
        return [detail for other, detail in self.steps if other == name]

    def check_ended(self) -> None:
        """Check that each task that has started has ended once."""
        starts = sorted(name for event, name in self.events if event == "start")
        assert starts == sorted(name for event, name in self.events if event == "end")
