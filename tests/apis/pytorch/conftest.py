"""Tests that need PyTorch, which the group `quick` does not install."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]
