"""What `crosschip.load` takes of PyTorch, and what it says of what it does not take."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.importers.pytorch.programs import save

import crosschip
from crosschip.importers import file_metadata
from crosschip.ir import InputError, ModelFileError, UnsupportedError


def linear() -> Any:
    import torch

    torch.manual_seed(4)
    return torch.nn.Linear(4, 3)


def test_a_module_keeps_names_weights_and_mode(capfd: pytest.CaptureFixture[str]) -> None:
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = linear()
            self.drop = torch.nn.Dropout(0.9)

        def forward(self, x: Any, *, scale: Any) -> Any:
            y = self.drop(self.layer(x)) * scale
            return {"scores": y, "last": y[:, -1]}

    module = Net()
    module.layer.eval()
    x, scale = torch.randn(2, 5, 4), torch.tensor(2.0)
    model = crosschip.load(
        module,
        example_inputs={"x": x, "scale": scale},
        dynamic_shapes={"x": {0: torch.export.Dim("batch")}, "scale": None},
    )
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert [each.training for each in (module, module.layer, module.drop)] == [True, False, True]
    assert model.name == "Net"
    assert str(model.inputs["x"].type) == "float32[batch, 5, 4]"
    assert list(model.inputs) == ["x", "scale"]
    assert list(model.outputs) == ["scores", "last"]
    expected = module.layer.weight.detach().numpy().copy()
    weights = {
        operand.name: operand.content
        for operation in model.operations
        for operand in operation.inputs
        if operand is not None and operand.content is not None
    }
    np.testing.assert_array_equal(weights["layer.weight.transposed"], expected.T)
    with torch.no_grad():
        module.layer.weight.zero_()
    with crosschip.compile(model, "reference", cache=False) as compiled:
        outputs = compiled.run({"x": torch.ones(3, 5, 4), "scale": scale})
    reference = 2 * (expected.sum(1) + module.layer.bias.detach().numpy())
    np.testing.assert_allclose(outputs["scores"], np.tile(reference, (3, 5, 1)), rtol=1e-5)


def test_a_program_in_memory_and_in_a_file(tmp_path: Path) -> None:
    import torch

    module, x = linear(), torch.randn(2, 4)
    program = torch.export.export(module, (x,))
    path = tmp_path / "net.pt2"
    path.write_bytes(save(program))
    renamed = tmp_path / "net.bin"
    renamed.write_bytes(path.read_bytes())
    with crosschip.compile(program, "onnxruntime", cache=False) as compiled:
        np.testing.assert_allclose(compiled(x), module(x).detach(), rtol=1e-5)
    expected = str(crosschip.load(program)).partition("\n")[2]
    for source in (path, tmp_path, renamed, path.read_bytes()):
        assert str(crosschip.load(source)).partition("\n")[2] == expected
    metadata = file_metadata(renamed)
    assert metadata["format"] == "exported program of PyTorch, archive version 0"
    assert metadata["producer"] == f"PyTorch {torch.__version__}"


def test_weights_of_other_types_and_large_ones() -> None:
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(300, 8).bfloat16()
            self.register_buffer("offsets", torch.arange(300))
            self.register_buffer("mask", torch.arange(300) % 3 == 0)

        def forward(self, ids: Any) -> Any:
            return self.table(ids).float(), self.offsets[ids], self.mask[ids]

    module, ids = Net(), torch.tensor([[1, 299], [6, 0]])
    model = crosschip.load(module, example_inputs=(ids,))
    with crosschip.compile(model, "reference", cache=False) as compiled:
        for output, expected in zip(compiled(ids), module(ids), strict=True):
            np.testing.assert_array_equal(output, expected.detach())


def test_errors_say_what_to_pass() -> None:
    import torch

    module, x = linear(), torch.randn(2, 4)
    with pytest.raises(InputError, match=r"Linear.*pass its arguments: crosschip.load\(model, exa"):
        crosschip.load(module)
    with pytest.raises(InputError, match="is a module of PyTorch, which is exported with example"):
        crosschip.compile(module, "reference")
    with pytest.raises(InputError, match=r"do not fit its forward: too many positional arguments"):
        crosschip.load(module, example_inputs=(x, x))
    with pytest.raises(InputError, match="example_inputs and dynamic_shapes are for modules"):
        crosschip.load(torch.export.export(module, (x,)), example_inputs=(x,))
    with pytest.raises(InputError, match=r"are for a torch\.nn\.Module; leave them out"):
        crosschip.load(b"content", example_inputs=(x,))
    fixed = torch.nn.Flatten(0).eval()
    fixed.forward = lambda x: x.reshape(8)
    with pytest.raises(UnsupportedError, match=r"cannot export it: .*specialized it to be a const"):
        crosschip.load(fixed, example_inputs=(x,), dynamic_shapes=({0: "batch"},))


def test_what_cannot_be_expressed_is_refused() -> None:
    import torch

    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: Any) -> Any:
            self.count += 1
            return x + self.count

    class Eigenvalues(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.linalg.eigvals(x)

    with pytest.raises(UnsupportedError, match=r"the Counter .* changes 'count' in place"):
        crosschip.load(Counter(), example_inputs=(torch.ones(1),))
    with pytest.raises(UnsupportedError, match=r"the Eigenvalues .*: .*op='aten\.linalg_eig'"):
        crosschip.load(Eigenvalues(), example_inputs=(torch.eye(2),))


def test_pytorch_is_imported_for_its_files_only(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "net.pt2"
    path.write_bytes(save(torch.export.export(linear(), (torch.ones(1, 4),))))
    program = f"""
        import sys, crosschip
        from crosschip.importers import file_metadata
        from onnx import parser
        model = parser.parse_model('''<ir_version: 8, opset_import: ["" : 17]>
            g (float[2] x) => (float[2] y) {{ y = Relu(x) }}''')
        crosschip.load(model.SerializeToString())
        file_metadata({str(path)!r})
        assert "torch" not in sys.modules
        sys.modules["torch"] = None
        try:
            crosschip.load({str(path)!r})
        except crosschip.UnsupportedError as error:
            print(error)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], check=True, capture_output=True, text=True
    )
    assert 'which PyTorch reads: pip install "crosschip[torch]"' in result.stdout


def test_a_folder_with_several_programs(tmp_path: Path) -> None:
    for name in ("a.pt2", "b.pt2"):
        (tmp_path / name).write_bytes(b"PK\x03\x04")
    with pytest.raises(ModelFileError, match=r"2 programs of PyTorch: a\.pt2, b\.pt2; name one"):
        crosschip.load(tmp_path)
