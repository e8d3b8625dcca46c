"""Uses of operators of which the statistics for training are handed out as well."""

from uses import normal, saved, use

X = normal(2, 6, 4, 5)
AFFINE = {"Scale": saved(normal(6)), "Bias": saved(normal(6, seed=1))}
OUTPUTS = "Y Mean Variance"

use("group_norm", "statistics too", {"X": X, **AFFINE}, outputs=OUTPUTS, groups=2)
use("layer_norm", "statistics too", {"X": X}, outputs=OUTPUTS)
use("layer_norm", "statistics of the last axes", {"X": X}, outputs=OUTPUTS, begin_norm_axis=2)
