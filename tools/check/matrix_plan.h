#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ranks/work.h"

namespace ringbolt::tools::check {

/// Which calls `ringbolt check --matrix` makes.
struct MatrixPlan {
  std::vector<ranks::Collective> collectives;  ///< empty: all
  uint64_t largest_bytes = 0;                  ///< of a buffer's share: what count stands for
  bool is_thorough = false;                    ///< every type with every reduction, count and root
};

/// A call, to be made with every algorithm that does it.
struct MatrixCase {
  ranks::Work work;
  /// Asks for the order of ranks where order matters. Off: data are exact, so that schedules of any order must agree.
  bool is_reproducible = true;
};

/// All of them, in order. Depends on the number of ranks alone, not on their cables: so checksums can be compared.
std::vector<MatrixCase> matrix_cases(const MatrixPlan& plan, uint32_t n_ranks);

/// Counts of elements of that size: none, one, few, a prime, those of a page less a byte, and as many as
/// `largest_bytes` hold. Ascending, each once, and none that needs more.
std::vector<size_t> matrix_counts(uint64_t largest_bytes, size_t element_bytes);

}  // namespace ringbolt::tools::check
