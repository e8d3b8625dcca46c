"""The settings of `Config` that have no effect here, with their parameters' defaults.

They select Paddle's own passes, kernels, allocators and logs, or configure hardware and engines
that crosschip reaches through its own devices. No result depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping

_ON: Mapping[str, object] = {"x": True}

METHODS: Mapping[str, Mapping[str, object]] = {
    # passes: crosschip simplifies every model
    "switch_ir_optim": _ON,
    "switch_ir_debug": {"x": True, "passes": ()},
    "set_optimization_level": {"opt_level": 2},
    "delete_pass": {"name": ...},
    "enable_custom_passes": {"passes": (), "custom_pass_only": False},
    "enable_new_ir": _ON,
    "enable_new_executor": _ON,
    "enable_cinn": {},
    "enable_save_optim_model": {"save_optimized_model": False},
    "use_optimized_model": _ON,
    # memory and logs
    "enable_memory_optim": _ON,
    "disable_glog_info": {},
    "enable_profile": {},
    "switch_use_feed_fetch_ops": _ON,
    "switch_specify_input_names": _ON,
    # oneDNN's kernels
    "enable_mkldnn": {},
    "enable_onednn": {},
    "disable_mkldnn": {},
    "disable_onednn": {},
    "disable_mkldnn_fc_passes": {},
    "disable_onednn_fc_passes": {},
    "set_mkldnn_cache_capacity": {"capacity": 0},
    "set_onednn_cache_capacity": {"capacity": 0},
    "set_mkldnn_op": {"op_list": ...},
    "set_onednn_op": {"op_list": ...},
    "enable_ort_optimization": {},
    # kernels of GPUs
    "exp_enable_use_cutlass": {},
    "exp_sparse_conv_using_buffer": {"kernels": ..., "strides": ...},
    # TensorRT, except the precision
    "collect_shape_range_info": {"path": ...},
    "enable_tuned_tensorrt_dynamic_shape": {
        "shape_range_info_path": "",
        "allow_build_at_runtime": True,
    },
    "set_trt_dynamic_shape_info": {
        "min_input_shape": None,
        "max_input_shape": None,
        "optim_input_shape": None,
        "disable_trt_plugin_fp16": False,
    },
    "exp_disable_tensorrt_ops": {"ops": ...},
    "exp_disable_tensorrt_subgraph": {"outputs": ...},
    "exp_disable_tensorrt_dynamic_shape_ops": {"x": ...},
    "mark_trt_engine_outputs": {"output_tensor_names": ()},
    "set_tensorrt_optimization_level": {"level": ...},
    "enable_tensorrt_varseqlen": {},
    "enable_tensorrt_oss": {},
    "enable_tensorrt_dla": {"dla_core": 0},
    "enable_tensorrt_inspector": {"inspector_serialize": False},
    "enable_tensorrt_memory_optim": {"engine_memory_sharing": True, "sharing_identifier": 0},
    # other hardware
    "set_xpu_device_id": {"device_id": 0},
    "set_xpu_config": {"config": ...},
    "enable_opencl": {},
    "set_ipu_config": {
        "ipu_enable_fp16": False,
        "ipu_replica_num": 1,
        "ipu_available_memory_proportion": 1.0,
        "ipu_enable_half_partial": False,
        "ipu_enable_model_runtime_executor": False,
    },
    "load_ipu_config": {"config_path": ...},
    "set_ipu_custom_info": {"ipu_custom_ops_info": (), "ipu_custom_patterns": None},
}

REASONS: Mapping[str, str] = {
    "collect_shape_range_info": "no file is written: devices find out sizes by themselves",
    "enable_profile": "nothing is printed: `crosschip profile` measures where the time goes",
    "enable_save_optim_model": "no file is written: the cache keeps what is compiled",
}
"""The reason to report instead of "has no meaning here", by method."""

ANSWERS: Mapping[str, object] = {
    "ir_optim": True,
    "new_ir_enabled": False,
    "glog_info_disabled": True,
    "use_feed_fetch_ops_enabled": False,
    "specify_input_name": True,
    "mkldnn_enabled": False,
    "onednn_enabled": False,
    "mkldnn_int8_enabled": False,
    "onednn_int8_enabled": False,
    "shape_range_info_collected": False,
    "shape_range_info_path": "",
    "tuned_tensorrt_dynamic_shape": False,
    "trt_allow_build_at_runtime": False,
    "tensorrt_dynamic_shape_enabled": False,
    "tensorrt_varseqlen_enabled": False,
    "tensorrt_dla_enabled": False,
    "tensorrt_inspector_enabled": False,
    "tensorrt_explicit_quantization_enabled": False,
    "tensorrt_optimization_level": 0,
    "lite_engine_enabled": False,
    "use_opencl": False,
    "use_xpu": False,
    "xpu_device_id": 0,
}
"""The constants that their query methods return, whatever was set."""
