"""Predictors and handles, where Paddle's own behaviour is not recorded."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from crosschip.apis import paddle_inference as inference
from crosschip.apis.paddle_inference import Config, Predictor
from crosschip.importers.paddle.messages import ProgramDesc, message_class
from crosschip.ir import InputError, UnsupportedError

X = np.linspace(-1, 1, 2 * 3 * 16 * 16, dtype=np.float32).reshape(2, 3, 16, 16)


@pytest.fixture(autouse=True)
def _reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Config, "devices", ["reference"])


@pytest.fixture
def predictor(models: Path) -> Predictor:
    return inference.create_predictor(Config(str(models / "layouts" / "json"), "inference"))


def test_inputs_in_order_give_outputs_in_order(predictor: Predictor) -> None:
    (output,) = predictor.run([X]) or []
    predictor.get_input_handle("x").copy_from_cpu(X)
    assert predictor.run() is None
    np.testing.assert_array_equal(predictor.get_output_handle("fetch_name_0").copy_to_cpu(), output)
    with pytest.raises(InputError, match="0 inputs are given, but the model takes 1"):
        predictor.run([])


def test_shared_data_are_read_as_they_are_when_it_runs(predictor: Predictor) -> None:
    given, shared = predictor.get_input_handle("x"), X.copy()
    made = predictor.get_output_handle("fetch_name_0")
    given.share_external_data(shared)
    predictor.run()
    before = made.copy_to_cpu()
    shared *= 2
    predictor.run()
    after = made.copy_to_cpu()
    assert not np.allclose(before, after)
    given.copy_from_cpu(X * 2)
    predictor.run()
    np.testing.assert_array_equal(made.copy_to_cpu(), after)
    assert (shared == X * 2).all()  # what was shared is not what was copied into
    with pytest.raises(InputError, match="share_external_data: str"):
        given.share_external_data("x")


def test_copied_data_are_the_predictors(predictor: Predictor) -> None:
    given, made = (
        predictor.get_input_handle("x"),
        predictor.get_output_handle("fetch_name_0"),
    )
    mine = X.copy()
    for _ in range(2):  # into new memory, and into what was there
        given.copy_from_cpu(mine)
        mine[:] = 0
        predictor.run()
        assert not np.allclose(made.copy_to_cpu()[0], made.copy_to_cpu()[1])
        mine[:] = X


def test_integers_that_the_models_type_does_not_hold_are_refused(models: Path) -> None:
    folder = models / "operators" / "pdmodel" / "cast"
    predictor = inference.create_predictor(Config(str(folder / "from_bool.pdmodel"), ""))
    (name,) = predictor.get_input_names()
    predictor.get_input_handle(name).copy_from_cpu(np.ones((2, 2), np.float32))
    with pytest.raises(InputError, match=name):
        predictor.run()


def test_sequences_need_their_levels(models: Path) -> None:
    path = models / "operators" / "pdmodel" / "sequence_pool" / "average.pdmodel"
    predictor = inference.create_predictor(Config(str(path), ""))
    (name,) = predictor.get_input_names()
    handle = predictor.get_input_handle(name)
    handle.copy_from_cpu(np.ones((6, 2), np.float32))
    with pytest.raises(InputError, match="needs 1 levels of LoD, but has 0"):
        predictor.run()
    for wrong in ([[1, 6]], [[0, 4, 2]], 3):
        with pytest.raises(InputError, match="LoD"):
            handle.set_lod(wrong)  # type: ignore[arg-type]


def test_sizes_that_the_file_does_not_say_are_compiled_for_once(
    models: Path, caplog: pytest.LogCaptureFixture
) -> None:
    content = (models / "operators" / "pdmodel" / "relu" / "rank_1.pdmodel").read_bytes()
    program = message_class(ProgramDesc).FromString(content)
    variables = program.blocks[0].vars  # type: ignore[attr-defined]
    for declared in (v for v in variables if v.type.type == 7):
        declared.type.lod_tensor.tensor.dims[:] = [5]
    config, content = Config(), program.SerializeToString()
    config.set_model_buffer(content, len(content), b"", 0)
    predictor = inference.create_predictor(config)
    (given,), (made,) = predictor.get_input_names(), predictor.get_output_names()
    caplog.set_level("INFO", "crosschip")
    for count in (4, 50, 7):
        predictor.get_input_handle(given).copy_from_cpu(np.arange(-1, count, dtype=np.float32))
        predictor.run()
        found = predictor.get_output_handle(made).copy_to_cpu()
        np.testing.assert_array_equal(found, [0, *range(count)])
    assert sum("compiling anew" in record.message for record in caplog.records) == 1


def test_clones_run_in_threads_at_once(predictor: Predictor) -> None:
    clones = [predictor.clone() for _ in range(4)]

    def work(number: int) -> None:
        clones[number].get_input_handle("x").copy_from_cpu(X * number)
        for _ in range(3):
            clones[number].run()

    threads = [Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, clone in enumerate(clones):
        (expected,) = predictor.run([X * number]) or []
        np.testing.assert_array_equal(
            clone.get_output_handle("fetch_name_0").copy_to_cpu(), expected
        )


def test_hooks_are_refused(predictor: Predictor) -> None:
    with pytest.raises(UnsupportedError, match="intermediate results"):
        predictor.register_output_hook(print)


def test_a_pool_has_as_many_predictors_as_asked_for(models: Path) -> None:
    pool = inference.PredictorPool(Config(str(models / "layouts" / "json"), "inference"), 2)
    assert pool.retrieve(0) is not pool.retrieve(1)
    with pytest.raises(InputError, match="no predictor 2"):
        pool.retrieve(2)
