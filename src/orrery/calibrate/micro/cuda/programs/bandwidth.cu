// Streams of 16-byte words. out[block]: cycles of the block.
typedef unsigned long long u64;
struct Words { unsigned int x, y, z, w; };

#define LOAD(HOW, r, p) \
  asm volatile(HOW " {%0,%1,%2,%3}, [%4];" : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(p))
#define STORE(p, r) \
  asm volatile("st.global.v4.u32 [%4], {%0,%1,%2,%3};" ::"r"(r.x), "r"(r.y), "r"(r.z), "r"(r.w), "l"(p) : "memory")

// Every block reads its region again and again: `stride_words` between regions (0: all read the same one).
#define READ(NAME, HOW)                                                                             \
  extern "C" __global__ void NAME(u64 base, int region_words, int stride_words, int rounds, u64* out) { \
    u64 region = base + 16ull * stride_words * blockIdx.x;                                          \
    unsigned int sum = 0;                                                                           \
    int first = (int)((u64)blockIdx.x * blockDim.x % region_words) * (stride_words == 0);           \
    __syncthreads();                                                                                \
    long long before = clock64();                                                                   \
    for (int round = 0; round < rounds; round++)                                                    \
      for (int i = 0; i < region_words; i += 4 * blockDim.x) {                                      \
        Words r[4];                                                                                 \
        _Pragma("unroll") for (int u = 0; u < 4; u++) {                                             \
          int at = i + u * blockDim.x + threadIdx.x + first;                                        \
          at = at < region_words ? at : at - region_words;                                          \
          LOAD(HOW, r[u], region + 16ull * at);                                                     \
        }                                                                                           \
        _Pragma("unroll") for (int u = 0; u < 4; u++) sum ^= r[u].x ^ r[u].y ^ r[u].z ^ r[u].w;     \
      }                                                                                             \
    __syncthreads();                                                                                \
    long long after = clock64();                                                                    \
    if (threadIdx.x == 0) out[blockIdx.x] = after - before;                                         \
    if (sum == 0x5eed5eedu) out[blockIdx.x] = 0;                                                    \
  }

READ(read_l1, "ld.global.ca.v4.u32")
READ(read_l2, "ld.global.cg.v4.u32")

extern "C" __global__ void read_shared(int words, int rounds, u64* out) {
  extern __shared__ Words held[];
  for (int i = threadIdx.x; i < words; i += blockDim.x) held[i].x = i;
  unsigned int base = (unsigned int)__cvta_generic_to_shared(held), sum = 0;
  __syncthreads();
  long long before = clock64();
  for (int round = 0; round < rounds; round++)
    for (int i = threadIdx.x; i < words; i += 4 * blockDim.x) {
      Words r[4];
      _Pragma("unroll") for (int u = 0; u < 4; u++)
        asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[u].x), "=r"(r[u].y), "=r"(r[u].z), "=r"(r[u].w)
                     : "r"(base + 16 * (i + u * blockDim.x)));
      _Pragma("unroll") for (int u = 0; u < 4; u++) sum ^= r[u].x ^ r[u].y ^ r[u].z ^ r[u].w;
    }
  __syncthreads();
  long long after = clock64();
  if (threadIdx.x == 0) out[blockIdx.x] = after - before;
  if (sum == 0x5eed5eedu) out[blockIdx.x] = 0;
}

// Passes over memory: the whole grid strides over `words` 16-byte words, a multiple of four grids.
#define PASS(NAME, BODY)                                                       \
  extern "C" __global__ void NAME(u64 from, u64 to, u64 words, u64* out) {     \
    u64 step = (u64)gridDim.x * blockDim.x;                                    \
    unsigned int sum = 0;                                                      \
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += 4 * step) { \
      Words r[4];                                                              \
      BODY                                                                     \
    }                                                                          \
    if (sum == 0x5eed5eedu) out[0] = sum;                                      \
  }
#define EACH(WHAT) _Pragma("unroll") for (int u = 0; u < 4; u++) { WHAT }

PASS(read_pass, EACH(LOAD("ld.global.v4.u32", r[u], from + 16 * (i + u * step));) EACH(sum ^= r[u].x ^ r[u].y ^ r[u].z ^ r[u].w;))
PASS(write_pass, EACH(r[u].x = r[u].y = r[u].z = r[u].w = sum; STORE(to + 16 * (i + u * step), r[u]);))
PASS(copy_pass, EACH(LOAD("ld.global.v4.u32", r[u], from + 16 * (i + u * step));) EACH(STORE(to + 16 * (i + u * step), r[u]);))
