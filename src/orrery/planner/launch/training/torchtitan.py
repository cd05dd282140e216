"""torchtitan: a Python function that returns a ``Trainer.Config``, begun from the model's own.

Without a pipeline a rank's ``local_batch_size`` is one micro-batch and the trainer accumulates up to the global batch;
with one, the rank's whole share goes into the schedule at once and is cut there.
"""

from orrery.execution.train.job import FROZEN, TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.planner.launch.training.fit import experts_of, shard_ranks
from orrery.planner.launch.training.manifest import training_manifests
from orrery.planner.launch.training.precision import Precision, precision_of
from orrery.planner.launch.training.script import Draft, Script, Unsupported

CONFIG = "planned.py"
SCHEDULES = {
    "1f1b": "1F1B",
    "gpipe": "GPipe",
    "interleaved": "Interleaved1F1B",
    "zero-bubble-v": "ZBVZeroBubble",
}
"""Our schedule -> the class of torch.distributed.pipelining, as its names are given to torchtitan."""

CHUNKS = {"1f1b": 1, "gpipe": 1, "zero-bubble-v": 2}
"""Chunks of a rank that a schedule is made for; the interleaved one takes two or more."""

TWO_CHUNKS = ("1f1b", "interleaved")
"""Schedules that are interleaved as soon as a rank holds several chunks."""

CHECKPOINTING = {"none": "None", "selective": "SelectiveAC.Config()", "full": "FullAC.Config()"}
CONVERTERS = {"tensorwise": "Float8", "mxfp8": "MXFP8", "nvfp4": "NVFP4"}
"""Scaling -> what the converters of linear layers and experts begin with; whole-tensor scales became those of rows."""

WITH_EXPERTS = ("Float8", "MXFP8")
"""Converters that have one for experts too."""

ROUTED_PARTS = '["attention", "shared_experts", "feed_forward"]'
"""Linear layers beside routed experts that become narrow: all but the router and the head."""

TILE_TOKENS = 128
"""Tokens of one tile of torchtitan's MXFP8 kernel for grouped products on Blackwell."""


def write(job: TrainingJob, layout: TrainingLayout) -> Script | Unsupported:
    """The Python file, and how it is started."""
    precision = precision_of(job)
    if isinstance(precision, Unsupported):
        return precision
    found = training_manifests()["torchtitan"].models.get(job.model.name)
    if found is None:
        known = ", ".join(sorted(training_manifests()["torchtitan"].models))
        return Unsupported(reason=f"torchtitan ships no configuration of {job.model.name}; it has {known}")
    if reason := _beyond(job, layout) or _beyond_pipeline(job, layout) or _beyond_recipe(job, precision):
        return Unsupported(reason=reason)
    body = _Body(job, layout, precision, found)
    text = body.text()
    draft = Draft()
    draft.add("--module", CONFIG.removesuffix(".py"))
    draft.add("--config", "planned")
    if job.task != "pretrain":
        draft.need("BASE_CHECKPOINT", "the model's folder of safetensors to start from")
    return Script(
        program="-m torchtitan.train",
        arguments=tuple(draft.arguments),
        flags=tuple(draft.flags),
        config_keys=tuple(body.keys),
        config_name=CONFIG,
        config=text,
        needs=tuple(draft.needs),
    )


def _beyond(job: TrainingJob, layout: TrainingLayout) -> str:
    if layout.sharding == "zero1":
        return "torchtitan's FSDP shards gradients with the optimizer's state; make sharding zero2"
    if layout.sharding == "none" and layout.cp > 1:
        return "torchtitan shards parameters over context ranks; make sharding zero2 or zero3"
    if layout.sharding_group % layout.cp:
        return f"torchtitan shards over whole context groups; make sharding_group a multiple of cp = {layout.cp}"
    if layout.secondary_group:
        return "torchtitan keeps no second, nearer copy of parameters; make secondary_group 0 or use deepspeed"
    if layout.cp > 1 and layout.context_kind == "all-to-all":
        return "torchtitan moves keys and values between context ranks, not heads; make context_kind ring"
    if layout.etp > 1:
        return "torchtitan's experts are whole; make etp 1"
    if (shard_degree(layout) * layout.cp * layout.tp) % layout.ep:
        return f"ep = {layout.ep} does not divide shard x cp x tp = {shard_degree(layout) * layout.cp * layout.tp}"
    if layout.recompute_modules:
        return "torchtitan names no modules of a layer to recompute; make recompute full or none"
    if layout.recompute_layers:
        return "torchtitan recomputes every layer or parts of every layer; make recompute_layers 0"
    if job.task not in ("pretrain", "full_finetune", "lora"):
        return f"torchtitan has no {job.task}; make the task lora or full_finetune"
    return ""


def _beyond_pipeline(job: TrainingJob, layout: TrainingLayout) -> str:
    schedule = schedule_of(layout)
    if layout.pp == 1:
        return ""
    if layout.first_stage_layers or layout.last_stage_layers:
        return "torchtitan counts layers of stages by itself; make first_stage_layers and last_stage_layers 0"
    if schedule not in SCHEDULES:
        return f"torchtitan has no {layout.schedule} schedule; use {', '.join(SCHEDULES)}"
    if layout.vp != CHUNKS.get(schedule, layout.vp):
        return f"{layout.schedule} runs {CHUNKS[schedule]} chunks a rank in torchtitan; make vp {CHUNKS[schedule]}"
    if schedule == "interleaved" and layout.vp < 2:
        return "the interleaved schedule needs two chunks a rank; make vp 2"
    chunks, weight = layout.pp * layout.vp, job.model.num_layers + 2
    if layout.vp > 2 and -(-weight // layers_per_stage(job.model.num_layers, chunks)) != chunks:
        return f"torchtitan cannot cut {job.model.num_layers} layers into {chunks} chunks of one size; make vp 2"
    return ""


def _beyond_recipe(job: TrainingJob, precision: Precision) -> str:
    if precision.wide == "fp16":
        return "torchtitan has no fp16; make the recipe bf16"
    kind = CONVERTERS.get(precision.scaling, "")
    if precision.scaling and not kind:
        return f"torchtitan has no {job.recipe.name} scaling; make the recipe fp8_current, mxfp8 or bf16"
    if kind and experts_of(job) is not None and kind not in WITH_EXPERTS:
        return f"torchtitan has no experts in {job.recipe.name}; make the recipe mxfp8 or bf16"
    return ""


def schedule_of(layout: TrainingLayout) -> str:
    """The layout's schedule; one forward, one backward over several chunks is the interleaved one."""
    return "interleaved" if layout.schedule in TWO_CHUNKS and layout.vp > 1 else layout.schedule


def shard_degree(layout: TrainingLayout) -> int:
    """Data-parallel ranks (context ranks apart) that share one copy of the parameters."""
    return 1 if layout.sharding == "none" else shard_ranks(layout) // layout.cp


def layers_per_stage(num_layers: int, chunks: int) -> int:
    """torchtitan cuts num_layers + 2 (embedding and head count as a layer each) into ceil((num_layers + 2) / this)."""
    return -(-(num_layers + 2) // chunks)


class _Body:
    """The function's text as it grows, and the keys that it sets."""

    def __init__(
        self, job: TrainingJob, layout: TrainingLayout, precision: Precision, found: tuple[str, str, str]
    ) -> None:
        self.job, self.layout, self.precision = job, layout, precision
        self.folder, self.base, self.flavor = found
        self.keys: list[str] = []
        self.lines: list[str] = []
        self.imports = {
            f"from torchtitan.models.{self.folder}.config_registry import {self.base}",
            "from torchtitan.trainer import Trainer",
        }

    def set(self, key: str, value: str) -> None:
        """``config.key = value``"""
        self.keys.append(key)
        self.lines.append(f"    config.{key} = {value}")

    def text(self) -> str:
        """The whole file."""
        self._training()
        self._parallelism()
        self._checkpointing()
        self._converters()
        if self.job.task != "pretrain":
            self.imports.add("import os")
            self.set("checkpoint.initial_load_path", 'os.environ["BASE_CHECKPOINT"]')
            self.set("checkpoint.initial_load_in_hf", "True")
        size = f"{self.layout.num_devices} devices"
        return "\n".join(
            (
                f'"""{self.folder} {self.flavor} on {size}."""',
                "",
                *sorted(self.imports, key=lambda line: (not line.startswith("import"), line)),
                "",
                "",
                "def planned() -> Trainer.Config:",
                f'    """{self.base} with the planned layout."""',
                f"    config = {self.base}()",
                *self.lines,
                "    return config",
            )
        )

    def _training(self) -> None:
        job, layout = self.job, self.layout
        share = layout.micro_batch * (job.num_micro_batches(layout) if layout.pp > 1 else 1)
        self.set("training.local_batch_size", str(share))
        self.set("training.global_batch_size", str(job.global_batch))
        self.set("training.seq_len", str(job.seq_len))
        if self.precision.is_pure:
            self.set("training.dtype", '"bfloat16"')
        wide = "float32" if self.precision.wide == "fp32" else "bfloat16"
        self.set("training.mixed_precision_param", f'"{wide}"')
        if layout.pp > 1 or layout.ep > 1:
            self.set("training.disable_cuda_graphs", "True")

    def _parallelism(self) -> None:
        layout, shard = self.layout, shard_degree(self.layout)
        degrees = {
            "data_parallel_replicate_degree": layout.dp // shard,
            "data_parallel_shard_degree": shard,
            "tensor_parallel_degree": layout.tp,
            "context_parallel_degree": layout.cp,
            "pipeline_parallel_degree": layout.pp,
            "expert_parallel_degree": layout.ep,
            "enable_sequence_parallel": layout.is_sequence_parallel,
        }
        for key, value in degrees.items():
            self.set(f"parallelism.{key}", str(value))
        if layout.sharding != "none":
            policy = "always" if layout.sharding == "zero3" else "never"
            self.set("parallelism.fsdp_reshard_after_forward", f'"{policy}"')
        if layout.pp > 1:
            self.set("parallelism.pipeline_parallel_schedule", f'"{SCHEDULES[schedule_of(layout)]}"')
            self.set("parallelism.pipeline_parallel_microbatch_size", str(layout.micro_batch))
            if layout.vp > 2:  # else one chunk a rank, or the two that schedules of several take by themselves
                layers = layers_per_stage(self.job.model.num_layers, layout.pp * layout.vp)
                self.set("parallelism.pipeline_parallel_layers_per_stage", str(layers))

    def _checkpointing(self) -> None:
        value = CHECKPOINTING[self.layout.recompute]
        if name := value.partition(".")[0] if "." in value else "":
            self.imports.add(f"from torchtitan.distributed.activation_checkpoint import {name}")
        self.set("activation_checkpoint", value)

    def _converters(self) -> None:
        """The model is named again even where nothing is converted: some configurations begin with 8-bit products."""
        made = [*self._narrow(), *self._adapter()]
        self._compile()
        self.imports.add(f"from torchtitan.models.{self.folder} import model_registry")
        self.keys.append("model_spec")
        if self.precision.scaling == "tensorwise":
            self.lines.append("    # scales of rows: the nearest there is to scales of whole tensors")
        inside = "".join(f"\n            {line}," for line in made)
        inside = f"\n        converters=[{inside}\n        ],\n    " if made else ""
        self.lines.append(f'    config.model_spec = model_registry("{self.flavor}"{"," if made else ""}{inside})')

    def _compile(self) -> None:
        """Narrow products and tensor collectives in pieces are made by the compiler."""
        is_async = self.job.framework.overlaps_tensor and self.layout.tp > 1
        if not self.precision.scaling and not is_async:
            self.set("compile.enable_async_tensor_parallel", "False")
            return
        self.imports.add("from torchtitan.config import CompileConfig")
        self.keys += ["compile", "compile.enable", "compile.components", "compile.enable_async_tensor_parallel"]
        asks = f'enable=True, components=["model"], enable_async_tensor_parallel={is_async}'
        self.lines.append(f"    config.compile = CompileConfig({asks})")

    def _narrow(self) -> list[str]:
        """Converters; the head stays wide, and so do the layers at both ends that the recipe keeps."""
        if not (kind := CONVERTERS.get(self.precision.scaling, "")):
            return []
        names = [f"{kind}LinearConverter"]
        if experts_of(self.job) is not None:
            names.append(f"{kind}GroupedExpertsConverter")
        self.imports.add(f"from torchtitan.components.quantization import {', '.join(names)}")
        self.keys += [f"{n}.model_compile_enabled" for n in names]
        chosen = [self._chosen(names[0], kind)]
        if len(names) > 1:
            chosen.append(self._padded(names[1], kind))
        return [f"{n}.Config({c}model_compile_enabled=True)" for n, c in zip(names, chosen, strict=True)]

    def _padded(self, name: str, kind: str) -> str:
        """Tokens of each expert fill whole tiles of the kernel that makes blocks."""
        if kind != "MXFP8":
            return ""
        self.keys.append(f"{name}.pad_multiple")
        return f"pad_multiple={TILE_TOKENS}, "

    def _chosen(self, name: str, kind: str) -> str:
        """Which linear layers are converted: 8-bit ones by what is left out, the others by what is taken."""
        first, last = self.precision.num_wide_layers_first, self.precision.num_wide_layers_last
        layers = self.job.model.num_layers
        if kind == "Float8":
            self.keys.append(f"{name}.filter_fqns")
            return 'filter_fqns=["lm_head", "router.gate"], '
        self.keys.append(f"{name}.fqns")
        if last:
            return f'fqns=[f"layers.{{i}}." for i in range({first}, {layers - last})], '
        parts = ROUTED_PARTS if experts_of(self.job) is not None else '["layers"]'
        return f"fqns={parts}, "

    def _adapter(self) -> list[str]:
        if self.job.task not in FROZEN:
            return []
        self.imports.add("from torchtitan.components.lora import LoRAConverter")
        self.keys.append("LoRAConverter.rank")
        return [f"LoRAConverter.Config(rank={self.job.adapter_rank})"]
