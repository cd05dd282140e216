"""CUDA C++ of single instructions, written out: chains of which each step needs the last, and streams of products."""

from collections.abc import Mapping
from dataclasses import dataclass

UNROLLED = 64

_CHAIN = """
typedef unsigned long long u64;
extern "C" __global__ void chain({type} a, {type} b, int rounds, u64* out) {{
  {type} x = a;
  long long before = clock64();
  for (int i = 0; i < rounds; i++) {{
{body}
  }}
  (({type}*)(out + 1))[threadIdx.x] = x;
  __threadfence();
  if (threadIdx.x == 0) out[0] = clock64() - before;
}}
"""
"""``rounds`` times ``UNROLLED`` dependent instructions of one warp; out[0]: cycles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """An instruction as a chain: its text over %0 (in and out), %1 and %2, and the type and constraint of its words."""

    text: str
    type: str = "float"
    constraint: str = "f"


INSTRUCTIONS: Mapping[str, Instruction] = {
    "fma_fp32": Instruction(text="fma.rn.f32 %0, %0, %1, %2;"),
    "fma_fp64": Instruction(text="fma.rn.f64 %0, %0, %1, %2;", type="double", constraint="d"),
    "fma_fp16x2": Instruction(text="fma.rn.f16x2 %0, %0, %1, %2;", type="unsigned int", constraint="r"),
    "multiply_add_int32": Instruction(text="mad.lo.s32 %0, %0, %1, %2;", type="int", constraint="r"),
    "exp2_fp32": Instruction(text="ex2.approx.ftz.f32 %0, %0;"),
    "reciprocal_fp32": Instruction(text="rcp.approx.ftz.f32 %0, %0;"),
    "shuffle": Instruction(text="shfl.sync.bfly.b32 %0, %0, 1, 0x1f, 0xffffffff;", type="unsigned int", constraint="r"),
}
"""Instructions of one thread, or of one warp, by what they are called in results."""


def chain_source(instruction: Instruction) -> str:
    """A program of a chain of ``instruction``."""
    c = instruction.constraint
    step = f'    asm volatile("{instruction.text}" : "+{c}"(x) : "{c}"(a), "{c}"(b));'
    return _CHAIN.format(type=instruction.type, body="\n".join([step] * UNROLLED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A product of small matrices by one warp (mma) or four (wgmma): shape, words and the type that adds up."""

    m: int
    n: int
    k: int
    operands: str  # "f16.f16", as it stands in the instruction
    sum: str = "f32"
    is_group: bool = False
    capability: tuple[int, int] = (8, 0)
    only: tuple[int, int] = (0, 0)  # a product that one capability alone has

    @property
    def flops(self) -> int:
        """Operations of one."""
        return 2 * self.m * self.n * self.k

    @property
    def shape(self) -> str:
        """As instructions write it."""
        return f"m{self.m}n{self.n}k{self.k}"

    def runs_on(self, capability: tuple[int, int]) -> bool:
        """Whether a GPU of that compute capability has it."""
        return capability == self.only if self.only != (0, 0) else capability >= self.capability


MMA: Mapping[str, Product] = {
    "fp16": Product(m=16, n=8, k=16, operands="f16.f16"),
    "fp16_fp16_sum": Product(m=16, n=8, k=16, operands="f16.f16", sum="f16"),
    "bf16": Product(m=16, n=8, k=16, operands="bf16.bf16"),
    "tf32": Product(m=16, n=8, k=8, operands="tf32.tf32"),
    "int8": Product(m=16, n=8, k=32, operands="s8.s8", sum="s32"),
    "fp8": Product(m=16, n=8, k=32, operands="e4m3.e4m3", capability=(8, 9)),
}
"""Products of a warp out of its registers."""

_K = {"fp16": ("f16.f16", 16), "bf16": ("bf16.bf16", 16), "tf32": ("tf32.tf32", 8), "fp8": ("e4m3.e4m3", 32)}
WGMMA: Mapping[str, Product] = {
    **{
        f"{format}_n{n}": Product(m=64, n=n, k=k, operands=operands, is_group=True, only=(9, 0))
        for format, (operands, k) in _K.items()
        for n in (64, 128, 256)
    },
    "int8_n256": Product(m=64, n=256, k=32, operands="s8.s8", sum="s32", is_group=True, only=(9, 0)),
}
"""Products of four warps out of shared memory: Hopper's own."""

_MMA = """
typedef unsigned long long u64;
extern "C" __global__ void products(int rounds, u64* out) {{
  unsigned int a[4], b[2];
  {sum_type} c[{chains}][{words}] = {{}};
  for (int i = 0; i < 4; i++) a[i] = {fill};
  for (int i = 0; i < 2; i++) b[i] = {fill};
  __syncthreads();
  long long before = clock64();
  for (int i = 0; i < rounds; i++)
    _Pragma("unroll") for (int chain = 0; chain < {chains}; chain++)
      asm volatile("{text}" : {outputs} : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  __syncthreads();
  {sum_type} total = 0;
  for (int chain = 0; chain < {chains}; chain++) for (int i = 0; i < {words}; i++) total += c[chain][i];
  if (total == ({sum_type})12345) out[1] = 1;
  long long after = clock64();
  if (threadIdx.x == 0) out[blockIdx.x] = after - before;
}}
"""
FILL = "(0x3c3c3c3cu ^ (0x01010101u * ((threadIdx.x * 7 + i * 13) & 0x3f)))"
"""Small numbers of each format, none a NaN."""


def mma_source(product: Product, chains: int, *, is_zero: bool) -> str:
    """A program of ``chains`` independent chains of a warp's products."""
    words, constraint = (2, "r") if product.sum == "f16" else (4, "r" if product.sum == "s32" else "f")
    sums = ", ".join(f"%{i}" for i in range(words))
    operands = ", ".join(f"%{words + i}" for i in range(4)), ", ".join(f"%{words + 4 + i}" for i in range(2))
    name = f"mma.sync.aligned.{product.shape}.row.col.{product.sum}.{product.operands}.{product.sum}"
    return _MMA.format(
        sum_type="float" if constraint == "f" else "unsigned int",
        chains=chains,
        words=words,
        fill="0" if is_zero else FILL,
        text=f"{name} {{{sums}}}, {{{operands[0]}}}, {{{operands[1]}}}, {{{sums}}};",
        outputs=", ".join(f'"+{constraint}"(c[chain][{i}])' for i in range(words)),
    )


_WGMMA = """
typedef unsigned long long u64;
__device__ u64 described(const void* tile) {{
  u64 at = (u64)__cvta_generic_to_shared(tile);
  return ((at & 0x3ffff) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);  // rows of 128 bytes, swizzled
}}
extern "C" __global__ void products(int rounds, u64* out) {{
  extern __shared__ __align__(1024) unsigned int tiles[];
  for (int i = threadIdx.x; i < {tile_words}; i += blockDim.x) tiles[i] = {fill};
  {sum_type} d[{words}] = {{}};
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  u64 a = described(tiles), b = described(tiles + {a_words});
  long long before = clock64();
  for (int i = 0; i < rounds; i++) {{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    _Pragma("unroll") for (int step = 0; step < 8; step++)
      asm volatile("{text}" : {outputs} : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;\\n wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }}
  __syncthreads();
  long long after = clock64();
  {sum_type} total = 0;
  for (int i = 0; i < {words}; i++) total += d[i];
  if (total == ({sum_type})12345) out[1] = 1;
  if (threadIdx.x == 0) out[blockIdx.x] = after - before;
}}
"""
WGMMA_STEPS = 8
"""Products that stand in one round of ``wgmma_source``."""
ROW_BYTES = 128


def wgmma_bytes(product: Product) -> int:
    """Shared memory of a program's two tiles."""
    return ROW_BYTES * (product.m + product.n)


def wgmma_source(product: Product, *, is_zero: bool) -> str:
    """A program of one chain of products for every four warps, eight a round."""
    words, constraint = product.n // 2, "r" if product.sum == "s32" else "f"
    sums = ", ".join(f"%{i}" for i in range(words))
    scales = {"f16": ", 1, 1, 1, 0, 0", "bf1": ", 1, 1, 1, 0, 0", "s8.": ", 1"}.get(product.operands[:3], ", 1, 1, 1")
    name = f"wgmma.mma_async.sync.aligned.{product.shape}.{product.sum}.{product.operands}"
    return _WGMMA.format(
        sum_type="float" if constraint == "f" else "unsigned int",
        tile_words=wgmma_bytes(product) // 4,
        a_words=ROW_BYTES * product.m // 4,
        words=words,
        fill="0" if is_zero else FILL,
        text=f"{{ .reg .pred p; setp.ne.b32 p, 1, 0; {name} {{{sums}}}, %{words}, %{words + 1}{_scaled(scales)}; }}",
        outputs=", ".join(f'"+{constraint}"(d[{i}])' for i in range(words)),
    )


def _scaled(scales: str) -> str:
    """The first scale is a predicate: whether the sum so far is added to."""
    return scales.replace(", 1", ", p", 1)
