#pragma once

#include <ringbolt/byte_stream.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ringbolt::bench {

inline uint64_t percentile(std::vector<uint64_t>& samples, size_t per_thousand) {
  if (samples.empty()) {
    return 0;
  }
  const size_t at = std::min(samples.size() - 1, samples.size() * per_thousand / 1000);
  std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(at), samples.end());
  return samples[at];
}

/// A stream between the two processes of a pair, each of which makes its end.
struct Connected {
  Connected(int control, bool is_server, uint32_t spin_us, uint32_t receive_bytes, uint32_t buffers = 1);
  StreamService service;
  std::optional<ByteStream> stream;
};

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
void put_load(const Load& load, uint64_t block_ns);

inline volatile uint64_t sink = 0;  // what is read must not be optimized away

}  // namespace ringbolt::bench
