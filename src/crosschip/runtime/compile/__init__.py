"""Compilation of a model, from the front door to a compiled model.

The modules, in the order in which a call of `crosschip.compile` passes through them:

- `front_door`: `compile` and `explain`; their arguments become one `request`.
- `preparation`: loads and simplifies the model, opens the `devices`, applies mixed precision.
- `task`: places the model, compiles its segments and assembles the result; for several devices
  under `"auto"`, `automatic` measures which one is the fastest.
- `segments`: compiles each segment, or loads its program from the cache (`programs`). If a device
  fails, `failures` finds the operations at fault, which are placed on another device.
- `assembly`: assembles a `CompiledModel` from the programs.

With `wait=False`, `early_answer` compiles for the device that is `first_ready` among the
`candidates`, and `device_trials` tries the others in the background; for a model that a plan has
loaded, when `call_watch` sees a call with other sizes.
"""
