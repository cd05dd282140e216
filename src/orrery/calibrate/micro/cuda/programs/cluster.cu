// Blocks of one cluster in one another's shared memory (Hopper and later). out[block]: cycles.
typedef unsigned long long u64;

__device__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
}
__device__ unsigned int of_neighbour(unsigned int address, int size) {
  unsigned int rank, there;
  asm volatile("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"((rank + 1) % size));
  return there;
}

// One thread of each block follows pointers that lie in its neighbour's shared memory.
extern "C" __global__ void __cluster_dims__(2, 1, 1) chase(int count, int steps, u64* out) {
  extern __shared__ unsigned int words[];
  unsigned int base = (unsigned int)__cvta_generic_to_shared(words), mine;
  unsigned int rank;
  asm volatile("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mine) : "r"(base), "r"(rank));
  for (int i = threadIdx.x; i < count; i += blockDim.x) words[i] = mine + 4 * ((i + 33) % count);
  cluster_barrier();
  if (threadIdx.x == 0 && rank == 0) {
    unsigned int p = of_neighbour(base, 2);
    long long before = clock64();
    _Pragma("unroll 16") for (int i = 0; i < steps; i++)
      asm volatile("ld.shared::cluster.u32 %0, [%0];" : "+r"(p));
    out[1] = p;
    __threadfence();
    out[0] = clock64() - before;
  }
  cluster_barrier();
}

// Every block reads all of its neighbour's `words` 16-byte words, `rounds` times.
#define RING(NAME, SIZE)                                                                      \
  extern "C" __global__ void __cluster_dims__(SIZE, 1, 1) NAME(int words, int rounds, u64* out) { \
    extern __shared__ uint4 held[];                                                           \
    for (int i = threadIdx.x; i < words; i += blockDim.x) held[i].x = i;                      \
    unsigned int there = of_neighbour((unsigned int)__cvta_generic_to_shared(held), SIZE), sum = 0; \
    cluster_barrier();                                                                        \
    long long before = clock64();                                                             \
    for (int round = 0; round < rounds; round++)                                              \
      for (int i = threadIdx.x; i < words; i += 4 * blockDim.x) {                             \
        uint4 r[4];                                                                           \
        _Pragma("unroll") for (int u = 0; u < 4; u++)                                         \
          asm volatile("ld.shared::cluster.v4.u32 {%0,%1,%2,%3}, [%4];"                       \
                       : "=r"(r[u].x), "=r"(r[u].y), "=r"(r[u].z), "=r"(r[u].w)               \
                       : "r"(there + 16 * (i + u * blockDim.x)));                             \
        _Pragma("unroll") for (int u = 0; u < 4; u++) sum ^= r[u].x ^ r[u].y ^ r[u].z ^ r[u].w; \
      }                                                                                       \
    cluster_barrier();                                                                        \
    long long after = clock64();                                                              \
    if (threadIdx.x == 0) out[blockIdx.x] = after - before;                                   \
    if (sum == 0x5eed5eedu) out[blockIdx.x] = 0;                                              \
  }

RING(ring_2, 2)
RING(ring_4, 4)
RING(ring_8, 8)

// The cluster's own barrier, `rounds` times.
extern "C" __global__ void __cluster_dims__(2, 1, 1) barrier_2(int rounds, u64* out) {
  cluster_barrier();
  long long before = clock64();
  for (int i = 0; i < rounds; i++) cluster_barrier();
  long long after = clock64();
  if (threadIdx.x == 0) out[blockIdx.x] = after - before;
}
