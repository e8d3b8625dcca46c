"""Print the least versions of what crosschip and its quick tests need, as pip takes them.

`pip install --requirement` of what it prints has the oldest of each package that is promised to do.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

_PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def main() -> None:
    """Print `NAME==VERSION` for each `NAME>=VERSION`."""
    project = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))
    own, quick = project["project"]["dependencies"], project["dependency-groups"]["quick"]
    for requirement in (*own, *quick):
        print(requirement.replace(">=", "=="))


if __name__ == "__main__":
    main()
