"""What a limit of the instruction sets in the environment leaves undone, and is refused for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from crosschip.hal import Support, processor


def is_limited() -> bool:
    """Tell whether the environment limits oneDNN to instruction sets below AVX-512."""
    return os.environ.get("ONEDNN_MAX_CPU_ISA") in ("SSE41", "AVX", "AVX2")


def lacks_avx512() -> bool:
    """Tell whether oneDNN computes without AVX-512: by its environment, or as the processor."""
    return is_limited() or "avx512f" not in processor().split()


def is_declined_for_limit(support: Support) -> bool:
    """Assert that an operation is declined for the limit alone, with its reason.

    Returns:
        Whether it is; a test ends there.
    """
    if support or "quirk limited-" not in support.detail:
        return False
    assert is_limited()
    assert f"ONEDNN_MAX_CPU_ISA={os.environ['ONEDNN_MAX_CPU_ISA']}" in support.reason
    return True


@contextmanager
def ending_where_declined() -> Iterator[None]:
    """Let a test end, as passed, where an operation is declined for the limit with its reason."""
    try:
        yield
    except Exception as error:
        told = f"ONEDNN_MAX_CPU_ISA={os.environ.get('ONEDNN_MAX_CPU_ISA')} here (quirk limited-"
        if not is_limited() or told not in str(error):
            raise
