"""Runs in a Python that has the frameworks: reads launches as JSON, gives each to its framework's own parser.

Nothing of orrery is imported, and no device is needed. Input: a list of {"case", "framework", "words", "config",
"devices", "degrees"}; output: a list of {"case", "framework", "said"}, empty where the parser took everything, and the
frameworks that are not installed.
"""

import contextlib
import importlib.util
import io
import json
import os
import sys
import tempfile
import traceback
import types
from pathlib import Path


def megatron_lm(launch):
    """Flags through argparse, the checks of values against each other, the model's configuration."""
    import torch
    from megatron.core.transformer import transformer_config
    from megatron.training import arguments

    torch.cuda.get_device_capability = lambda *_: (10, 0)
    torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(major=10, minor=0, name="B200")
    arguments.is_te_min_version = transformer_config.is_te_min_version = lambda *_, **__: True
    os.environ |= {"WORLD_SIZE": str(launch["devices"]), "RANK": "0", "LOCAL_RANK": "0"} | launch["environment"]
    sys.argv = ["pretrain_gpt.py", *launch["words"], "--no-rope-fusion"]  # its kernel needs a device
    args = arguments.parse_args()
    arguments.validate_args(args)
    config = arguments.core_transformer_config_from_args(args)
    return {
        "tensor_model_parallel_size": config.tensor_model_parallel_size,
        "pipeline_model_parallel_size": config.pipeline_model_parallel_size,
        "virtual_pipeline_model_parallel_size": config.virtual_pipeline_model_parallel_size,
        "sequence_parallel": config.sequence_parallel,
        "expert_tensor_parallel_size": config.expert_tensor_parallel_size,
        "recompute_granularity": config.recompute_granularity,
        "fp8_recipe": config.fp8_recipe if config.fp8 else None,
        "bf16": config.bf16,
        "fp16": config.fp16,
        "rotary_base": args.rotary_base,
        "data_parallel_size": args.data_parallel_size,
        "moe_token_dispatcher_type": config.moe_token_dispatcher_type,
        "num_layers_in_first_pipeline_stage": config.num_layers_in_first_pipeline_stage,
        "num_layers_in_last_pipeline_stage": config.num_layers_in_last_pipeline_stage,
    }


def megatron_bridge(launch):
    """Overrides through Hydra's grammar; the configuration itself cannot be imported without Transformer Engine."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    words = [w for w in launch["words"] if "=" in w and not w.startswith("--")]
    found = {o.key_or_group: o.value() for o in OverridesParser.create().parse_overrides(words)}
    names = {
        "tensor_model_parallel_size": "model.tensor_model_parallel_size",
        "sequence_parallel": "model.sequence_parallel",
        "pipeline_model_parallel_size": "model.pipeline_model_parallel_size",
        "expert_tensor_parallel_size": "model.expert_tensor_parallel_size",
        "recompute_granularity": "model.recompute_granularity",
        "global_batch_size": "train.global_batch_size",
        "num_layers_in_first_pipeline_stage": "model.num_layers_in_first_pipeline_stage",
        "num_layers_in_last_pipeline_stage": "model.num_layers_in_last_pipeline_stage",
    }
    return {name: found.get(key) for name, key in names.items()}


def deepspeed(launch):
    """The JSON through DeepSpeedConfig, with the ranks that the layout has; of a pipeline with the script's groups."""
    from deepspeed.runtime import config as module

    class Groups:
        def get_data_parallel_world_size(self):
            return launch["degrees"]["dp"]

    class Mesh:
        def get_group(self, mesh_dim):
            return mesh_dim

    def ranks(group=None):
        return launch["devices"] if group is None else launch["degrees"]["dp"]

    module.dist.get_rank, module.dist.get_world_size = (lambda: 0), ranks
    path = Path(tempfile.mkdtemp()) / "ds_config.json"
    path.write_text(launch["config"])
    mesh = Mesh() if "sequence_parallel_size" in json.loads(launch["config"]) else None
    config = module.DeepSpeedConfig(str(path), Groups() if launch["degrees"]["pp"] > 1 else None, mesh)
    return {
        "zero_stage": int(config.zero_config.stage),
        "global_batch": config.train_batch_size,
        "micro_batch": config.train_micro_batch_size_per_gpu,
        "bf16": config.bfloat16_config.enabled,
        "fp16": config.float16_config.enabled,
        "hpz": config.zero_config.zero_hpz_partition_size,
    }


def fsdp(launch):
    """The YAML through accelerate's configuration, and the words through the parser of ``accelerate launch``."""
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import launch_command_parser

    path = Path(tempfile.mkdtemp()) / "fsdp.yaml"
    path.write_text(launch["config"])
    config = load_config_from_file(str(path))
    words = [str(path) if w == "fsdp.yaml" else w for w in launch["words"]]
    launch_command_parser().parse_args([*words, "train.py"])
    return {
        "num_processes": config.num_processes,
        "mixed_precision": config.mixed_precision,
        "reshard": config.fsdp_config["fsdp_reshard_after_forward"],
        "recompute": config.fsdp_config["fsdp_activation_checkpointing"],
    }


def torchtitan(launch):
    """The Python file is run: what it sets are fields of the trainer's configuration, whose classes refuse others."""
    from torchtitan.components.quantization import float8, mx, nvfp4

    for module in (float8, mx, nvfp4):
        module.has_cuda_capability = lambda *_: True
    os.environ["BASE_CHECKPOINT"] = "/base"
    scope = {"__name__": "planned"}
    exec(compile(launch["config"], "planned.py", "exec"), scope)
    config = scope["planned"]()
    p = config.parallelism
    return {
        "tp": p.tensor_parallel_degree,
        "pp": p.pipeline_parallel_degree,
        "cp": p.context_parallel_degree,
        "ep": p.expert_parallel_degree,
        "sequence": p.enable_sequence_parallel,
        "local_batch": config.training.local_batch_size,
        "global_batch": config.training.global_batch_size,
        "recompute": type(config.activation_checkpoint).__qualname__,
    }


PARSERS = {
    "megatron-lm": ("megatron.training", megatron_lm),
    "megatron-bridge": ("hydra", megatron_bridge),
    "deepspeed": ("deepspeed", deepspeed),
    "fsdp": ("accelerate", fsdp),
    "torchtitan": ("torchtitan", torchtitan),
}


def installed(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def said_of(launch):
    """What the parser took, or why it refused."""
    retained = dict(os.environ)
    try:
        return {"read": PARSERS[launch["framework"]][1](launch), "said": ""}
    except (Exception, SystemExit) as error:
        where = " < ".join(
            f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)[:-4:-1]
        )
        return {"read": {}, "said": f"{type(error).__name__}: {error} ({where})"}
    finally:
        os.environ.clear()
        os.environ |= retained


def main():
    missing = sorted(name for name, (module, _) in PARSERS.items() if not installed(module))
    out = []
    for launch in json.load(sys.stdin):
        if launch["framework"] in missing:
            continue
        noise = io.StringIO()
        with contextlib.redirect_stdout(noise), contextlib.redirect_stderr(noise):
            found = said_of(launch)
        tail = noise.getvalue().strip().splitlines()[-1:] if found["said"].startswith("SystemExit") else []
        out.append(
            {"case": launch["case"], "framework": launch["framework"], **found} | ({"noise": tail} if tail else {})
        )
    json.dump({"missing": missing, "launches": out}, sys.stdout)


if __name__ == "__main__":
    main()
