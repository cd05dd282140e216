// One thread that follows pointers: each load needs the one before it. out[0]: cycles of `steps` loads.
typedef unsigned long long u64;

#define CHASE(NAME, LOAD)                                                                      \
  extern "C" __global__ void NAME(u64 warm, int warm_steps, u64 start, int steps, u64* out) {  \
    u64 p = warm;                                                                              \
    for (int i = 0; i < warm_steps; i++) asm volatile(LOAD " %0, [%0];" : "+l"(p));            \
    out[1] = p;                                                                                \
    p = start;                                                                                 \
    long long before = clock64();                                                              \
    _Pragma("unroll 16") for (int i = 0; i < steps; i++)                                       \
      asm volatile(LOAD " %0, [%0];" : "+l"(p));                                               \
    out[1] = p;                                                                                \
    __threadfence();                                                                           \
    long long after = clock64();                                                               \
    out[0] = after - before;                                                                   \
  }

CHASE(chase_l1, "ld.global.ca.u64")
CHASE(chase_l2, "ld.global.cg.u64")

// The same in shared memory: `count` addresses, each of the word `stride` further on.
extern "C" __global__ void chase_shared(int count, int stride, int steps, u64* out) {
  extern __shared__ unsigned int words[];
  unsigned int base = (unsigned int)__cvta_generic_to_shared(words);
  for (int i = 0; i < count; i++) words[i] = base + 4 * ((i + stride) % count);
  unsigned int p = base;
  long long before = clock64();
  _Pragma("unroll 16") for (int i = 0; i < steps; i++)
    asm volatile("ld.shared.u32 %0, [%0];" : "+r"(p));
  words[0] = p;
  long long after = clock64();
  out[0] = after - before;
  out[1] = p;
}

// Cycles of the processor's clock in a stretch of nanoseconds: out[0] cycles, out[1] nanoseconds.
extern "C" __global__ void clock_rate(int cycles, u64* out) {
  u64 from, until;
  long long before = clock64(), now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(from)::"memory");
  do now = clock64(); while (now - before < cycles);
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(until)::"memory");
  out[0] = now - before;
  out[1] = until - from;
}
