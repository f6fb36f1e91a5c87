#include "collective/arithmetic.h"

#if defined(RINGBOLT_HAS_X86_KERNELS)
#include <cpuid.h>
#endif

#include "base/assert.h"
#include "collective/arithmetic_table.h"

namespace ringbolt::collective {
namespace {

#if defined(RINGBOLT_HAS_X86_KERNELS)
/// What clang 14 knows no name for.
bool has_f16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

Arithmetic find_best() {
#if defined(RINGBOLT_HAS_X86_KERNELS)
  if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0) {
    return Arithmetic::avx512;
  }
  if (__builtin_cpu_supports("avx2") != 0 && has_f16c()) {
    return Arithmetic::avx2;
  }
#endif
  return Arithmetic::baseline;
}

const KernelTable& kernels_of(Arithmetic arithmetic) {
#if defined(RINGBOLT_HAS_X86_KERNELS)
  switch (arithmetic) {
    case Arithmetic::avx512:
      return avx512_kernels();
    case Arithmetic::avx2:
      return avx2_kernels();
    case Arithmetic::baseline:
      break;
  }
#endif
  RINGBOLT_ASSERT(arithmetic == Arithmetic::baseline);
  return baseline_kernels();
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
  static const KernelTable& best = kernels_of(arithmetic());
  run_kernel(best, type, reduction, out, sources, length_bytes, divisor);
}

Arithmetic arithmetic() {
  static const Arithmetic best = find_best();
  return best;
}

const char* text(Arithmetic arithmetic) {
  constexpr const char* kNames[] = {"baseline", "avx2", "avx512"};
  return kNames[static_cast<size_t>(arithmetic)];
}

void reduce_by(Arithmetic arithmetic, Type type, Reduction reduction, std::byte* out,
               std::span<const std::byte* const> sources, size_t length_bytes, uint32_t divisor) {
  RINGBOLT_ASSERT(arithmetic <= collective::arithmetic());
  run_kernel(kernels_of(arithmetic), type, reduction, out, sources, length_bytes, divisor);
}

}  // namespace ringbolt::collective
