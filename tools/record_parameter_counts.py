"""Counts the parameters of every catalogued model as `transformers` builds it, and records them for the tests.

    python tools/record_parameter_counts.py [NAME …]

Needs torch and transformers (in an environment of their own, with this package's ``src`` on PYTHONPATH). Models are
built on the meta device: shapes without memory. Families that transformers does not have are left out; their counts
are checked against what their publishers state (tests/models/test_parameter_counts.py).
"""

import sys
import tomllib
from pathlib import Path
from typing import Any

from orrery.base.files import write_atomically
from orrery.catalog.models import model_names, published_config

OUT = Path(__file__).parent.parent / "tests" / "models" / "parameter_counts.toml"

SAME_SHAPE = {"aquila": "llama", "yi": "llama", "kimi_k2": "deepseek_v3", "minimax_m3": "minimax_m3_vl_text"}
"""Families outside transformers whose layers have the shapes of one inside."""

NOT_SHAPES = ("quantization_config", "architectures", "auto_map", "torch_dtype", "dtype")
"""Config keys that do not change shapes but ask for other libraries."""


def plain(config: dict[str, Any]) -> dict[str, Any]:
    """The config with its shape-giving keys only, in nested tables too."""
    retained = {k: plain(v) if isinstance(v, dict) else v for k, v in config.items() if k not in NOT_SHAPES}
    if "model_type" in retained:
        retained["model_type"] = SAME_SHAPE.get(retained["model_type"], retained["model_type"])
    return retained


def build(config: dict[str, Any]) -> Any:
    """The model on the meta device, or None where transformers does not know the type."""
    import torch
    import transformers
    from transformers.models.auto import modeling_auto as auto

    fields = plain(config)
    kind = fields.pop("model_type")
    tied = fields.pop("tie_word_embeddings", None)
    if kind not in transformers.CONFIG_MAPPING or kind in NOT_AS_PUBLISHED:
        return None
    has_wrapper = kind in auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
    if has_wrapper and kind not in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and "text_config" not in fields:
        towers = {k: fields.pop(k) for k in ("vision_config",) if k in fields}
        fields = {"text_config": fields, **towers}
    options = fields if tied is None else {**fields, "tie_word_embeddings": tied}
    built = transformers.AutoConfig.for_model(kind, **options)
    for classes in (
        auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES if "text_config" in fields else {},
        auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES if kind not in ENCODERS else {},
        auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
        auto.MODEL_MAPPING_NAMES,
    ):
        if kind in classes and (cls := getattr(transformers, class_name(classes[kind]), None)) is not None:
            with torch.device("meta"):
                return cls._from_config(built)
    return None


NOT_AS_PUBLISHED = {
    "mt5": "transformers 5 ties its head whatever the config says; the published weights do not",
    "longcat_flash": "transformers makes room for the weights of experts that compute nothing; none are published",
}
"""Families that transformers builds otherwise than their weights were published."""

ENCODERS = ("bert", "roberta", "xlm-roberta", "modernbert")
"""Counted without a language-modelling head, as they are used."""


def class_name(entry: str | tuple[str, ...]) -> str:
    """The auto classes list one class, or several of which the first is the default."""
    return entry if isinstance(entry, str) else entry[0]


def count(config: dict[str, Any]) -> tuple[str, int] | None:
    """Class name and number of parameters; tied weights once."""
    if (model := build(config)) is None:
        return None
    model.tie_weights()
    has_tower = "vision_config" in config
    seen = {id(p): p.numel() for name, p in model.named_parameters() if has_tower or not name_of_tower(name)}
    return type(model).__name__, sum(seen.values())


def name_of_tower(name: str) -> bool:
    """Whether a parameter belongs to the default tower that a class adds to a config without one."""
    return "vision" in name or "visual" in name or "projector" in name


def count_or_say(name: str, config: dict[str, Any]) -> tuple[str, int] | None:
    """``count``; where transformers does not know the type or refuses the config, says so and goes on."""
    try:
        found = count(config)
    except Exception as error:
        print(f"{name}: transformers refuses it: {error!r}"[:300], file=sys.stderr)
        return None
    if found is None:
        print(f"{name}: transformers has no {config['model_type']}", file=sys.stderr)
    return found


def main() -> None:
    """Recount what is named on the command line (all, without names) and write the file."""
    import tomli_w
    import transformers

    known: dict[str, Any] = tomllib.loads(OUT.read_text()) if OUT.exists() else {}
    entries: dict[str, Any] = known.get("models", {}) if len(sys.argv) > 1 else {}
    cache: dict[str, tuple[str, int] | None] = {}
    for name in sys.argv[1:] or model_names():
        config = published_config(name)
        key = repr(plain(config))
        if key not in cache:
            cache[key] = count_or_say(name, config)
        if (found := cache[key]) is None:
            continue
        entries[name] = {"class": found[0], "num_parameters": found[1]}
        print(name, *found)
    content = {"transformers": transformers.__version__, "models": dict(sorted(entries.items()))}
    header = "# made by: python tools/record_parameter_counts.py\n"
    write_atomically(OUT, header + tomli_w.dumps(content))


if __name__ == "__main__":
    main()
