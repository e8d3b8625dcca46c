"""Models of texts with loops, sequences and strings: in ONNX Script, and PyTorch's scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from corpus.entry import Input
from corpus.made import maker


def _save(name: str, path: Path) -> None:
    """Save a model in ONNX Script."""
    import onnx

    from corpus.made import _scripts

    onnx.save(getattr(_scripts, name).to_model_proto(), path)


@maker(
    "greedy-search",
    family="GRU with a search",
    origin="onnxscript, a Loop that ends at a word",
    inputs={"state": Input(shape=(1, 16))},
)
def greedy_search(path: Path) -> None:
    """Words one after the other until one ends the text, 20 at most."""
    _save("greedy_search", path)


@maker(
    "beam-search",
    family="LSTM with a beam search",
    origin="torch.jit.script, torch.onnx.export(dynamo=False)",
    inputs={"state": Input(shape=(1, 16)), "length": Input(value=12)},
)
def beam_search(path: Path) -> None:
    """The three best texts, kept from step to step; as many steps as are asked for."""
    import torch
    from torch import Tensor, nn

    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(30, 16)
            self.update = nn.Linear(32, 16)
            self.scores = nn.Linear(16, 30)

        def forward(self, word: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
            state = torch.tanh(self.update(torch.cat([self.words(word), state], 1)))
            return torch.log_softmax(self.scores(state), -1), state

    class Search(nn.Module):
        def __init__(self, cell: nn.Module) -> None:
            super().__init__()
            self.cell = cell

        def forward(self, state: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
            beams = 3
            state = state.expand(beams, 16)
            texts = torch.ones(beams, 1, dtype=torch.int64)
            totals = torch.tensor([0.0, -1e9, -1e9])
            for _ in range(int(length)):
                scores, state = self.cell(texts[:, -1], state)
                every = (scores + totals.unsqueeze(1)).reshape(-1)
                totals, best = torch.topk(every, beams)
                origin = torch.div(best, 30, rounding_mode="floor")
                word = best - origin * 30
                texts = torch.cat([texts[origin], word.unsqueeze(1)], 1)
                state = state[origin]
            return texts, totals

    torch.manual_seed(2)
    state, length = torch.randn(1, 16), torch.tensor(12)
    cell = torch.jit.trace(Cell().eval(), (torch.ones(3, dtype=torch.int64), torch.randn(3, 16)))
    search: Any = torch.jit.script(Search(cell).eval())
    torch.onnx.export(
        *(search, (state, length), path),
        dynamo=False,
        opset_version=17,
        input_names=["state", "length"],
        output_names=["texts", "totals"],
    )


@maker(
    "words-of-texts",
    family="text preparation",
    origin="onnxscript, operators on strings",
    inputs={"text": Input(values=["Hello wonderful World", "an APPLE a day", "x"])},
)
def divided_words(path: Path) -> None:
    """Texts with a stop, divided into words."""
    _save("divided_words", path)


@maker(
    "sums-of-a-sequence",
    family="control flow",
    origin="onnxscript, an If in a Loop over a sequence that is made by a split",
    inputs={"x": Input(shape=(12, 4))},
)
def sums_of_a_sequence(path: Path) -> None:
    """Rows that are added to one of two sums, by their sign; where it ends is computed."""
    _save("sums_of_a_sequence", path)
