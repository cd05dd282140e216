// Kernels that do nothing, or wait for a while: what is left is the cost of launching them.
extern "C" __global__ void empty() {}

extern "C" __global__ void spin(int cycles) {
  long long before = clock64();
  while (clock64() - before < cycles) {}
}

// A programmatic dependent: lets its successor begin at once, then waits for its predecessor.
extern "C" __global__ void spin_early(int cycles) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  long long before = clock64();
  while (clock64() - before < cycles) {}
}
