#pragma once

#include <string>

namespace ringbolt::test {

/// What this process holds of the system's.
struct Census {
  int threads = 0;
  int descriptors = 0;
  int mappings = 0;
};

Census take_census();

/// Empty, or what has grown since `before`: by any thread or descriptor, or by more than `spare` mappings, for the C
/// library keeps stacks and heaps, and a sanitizer so much that its mappings don't count. Looks again for up to a
/// second: threads that were told to end may be ending.
std::string growth_since(const Census& before, int spare);

}  // namespace ringbolt::test
