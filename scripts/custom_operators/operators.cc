// The operators of the package `filters` as Paddle's own custom operators; see record.py.
#include <algorithm>
#include <cmath>

#include "paddle/extension.h"

using paddle::Tensor;

std::vector<Tensor> Softclip(const Tensor& x, float bound) {
    auto out = paddle::empty_like(x);
    const float* from = x.data<float>();
    float* to = out.data<float>();
    for (int64_t i = 0; i < x.numel(); i++) to[i] = from[i] / (1 + bound * std::abs(from[i]));
    return {out};
}

std::vector<Tensor> Tiled(const Tensor& x, int64_t times) {
    auto shape = x.shape();
    auto out = paddle::empty({shape[0], shape[1] * times}, x.dtype());
    const float* from = x.data<float>();
    float* to = out.data<float>();
    for (int64_t i = 0; i < shape[0]; i++)
        for (int64_t t = 0; t < times; t++)
            for (int64_t j = 0; j < shape[1]; j++) *to++ = from[i * shape[1] + j];
    return {out};
}

std::vector<std::vector<int64_t>> TiledShape(std::vector<int64_t> x, int64_t times) {
    return {{x[0], x[1] * times}};
}

std::vector<Tensor> Median(const Tensor& x) {
    auto shape = x.shape();
    auto out = paddle::empty_like(x);
    const float* from = x.data<float>();
    float* to = out.data<float>();
    int64_t width = shape.back();
    for (int64_t i = 0; i < x.numel(); i++) {
        int64_t j = i % width, row = i - j;
        float a = from[row + std::max<int64_t>(j - 1, 0)], b = from[i];
        float c = from[row + std::min<int64_t>(j + 1, width - 1)];
        to[i] = std::max(std::min(a, b), std::min(std::max(a, b), c));
    }
    return {out};
}

PD_BUILD_OP(softclip).Inputs({"X"}).Outputs({"Out"}).Attrs({"bound: float"}).SetKernelFn(PD_KERNEL(Softclip));
PD_BUILD_OP(tiled)
    .Inputs({"X"})
    .Outputs({"Out"})
    .Attrs({"times: int64_t"})
    .SetKernelFn(PD_KERNEL(Tiled))
    .SetInferShapeFn(PD_INFER_SHAPE(TiledShape));
PD_BUILD_OP(median_of_three).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(Median));
