"""Make one model: `python -m corpus.made NAME`, where the tools are installed."""

import sys

from corpus.made import all_made


def main(name: str) -> None:
    """Make a model, whose files appear together or not at all."""
    made = all_made()[name]
    folder = made.entry.file.parent
    part = folder.with_name(f"{folder.name}.part")
    part.mkdir(parents=True, exist_ok=True)
    made.make(part / made.entry.path.name)
    part.rename(folder)


if __name__ == "__main__":
    main(sys.argv[1])
