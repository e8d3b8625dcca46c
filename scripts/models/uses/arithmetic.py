"""Uses of arithmetic that Paddle Lite does not convert for NNAdapter."""

import numpy as np

from uses import fixed, integers, normal, saved, use, whole

X = normal(2, 3, 4, 5)
HALVES = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 2.4, -2.6, 8388609, np.nan, np.inf], np.float32)
JUST_BELOW = np.nextafter(np.array([0.5, 1.5, -0.5], np.float32), np.float32(0))

use("round", "halves", {"X": HALVES})
use("round", "just below halves", {"X": JUST_BELOW})
use("increment", "float32", {"X": fixed(normal(1))}, step=0.75)
use("increment", "int64", {"X": fixed(integers(7, dtype="int64"))}, step=2.75)
for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    use(name, "int32", {"X": whole(3, 4, dtype="int32"), "Y": whole(3, 4, seed=1, dtype="int32")})
    use(name, "broadcast", {"X": whole(3, 4), "Y": fixed(whole(4, seed=1))})
    use(name, "bool", {"X": normal(3, 4) > 0, "Y": normal(3, 4, seed=1) > 0})
use("bitwise_not", "int64", {"X": whole(3, 4)})
use("bitwise_not", "bool", {"X": normal(3, 4) > 0})

use("mean", "all axes", {"X": X})
use("p_norm", "default", {"X": X})
use("p_norm", "kept", {"X": X}, axis=1, keepdim=True)
use("p_norm", "of all", {"X": X}, asvector=True)
ORDERS = {"one": 1.0, "broken": 2.5, "infinite": np.inf, "negative and infinite": -np.inf}
for name, order in ORDERS.items():
    use("p_norm", f"order {name}", {"X": X}, porder=order, axis=2)
use("p_norm", "how many are not 0", {"X": whole(4, 6, low=0, high=2).astype("float32")}, porder=0.0)

SCALE, BIAS = saved(normal(3, seed=1)), saved(normal(3, seed=2))
use("affine_channel", "NCHW", {"X": X, "Scale": SCALE, "Bias": BIAS}, data_layout="NCHW")
LAST = {"X": normal(2, 4, 5, 3), "Scale": SCALE, "Bias": BIAS}
use("affine_channel", "NHWC", LAST, data_layout="NHWC")
use("affine_channel", "layout left open", LAST)

use("is_empty", "empty", {"X": normal(0, 3)})
use("is_empty", "not empty", {"X": normal(2, 3)})
use("share_data", "rank 4", {"X": X})
use("lod_reset", "levels of a parameter", {"X": X, "Y": saved(integers(0, 1, 2))})
