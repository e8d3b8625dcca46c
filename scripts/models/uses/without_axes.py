"""Uses of operators along an axis, on tensors that have none: 0 and -1 name one of size 1."""

from uses import fixed, normal, use

X = fixed(normal())

for name in ("softmax", "log_softmax"):
    use(name, "no axes", {"X": X}, axis=-1)
    use(name, "no axes, axis 0", {"X": X}, axis=0)
for name in ("arg_max", "arg_min"):
    use(name, "no axes", {"X": X}, axis=-1)
    use(name, "no axes, kept", {"X": X}, axis=0, keepdims=True)
for name in ("top_k_v2", "argsort"):
    use(name, "no axes", {"X": X}, outputs="Out Indices", axis=-1)
    use(name, "no axes, axis 0", {"X": X}, outputs="Out Indices", axis=0)
use("cumsum", "no axes", {"X": X}, axis=0)
use("cumsum", "no axes, exclusive", {"X": X}, axis=-1, exclusive=True, reverse=True)
use("cumsum", "no axes, flattened", {"X": X}, flatten=True, exclusive=True)
use("cumsum", "one element, exclusive", {"X": fixed(normal(1, 1))}, axis=0, exclusive=True)
use("reduce_sum", "no axes, axis -1", {"X": X}, dim=[-1])
use("flatten2", "no axes", {"X": X}, written_as="flatten", axis=0)
use("flatten2", "no axes", {"X": X}, axis=0)
use("flatten_contiguous_range", "no axes", {"X": X}, start_axis=0, stop_axis=-1)
use("squeeze2", "no axes", {"X": X}, axes=[0])
use("prelu", "no axes", {"X": X, "Alpha": fixed(normal(1, seed=1))}, mode="all")
