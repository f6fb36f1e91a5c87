#include "group/uneven.h"

#include <fmt/core.h>

#include <cerrno>

#include "group/arguments.h"

namespace ringbolt::group {

Status shares_of(const Counts& counts, uint32_t element_bytes, std::vector<uint64_t>& shares) {
  const size_t n = counts.n_ranks();
  shares.clear();
  for (size_t from = 0; from < n; ++from) {
    for (size_t to = 0; to < n; ++to) {
      const uint64_t sends = counts.all[from * 2 * n + to];
      const uint64_t awaits = counts.all[to * 2 * n + n + from];
      if (sends != awaits) {
        return {EPROTO, fmt::format("all_to_allv: rank {} sends {} elements to rank {}, which awaits {}", from, sends,
                                    to, awaits)};
      }
      shares.push_back(bytes_of(sends, element_bytes));
    }
  }
  return {};
}

}  // namespace ringbolt::group
