// Additions that no other thread may divide.
typedef unsigned long long u64;

// Addresses are counted from the thread's number, so that the compiler adds nothing up beforehand.

// One thread, each addition needing the result of the one before.
extern "C" __global__ void chain(u64 words, int steps, u64* out) {
  unsigned int value = 1;
  u64 word = words + 4 * threadIdx.x;
  long long before = clock64();
  for (int i = 0; i < steps; i++)
    asm volatile("atom.global.add.u32 %0, [%1], %0;" : "+r"(value) : "l"(word) : "memory");
  out[1] = value;
  __threadfence();
  out[0] = clock64() - before;
}

extern "C" __global__ void chain_shared(int steps, u64* out) {
  __shared__ unsigned int words[32];
  words[threadIdx.x] = 0;
  unsigned int value = 1, at = (unsigned int)__cvta_generic_to_shared(words + threadIdx.x);
  long long before = clock64();
  for (int i = 0; i < steps; i++)
    asm volatile("atom.shared.add.u32 %0, [%1], %0;" : "+r"(value) : "r"(at) : "memory");
  out[1] = value;
  __threadfence();
  out[0] = clock64() - before;
}

// Every thread adds `rounds` times to the word `stride` words after its neighbour's (0: all to the same one).
extern "C" __global__ void adds(u64 words, int stride, int rounds) {
  u64 at = words + 4ull * stride * (blockIdx.x * blockDim.x + threadIdx.x);
  for (int i = 0; i < rounds; i++) asm volatile("red.global.add.u32 [%0], 1;" ::"l"(at) : "memory");
}
