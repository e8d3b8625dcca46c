"""Write a model for each use of an operator in `uses`, with what Paddle computes with it.

Run inside an oracle environment: python operators.py NAME DIRECTORY

Paddle 2 writes each as `.pdmodel`. Paddle 3 appends operators only by Python functions, which leave
out many settings; it writes, as `.json`, what its own translator makes of the program of Paddle 2.
A use that it cannot translate or run is in `refused.txt`.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np
import oracle
import paddle
import uses
from paddle import pir, static
from paddle.base import core
from paddle.base.framework import OpProtoHolder
from paddle.base.proto import framework_pb2
from uses import USES, Use, Variable

IS_PADDLE3 = paddle.__version__.startswith("3")
IN_PLACE = {"MeanOut": "Mean", "VarianceOut": "Variance"}
"""The output slots that must be the variable of an input slot."""


def main(directory: Path) -> None:
    """Write `OPERATOR/SETTING`, with the suffixes of the model and `.npz`, for each use."""
    paddle.enable_static()
    for family in iter_modules(uses.__path__):
        import_module(f"uses.{family.name}")
    for operator, settings in USES.items():
        (directory / operator).mkdir()
        for setting, use in settings.items():
            stem = directory / operator / setting.replace(",", "").replace(" ", "_")
            if not IS_PADDLE3:
                write_paddle2(use, stem)
            elif not use.written_as and not use.holds_sequences:
                with (directory / "refused.txt").open("a") as refused:
                    try:
                        write_paddle3(use, stem)
                    except (SystemError, RuntimeError, ValueError, NotImplementedError) as error:
                        reason = str(error).strip().splitlines()[-1]
                        refused.write(f"{operator}, {setting}: {reason}\n")


def write_paddle2(use: Use, stem: Path) -> None:
    """Write `.pdmodel`, `.pdiparams` if there are parameters, and `.npz`."""
    save(use, stem)
    record(use, stem, ".pdmodel")
    if use.written_as:
        rename(use, stem.with_suffix(".pdmodel"))


def write_paddle3(use: Use, stem: Path) -> None:
    """Write `.json`, `.pdiparams` if there are parameters, and `.npz`."""
    program = save(use, stem)
    try:
        with paddle.pir_utils.OldIrGuard():
            translated = pir.translate_to_pir(program.desc)
        file = str(stem.with_suffix(".json"))
        core.serialize_pir_program(translated, file, True, False, True)
        record(use, stem, ".json")
    except BaseException:
        for path in stem.parent.glob(f"{stem.name}.*"):
            path.unlink()
        raise
    stem.with_suffix(".pdmodel").unlink()


def save(use: Use, stem: Path) -> Any:
    """Write a program of the operator alone, with its parameters, and return the program."""
    scope, executor = core.Scope(), static.Executor(paddle.CPUPlace())
    old_form = paddle.pir_utils.OldIrGuard() if IS_PADDLE3 else nullcontext()
    with old_form, static.scope_guard(scope):
        program = static.Program()
        block = program.global_block()
        inputs = {
            slot: [declare(block, scope, *each) for each in named(slot, given)]
            for slot, given in use.inputs.items()
        }
        outputs = {
            slot: [block.create_var(name=f"{slot}.{i}", dtype="float32") for i in range(count)]
            for slot, count in (output_counts(use) | besides(use)).items()
        }
        outputs |= {out: inputs[slot] for out, slot in IN_PLACE.items() if out in outputs}
        block.append_op(
            type=use.operator, inputs=inputs, outputs=outputs, attrs=dict(use.attributes)
        )
        static.save_inference_model(
            str(stem),
            [v for variables in inputs.values() for v in variables if not v.persistable],
            [variable for slot in output_counts(use) for variable in outputs[slot]],
            executor,
            program=program,
        )
        return static.load_inference_model(str(stem), executor)[0]


def named(slot: str, given: Variable | Sequence[Variable]) -> Iterator[tuple[str, Variable]]:
    """Yield the variables in a slot with names."""
    if isinstance(given, Variable):
        yield slot, given
    else:
        yield from ((f"{slot}.{index}", variable) for index, variable in enumerate(given))


def declare(block: Any, scope: Any, name: str, variable: Variable) -> Any:
    """Return a new variable; a parameter gets its value."""
    dtype = str(variable.array.dtype)
    if not variable.is_saved:
        return block.create_var(
            name=name,
            shape=variable.shape,
            dtype=dtype,
            lod_level=len(variable.levels),
            is_data=True,
            need_check_feed=True,
        )
    scope.var(name).get_tensor().set(variable.array, paddle.CPUPlace())
    return block.create_parameter(name=name, shape=variable.shape, dtype=dtype)


def output_counts(use: Use) -> dict[str, int]:
    """Return how many tensors to hand out, by output slot."""
    first = OpProtoHolder.instance().get_op_proto(use.operator).outputs[0].name
    return dict(use.outputs) or {first: 1}


def besides(use: Use) -> dict[str, int]:
    """Return the output slots that the operator needs and that are not handed out."""
    slots = (slot.name for slot in OpProtoHolder.instance().get_op_proto(use.operator).outputs)
    return {slot: 1 for slot in slots if slot not in output_counts(use)}


def rename(use: Use, file: Path) -> None:
    """Give the operator in a file its older name, without what that did not have."""
    program = framework_pb2.ProgramDesc.FromString(file.read_bytes())
    (op,) = (op for op in program.blocks[0].ops if op.type == use.operator)
    op.type = use.written_as
    for output in [output for output in op.outputs if output.parameter in besides(use)]:
        op.outputs.remove(output)
    file.write_bytes(program.SerializeToString())


def record(use: Use, stem: Path, suffix: str) -> None:
    """Run a model and save what went in and what came out."""
    files = [stem.with_suffix(suffix)]
    if stem.with_suffix(".pdiparams").exists():
        files.append(stem.with_suffix(".pdiparams"))
    given = {
        name: variable.array
        for slot, variables in use.inputs.items()
        for name, variable in named(slot, variables)
        if not variable.is_saved
    }
    levels = {
        name: variable.levels
        for slot, variables in use.inputs.items()
        for name, variable in named(slot, variables)
        if variable.levels
    }
    predictor = oracle.load(files)
    outputs = oracle.run(predictor, given, levels)
    arrays: dict[str, Any] = {f"input:{name}": array for name, array in given.items()}
    for name, of_input in levels.items():
        for level, offsets in enumerate(of_input):
            arrays[f"input:{name}.lod{level}"] = np.array(offsets, np.int64)
    arrays |= {f"output:{index}": array for index, array in enumerate(outputs)}
    for index, name in enumerate(predictor.get_output_names()):
        for level, offsets in enumerate(predictor.get_output_handle(name).lod()):
            arrays[f"lod:{index}:{level}"] = np.array(offsets, np.int64)
    np.savez_compressed(stem.with_suffix(".npz"), **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[2]))
