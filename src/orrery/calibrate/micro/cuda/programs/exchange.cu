// Exchange between blocks: flags through the second-level cache, and barriers of the whole grid.
typedef unsigned long long u64;

__device__ int seen(int* flag) {
  int value;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}
__device__ void tell(int* flag, int value) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

// Blocks 0 and `other` hand a number to and fro; out[0]: cycles of `rounds` there and back.
extern "C" __global__ void ping_pong(int* flags, int other, int rounds, u64* out) {
  if (threadIdx.x != 0 || (blockIdx.x != 0 && blockIdx.x != other)) return;
  int* mine = flags + (blockIdx.x == 0 ? 0 : 64);
  int* theirs = flags + (blockIdx.x == 0 ? 64 : 0);
  long long before = clock64();
  for (int i = 1; i <= rounds; i++) {
    if (blockIdx.x == 0) tell(mine, i);
    while (seen(theirs) < i) {}
    if (blockIdx.x != 0) tell(mine, i);
  }
  if (blockIdx.x == 0) out[0] = clock64() - before;
}

// All blocks wait for one another `rounds` times; the grid is resident at once.
extern "C" __global__ void grid_barrier(int* count, int rounds, u64* out) {
  __syncthreads();
  long long before = clock64();
  for (int i = 1; i <= rounds; i++) {
    __syncthreads();
    if (threadIdx.x == 0) {
      asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(count) : "memory");
      while (seen(count) < i * (int)gridDim.x) {}
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = clock64() - before;
}

// One block's own barrier, `rounds` times.
extern "C" __global__ void block_barrier(int rounds, u64* out) {
  __syncthreads();
  long long before = clock64();
  for (int i = 0; i < rounds; i++) __syncthreads();
  long long after = clock64();
  if (threadIdx.x == 0) out[0] = after - before;
}
