#pragma once

#include <algorithm>
#include <cstdint>

namespace ringbolt::rsocket {

/// What can be chosen about a socket before it is connected, by rsetsockopt; an accepted socket has its listener's.
/// Bytes and numbers of work requests.
struct Settings {
  uint32_t send_bytes = 1U << 17U;     ///< SO_SNDBUF: the buffer that bytes wait in until the peer has them
  uint32_t receive_bytes = 1U << 17U;  ///< SO_RCVBUF: the ring that the peer writes into, two halves
  uint32_t send_depth = 384;           ///< RDMA_SQSIZE
  uint32_t receive_depth = 384;        ///< RDMA_RQSIZE
  uint32_t inline_bytes = 64;          ///< RDMA_INLINE
  uint32_t iomap_entries = 0;          ///< RDMA_IOMAPSIZE: how many mappings the peer may make known to us

  static constexpr uint32_t kMinBufferBytes = 4096;
  static constexpr uint32_t kMaxBufferBytes = 1U << 28U;
  static constexpr uint32_t kMinDepth = 16;
  static constexpr uint32_t kMaxDepth = 0xfffe;  ///< credits are counted with 16 bits

  /// The nearest size that there is: even, for two halves.
  static uint32_t buffer_bytes(uint64_t wanted) {
    const uint64_t even = wanted + wanted % 2;
    return static_cast<uint32_t>(std::clamp<uint64_t>(even, kMinBufferBytes, kMaxBufferBytes));
  }
  static uint32_t depth(uint32_t wanted) { return std::clamp(wanted, kMinDepth, kMaxDepth); }
};

/// What a new socket begins with: the values above, or what the administrator wrote into /etc/rdma/rsocket, a file per
/// value: wmem_default, mem_default, sqsize_default, rqsize_default, inline_default, iomap_size. Read anew each time:
/// six opens, beside what a connection costs. Thread-safe.
Settings default_settings();

/// How long a call polls before it sleeps, from the file polling_time there. Thread-safe.
uint64_t default_spin_ns();

}  // namespace ringbolt::rsocket
