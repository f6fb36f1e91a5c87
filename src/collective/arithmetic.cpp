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
/// CPUID leaf 1, bit 29 of ECX (Intel SDM 2A, CPUID).
bool has_f16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

/// The kernels that need no more than this; nullptr: this program or this processor has not got them.
const KernelTable* find_kernels(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::baseline:
      return &baseline_kernels();
#if defined(RINGBOLT_HAS_X86_KERNELS)
    case Arithmetic::avx512:
      return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                     __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0
                 ? &avx512_kernels()
                 : nullptr;
    case Arithmetic::avx2:
      return __builtin_cpu_supports("avx2") != 0 && has_f16c() ? &avx2_kernels() : nullptr;
#elif defined(RINGBOLT_NEON_KERNELS)
    case Arithmetic::neon:
      return &neon_kernels();
#endif
    default:
      return nullptr;
  }
}

const KernelTable& kernels_of(Arithmetic arithmetic) {
  const KernelTable* const kernels = find_kernels(arithmetic);
  RINGBOLT_ASSERT(kernels != nullptr);
  return *kernels;
}

Arithmetic find_best() {
  Arithmetic best = Arithmetic::baseline;
  for (const Arithmetic one : kArithmetics) {
    best = can_run(one) ? one : best;
  }
  return best;
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
  // Found once: the processor does not change. Threads that come at once wait for the first.
  static const KernelTable& best = kernels_of(arithmetic());
  run_kernel(best, type, reduction, out, sources, length_bytes, divisor);
}

bool can_run(Arithmetic arithmetic) { return find_kernels(arithmetic) != nullptr; }

Arithmetic arithmetic() {
  static const Arithmetic best = find_best();
  return best;
}

const char* text(Arithmetic arithmetic) {
  constexpr const char* kNames[] = {"baseline", "avx2", "avx512", "neon"};
  return kNames[static_cast<size_t>(arithmetic)];
}

void reduce_by(Arithmetic arithmetic, Type type, Reduction reduction, std::byte* out,
               std::span<const std::byte* const> sources, size_t length_bytes, uint32_t divisor) {
  run_kernel(kernels_of(arithmetic), type, reduction, out, sources, length_bytes, divisor);
}

}  // namespace ringbolt::collective
