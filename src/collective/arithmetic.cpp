#include "collective/arithmetic.h"

#include "base/assert.h"
#include "collective/arithmetic_table.h"

namespace ringbolt::collective {
namespace {

bool has_avx2() {
#if defined(RINGBOLT_HAS_AVX2_KERNELS)
  static const bool has = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("f16c") != 0;
  return has;
#else
  return false;
#endif
}

void run_kernel(const KernelTable& table, Type type, Reduction reduction, std::byte* out,
                std::span<const std::byte* const> sources, size_t length_bytes, uint32_t divisor) {
  const Kernel kernel = table.kernels[static_cast<size_t>(type)][static_cast<size_t>(reduction)];
  RINGBOLT_ASSERT(kernel != nullptr && !sources.empty());
  kernel(out, sources.data(), sources.size(), length_bytes / bytes_of(type), divisor);
}

}  // namespace

void reduce(Type type, Reduction reduction, std::byte* out, std::span<const std::byte* const> sources,
            size_t length_bytes, uint32_t divisor) {
#if defined(RINGBOLT_HAS_AVX2_KERNELS)
  if (has_avx2()) {
    run_kernel(avx2_kernels(), type, reduction, out, sources, length_bytes, divisor);
    return;
  }
#endif
  reduce_baseline(type, reduction, out, sources, length_bytes, divisor);
}

const char* arithmetic_name() { return has_avx2() ? "avx2" : "baseline"; }

void reduce_baseline(Type type, Reduction reduction, std::byte* out, std::span<const std::byte* const> sources,
                     size_t length_bytes, uint32_t divisor) {
  run_kernel(baseline_kernels(), type, reduction, out, sources, length_bytes, divisor);
}

}  // namespace ringbolt::collective
