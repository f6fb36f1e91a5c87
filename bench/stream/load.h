#pragma once

#include <cstdint>

namespace ringbolt::bench {

/// Clients of a key-value server, each with one request under way, all of one thread.
struct Load {
  bool is_stream = false;
  uint16_t port = 0;
  uint32_t clients = 1;
  uint32_t bytes = 64;  ///< of a value
  bool is_get = true;
  uint32_t spin_us = 0;  ///< not 0: it asks all clients without sleeping
};
/// Prints requests a second, and the median and 99th percentile of how long one takes. Throws std::runtime_error.
/// After a tenth of a block that is not counted. Binds the calling thread to core 1. Also throws where no answer comes
/// for 20 s, or an error does.
void put_load(const Load& load, uint64_t block_ns);

}  // namespace ringbolt::bench
