"""Records how many parameters the model hub counts in the published weights of every catalogued model, for the tests.

    python tools/record_published_counts.py hf_models.json

``hf_models.json`` is the list of https://github.com/AlexsJones/llmfit (llmfit-core/data), whose ``parameters_raw`` is
what Hugging Face counts in a checkpoint's safetensors. Only ``total`` is written: ``holds`` (what a checkpoint carries
beside the model) and ``active`` (what the publisher says that a token passes through) are by hand and stay.
"""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

from orrery.base.files import write_atomically
from orrery.catalog.models import model_names

OUT = Path(__file__).parent.parent / "tests" / "models" / "published_counts.toml"

NOT_COUNTED = {
    "NVFP4": "packed: one word holds several weights",
    "pythia": "masks and rotary tables are stored with the weights",
    "gpt-neo": "masks are stored with the weights",
    "gpt2": "masks are stored with the weights",
    "facebook/opt": "no safetensors: guessed from the size of other files",
    "internlm/internlm2-": "no safetensors: guessed from the size of other files",
    "baichuan-inc/Baichuan-7B": "no safetensors: guessed from the size of other files",
    "deepseek-ai/deepseek-llm-": "no safetensors: guessed from the size of other files",
    "TinyLlama/": "no safetensors: guessed from the size of other files",
    "nvidia/Minitron-8B-Base": "no safetensors: guessed from the size of other files",
    "nvidia/NVIDIA-Nemotron-Nano-12B-v2": "the checkpoint is stored twice",
    "Qwen/Qwen3-Embedding-8B": "published without its head",
    "google/gemma-4-E": "with towers of pictures and sound, whose layers are not known here",
    "google/gemma-3n-E": "with towers of pictures and sound, whose layers are not known here",
    "google/gemma-4-12B": "with an embedder of pictures and sound, which is not counted here",
    "stepfun-ai/Step-3.": "with drafting layers of another shape, and a vision tower, whose layers are not known here",
    "XiaomiMiMo/MiMo-V2.5": "with encoders of pictures and sound, whose layers are not known here",
    "MiniMaxAI/MiniMax-M3": "with a vision tower, and without its drafting layers",
    "mistralai/Mistral-Large-3": "a round figure with the vision tower",
    "mistralai/Mistral-Small-4": "with a vision tower, whose layers are not known here",
    "meituan-longcat/": "with a drafting layer, whose shape is not known here",
}
"""Parts of names whose count on the hub is not that of the model, and why."""


HEADER = """# total: made by tools/record_published_counts.py
# holds, active: by hand, from model cards and reports
"""


def main() -> None:
    """Write the totals of every catalogued model that the list has."""
    import tomli_w

    listed = {entry["name"].casefold(): entry["parameters_raw"] for entry in json.loads(Path(sys.argv[1]).read_text())}
    known: dict[str, Any] = tomllib.loads(OUT.read_text())["models"] if OUT.exists() else {}
    for name in model_names():
        total = listed.get(name.casefold())
        if total is not None and not any(part in name for part in NOT_COUNTED):
            known[name] = {"total": total, **{k: v for k, v in known.get(name, {}).items() if k != "total"}}
    header = (
        "# total: made by tools/record_published_counts.py; holds and active: by hand, from model cards and reports\n"
    )
    write_atomically(OUT, header + tomli_w.dumps({"models": dict(sorted(known.items()))}))


if __name__ == "__main__":
    main()
