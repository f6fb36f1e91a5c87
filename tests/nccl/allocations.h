#pragma once

#include <array>
#include <cstdint>

namespace ringbolt::test {

/// What one thread asked the allocator for while `is_on`: malloc and its like, which this program answers for all
/// libraries that it loads, operator new included.
struct Allocations {
  bool is_on = false;
  uint64_t count = 0;
  std::array<void*, 12> first{};  ///< the calls that led to the first one, innermost first
};
extern constinit thread_local Allocations t_allocations;

/// Before counting, for what tells the calls allocates when it does so for the first time.
void prepare_allocations();

/// A sanitizer's allocator leaves no room for ours: then nothing is counted.
bool allocations_are_counted();

}  // namespace ringbolt::test
