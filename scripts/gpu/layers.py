"""Layers of networks in PyTorch and in JAX, so that a network is written once for both.

Each engine has images and signals in the layout that suits it: PyTorch with channels first, JAX
with channels last. Weights are written in PyTorch's layout, output channels first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from crosschip.ir import Array


class Layers(Protocol):
    """Layers of one engine; `x` is a tensor of the engine."""

    def weight(self, array: Array) -> Array:
        """Return a weight in the engine's layout, from output channels, input channels, sizes."""

    def spatial(self, x: Any) -> Any:
        """Return images or signals in the engine's layout, from channels first."""

    def conv(
        self,
        x: Any,
        weight: Any,
        bias: Any,
        *,
        stride: int = 1,
        pad: int = 0,
        groups: int = 1,
        dilation: int = 1,
    ) -> Any:
        """Convolve signals or images, with the same numbers along all spatial axes."""

    def max_pool(self, x: Any) -> Any:
        """Return the maxima of images in windows of 3 by 3 with stride 2 and padding 1."""

    def mean(self, x: Any) -> Any:
        """Return the means over all spatial axes, which stay with size 1."""

    def upsample(self, x: Any) -> Any:
        """Repeat each element of images twice along both axes."""

    def concat(self, tensors: Sequence[Any]) -> Any:
        """Concatenate images along their channels."""

    def tokens(self, x: Any) -> Any:
        """Return images as `[images, positions, channels]`."""

    def join(self, tensors: Sequence[Any]) -> Any:
        """Concatenate `[images, positions, channels]` along their positions."""

    def dense(self, x: Any, weight: Any, bias: Any) -> Any:
        """Multiply the last axis by a matrix `[outputs, inputs]` and add a bias."""

    def normalize(self, x: Any, scale: Any, bias: Any) -> Any:
        """Return the layer normalization along the last axis."""

    def attention(self, query: Any, key: Any, value: Any, heads: int) -> Any:
        """Return scaled dot-product attention of `[batch, words, width]`."""

    def lstm(self, x: Any, inputs: Any, hidden: Any, bias: Any) -> Any:
        """Return the states of a layer at all steps of `[batch, steps, width]`.

        The weights have the gates input, forget, cell, output along their first axis.
        """

    def activate(self, name: str, x: Any) -> Any:
        """Apply `relu`, `gelu`, `silu`, `sigmoid`, `hard_swish`, `hard_sigmoid` or `softmax`.

        Softmax is along the last axis, and GELU is exact.
        """


class TorchLayers:
    """PyTorch's."""

    def weight(self, array: Array) -> Array:
        return array

    def spatial(self, x: Any) -> Any:
        return x

    def conv(
        self,
        x: Any,
        weight: Any,
        bias: Any,
        *,
        stride: int = 1,
        pad: int = 0,
        groups: int = 1,
        dilation: int = 1,
    ) -> Any:
        from torch.nn import functional

        convolution = functional.conv1d if x.ndim == 3 else functional.conv2d
        return convolution(x, weight, bias, stride, pad, dilation, groups)

    def max_pool(self, x: Any) -> Any:
        from torch.nn import functional

        return functional.max_pool2d(x, 3, 2, 1)

    def mean(self, x: Any) -> Any:
        return x.mean(tuple(range(2, x.ndim)), keepdim=True)

    def upsample(self, x: Any) -> Any:
        from torch.nn import functional

        return functional.interpolate(x, scale_factor=2, mode="nearest")

    def concat(self, tensors: Sequence[Any]) -> Any:
        import torch

        return torch.cat(list(tensors), 1)

    def tokens(self, x: Any) -> Any:
        return x.flatten(2).transpose(1, 2)

    def join(self, tensors: Sequence[Any]) -> Any:
        return self.concat(tensors)

    def dense(self, x: Any, weight: Any, bias: Any) -> Any:
        from torch.nn import functional

        return functional.linear(x, weight, bias)

    def normalize(self, x: Any, scale: Any, bias: Any) -> Any:
        from torch.nn import functional

        return functional.layer_norm(x, x.shape[-1:], scale, bias)

    def attention(self, query: Any, key: Any, value: Any, heads: int) -> Any:
        from torch.nn import functional

        parts = [x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (query, key, value)]
        return functional.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2)

    def lstm(self, x: Any, inputs: Any, hidden: Any, bias: Any) -> Any:
        import torch

        start = x.new_zeros(1, x.shape[0], hidden.shape[1])
        weights = [inputs, hidden, bias, torch.zeros_like(bias)]
        options = (True, 1, 0.0, False, False, True)
        return torch.lstm(x, [start, start], weights, *options)[0]

    def activate(self, name: str, x: Any) -> Any:
        from torch.nn import functional

        if name == "softmax":
            return functional.softmax(x, -1)
        return getattr(functional, name.replace("hard_", "hard"))(x)


class JaxLayers:
    """JAX's.

    Args:
        factors: the type to which factors of products are rounded, by its name in NumPy; sums are
            accumulated in float32.
    """

    def __init__(self, factors: str = "float32") -> None:
        self._factors = factors

    def weight(self, array: Array) -> Array:
        if array.ndim < 2:
            return array
        return np.ascontiguousarray(np.moveaxis(array, (1, 0), (-2, -1)))

    def spatial(self, x: Any) -> Any:
        import jax.numpy as jnp

        return jnp.moveaxis(x, 1, -1)

    def conv(
        self,
        x: Any,
        weight: Any,
        bias: Any,
        *,
        stride: int = 1,
        pad: int = 0,
        groups: int = 1,
        dilation: int = 1,
    ) -> Any:
        from jax import lax

        axes, layout = (
            x.ndim - 2,
            ("NHWC", "HWIO", "NHWC") if x.ndim == 4 else ("NWC", "WIO", "NWC"),
        )
        convolved = lax.conv_general_dilated(
            *self._rounded(x, weight),
            (stride,) * axes,
            [(pad, pad)] * axes,
            rhs_dilation=(dilation,) * axes,
            dimension_numbers=layout,
            feature_group_count=groups,
            **self._exact(),
        )
        return convolved + bias

    def max_pool(self, x: Any) -> Any:
        import jax.numpy as jnp
        from jax import lax

        pads = [(0, 0), (1, 1), (1, 1), (0, 0)]
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), pads)

    def mean(self, x: Any) -> Any:
        return x.mean(tuple(range(1, x.ndim - 1)), keepdims=True)

    def upsample(self, x: Any) -> Any:
        return x.repeat(2, 1).repeat(2, 2)

    def concat(self, tensors: Sequence[Any]) -> Any:
        import jax.numpy as jnp

        return jnp.concatenate(list(tensors), -1)

    def tokens(self, x: Any) -> Any:
        return x.reshape(x.shape[0], -1, x.shape[-1])

    def join(self, tensors: Sequence[Any]) -> Any:
        import jax.numpy as jnp

        return jnp.concatenate(list(tensors), 1)

    def dense(self, x: Any, weight: Any, bias: Any) -> Any:
        import jax.numpy as jnp

        return jnp.matmul(*self._rounded(x, weight), **self._exact()) + bias

    def normalize(self, x: Any, scale: Any, bias: Any) -> Any:
        from jax import lax

        centred = x - x.mean(-1, keepdims=True)
        return (
            centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * scale + bias
        )

    def attention(self, query: Any, key: Any, value: Any, heads: int) -> Any:
        import jax
        import jax.numpy as jnp

        batch, words, width = query.shape
        parts = [x.reshape(batch, -1, heads, width // heads) for x in (query, key, value)]
        query, key, value = self._rounded(*parts)
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key, **self._exact())
        shares = jax.nn.softmax(scores * (width // heads) ** -0.5, -1)
        (shares,) = self._rounded(shares)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", shares, value, **self._exact())
        return mixed.reshape(batch, words, width)

    def lstm(self, x: Any, inputs: Any, hidden: Any, bias: Any) -> Any:
        import jax
        import jax.numpy as jnp
        from jax import lax

        def step(state: tuple[Any, Any], row: Any) -> tuple[tuple[Any, Any], Any]:
            before, cell = state
            gates = row + jnp.matmul(*self._rounded(before, hidden), **self._exact())
            enter, forget, candidate, leave = jnp.split(gates, 4, -1)
            kept = jax.nn.sigmoid(forget) * cell
            cell = kept + jax.nn.sigmoid(enter) * jnp.tanh(candidate)
            after = jax.nn.sigmoid(leave) * jnp.tanh(cell)
            return (after, cell), after

        rows = self.dense(x, inputs, bias).swapaxes(0, 1)
        start = jnp.zeros((x.shape[0], hidden.shape[0]), rows.dtype)
        return lax.scan(step, (start, start), rows)[1].swapaxes(0, 1)

    def activate(self, name: str, x: Any) -> Any:
        import jax

        if name == "gelu":
            return jax.nn.gelu(x, approximate=False)
        return getattr(jax.nn, name)(x)

    def _rounded(self, *factors: Any) -> tuple[Any, ...]:
        return tuple(factor.astype(self._factors) for factor in factors)

    def _exact(self) -> dict[str, Any]:
        from jax import lax

        return {"precision": lax.Precision.HIGHEST, "preferred_element_type": np.float32}
