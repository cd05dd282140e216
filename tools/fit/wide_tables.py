"""The whole tables of more engines and devices, thinned to samples in the columns that ``orrery check`` reads.

One query a table: rows measured twice become one, and of each (device, format, engine) at most ``MOST`` rows stay,
spread evenly over half-decades of flops and bytes by a seeded hash, so that small and large shapes weigh the same.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb

from orrery.evidence.tables import Table, read_table

MOST, SEED = 3000, 16
DEVICES = {
    "a100_sxm": "a100-sxm-80gb",
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200",
    "rtx_pro_6000_server": "rtx-pro-6000-server",
    "b60": "arc-pro-b60",
}
"""Devices whose name in the tables is not the catalogue's."""
ENGINES = {"VLLM": "vllm", "SGLang": "sglang", "TRTLLM": "tensorrt-llm"}
FORMATS = {"bfloat16": "bf16", "float16": "fp16"}
PARTS = ("vllm", "new_devices")
GROUP = "device, format, kv_format, engine"
TUNED_FORMAT = """case when file like '%a4w4%' then 'mxfp4' when file like '%blockscale%' then 'fp8_block'
    when file like '%a8w8%' and q_dtype_w like '%int8%' then 'int8' when file like '%a8w8%' then 'fp8'
    else 'bf16' end"""


def products(data: Path) -> Iterator[Table]:
    """Linear layers: engines' own, and the tuned kernels of AMD's library."""
    work, moved = "2.0 * m * n * k", "1.0 * m * k + 1.0 * n * k + 1.0 * m * n"
    if paths := _paths(data, "gemm"):
        source = f"select {_words('gemm_dtype')}, m, n, k, latency / 1e3 as time_s from read_parquet({paths})"
        yield _sampled("gemm_perf", source, ("m", "n", "k"), work, moved, "avg")
    if (path := data / "kernels_aiter" / "gemm.parquet").exists():
        source = f"""select case cu_num when 304 then 'mi300x' else 'mi355x' end as device, {TUNED_FORMAT} as format,
            '' as kv_format, 'aiter' as engine, M as m, N as n, K as k, try_cast(us as double) / 1e6 as time_s
            from read_parquet('{path}') where ((cu_num = 304 and gfx = 'gfx942') or (cu_num = 256 and gfx = 'gfx950'))
            and B is null and file not like '%batched%' and file not like '%gdn%' and coalesce(outdtype, '') not like
            '%float32'"""
        yield _sampled("aiter gemm", source, ("m", "n", "k"), work, moved, "min")


def _paths(data: Path, name: str) -> list[str]:
    """The parts of a table that are there."""
    paths = (data / "kernels_aiconfigurator" / f"{name}_perf__{part}.parquet" for part in PARTS)
    return [str(path) for path in paths if path.exists()]


def _sampled(name: str, source: str, sizes: tuple[str, ...], flops: str, moved: str, best: str) -> Table:
    """A sample of what ``source`` selects; rows of equal sizes become their average, or the least of a search."""
    listed = ", ".join(sizes)
    query = f"""
        with rows as (select {GROUP}, {listed}, {best}(time_s) as time_s from ({source}) where time_s > 0 group by all),
        binned as (select *, floor(2 * log10(greatest({flops}, 1))) as f, floor(2 * log10(greatest({moved}, 1))) as b,
                   hash({listed}, {SEED}) as chance from rows),
        ranked as (select *, row_number() over (partition by {GROUP}, f, b order by chance) as place from binned),
        kept as (select *, row_number() over (partition by {GROUP} order by place, chance) as turn from ranked)
        select {GROUP}, {listed}, time_s from kept where turn <= {MOST} order by all
    """
    found = duckdb.execute(query).fetchnumpy()
    return Table(name, {column: [str(v) for v in values.tolist()] for column, values in found.items()})


def _words(format: str, kv_format: str = "''") -> str:
    """The columns that name a group, in the catalogue's words."""
    columns = {
        "device": _renamed("system", DEVICES),
        "format": _renamed(format, FORMATS),
        "kv_format": _renamed(kv_format, FORMATS),
        "engine": _renamed("framework", ENGINES),
    }
    return ", ".join(f"{expression} as {name}" for name, expression in columns.items())


def _renamed(column: str, names: Mapping[str, str]) -> str:
    cases = " ".join(f"when '{old}' then '{new}'" for old, new in names.items())
    return f"case {column} {cases} else {column} end"


def measured(data: Path, op: str) -> list[Table]:
    """Every table with rows of an attention ``op``, plain or latent."""
    if op.startswith("mla"):
        tables = [read_table(data / "kernels" / "mla.csv.gz")]
        return [*tables, latent(data, op)] if op in ("mla_prefill", "mla_decode") else tables
    if op == "attention_encoder":
        return [encoders(data)]
    names = (op, "kernel_power")
    return [*(read_table(data / "kernels" / f"{name}.csv.gz") for name in names), attention(data, op)]


def attention(data: Path, op: str) -> Table:
    """Prompts or decode steps, in the columns of the table of that ``op``."""
    is_decode = op == "attention_decode"
    tokens = f"{'1' if is_decode else 'isl'} as query_tokens, {'isl + step' if is_decode else 'isl'} as context_tokens"
    source = f"""select {_words("attn_dtype", "kv_cache_dtype")}, batch_size as batch, {tokens}, num_heads,
        num_key_value_heads as num_kv_heads, head_dim as head_size,
        case window_size when 0 then '' else window_size::varchar end as window_tokens, latency / 1e3 as time_s
        from read_parquet({_paths(data, "generation_attention" if is_decode else "context_attention")},
        union_by_name = true)"""
    sizes = ("batch", "query_tokens", "context_tokens", "num_heads", "num_kv_heads", "head_size", "window_tokens")
    work = "4.0 * batch * query_tokens * context_tokens * num_heads * head_size"
    moved = "2.0 * batch * context_tokens * num_kv_heads * head_size"
    return _with_op(_sampled(f"{op} of engines", source, sizes, work, moved, "avg"), op)


def encoders(data: Path) -> Table:
    """Vision encoders' attention: whole sequences without a mask, as many key/value heads as query heads."""
    path = data / "kernels_aiconfigurator" / "encoder_attention_perf__all.parquet"
    source = f"""select {_words("attn_dtype", "attn_dtype")}, batch_size as batch, isl as query_tokens,
        isl as context_tokens, num_heads, num_heads as num_kv_heads, head_dim as head_size, '' as window_tokens,
        latency / 1e3 as time_s
        from read_parquet('{path}')"""
    sizes = ("batch", "query_tokens", "context_tokens", "num_heads", "num_kv_heads", "head_size", "window_tokens")
    work = "4.0 * batch * query_tokens * context_tokens * num_heads * head_size"
    moved = "4.0 * batch * query_tokens * num_heads * head_size"
    return _with_op(_sampled("encoders of engines", source, sizes, work, moved, "avg"), "attention_encoder")


def latent(data: Path, op: str) -> Table:
    """Latent attention, in the columns of its table; the heads are DeepSeek's. An 8-bit cache computes in 8 bits."""
    is_decode = op == "mla_decode"
    tokens = f"{'1' if is_decode else 'isl'} as query_tokens, {'isl + step' if is_decode else 'isl'} as context_tokens"
    head_size, value_size = (576, 512) if is_decode else (192, 128)
    computes = "case kv_cache_dtype when 'fp8' then 'fp8' else mla_dtype end"
    source = f"""select {_words(computes, "kv_cache_dtype")}, batch_size as batch, {tokens}, num_heads,
        {head_size} as head_size, {value_size} as value_head_size, latency / 1e3 as time_s
        from read_parquet({_paths(data, "generation_mla" if is_decode else "context_mla")}, union_by_name = true)"""
    sizes = ("batch", "query_tokens", "context_tokens", "num_heads", "head_size", "value_head_size")
    work = "4.0 * batch * query_tokens * context_tokens * num_heads * head_size"
    return _with_op(_sampled(f"{op} of engines", source, sizes, work, "1.0 * batch * context_tokens", "avg"), op)


def _with_op(table: Table, op: str) -> Table:
    return Table(table.name, {**table.columns, "op": [op] * len(table)})
