#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ringbolt::stream {

inline constexpr uint32_t kLeastReceiveBytes = 4096;
inline constexpr uint32_t kMostReceiveBytes = 16U << 20U;  // what stock peers mirror
// Of the longest together 256 MiB, so that lengths and offsets fit 32 bits.
inline constexpr uint32_t kMostReceiveBuffers = 16;

/// What one stream is like. Values.
/// Bytes, microseconds and milliseconds as the names say.
struct StreamSettings {
  /// Each receive buffer, and how many. The peer gets a sending buffer of that length; it stays what it was.
  uint32_t receive_bytes = 1U << 20U;
  uint32_t receive_buffers = 1;
  /// Longest receive buffer of a peer: so much memory is taken here to send from.
  uint32_t max_send_bytes = kMostReceiveBytes;
  /// How long a call that waits polls before it sleeps: latency for processor time.
  uint32_t spin_us = 0;
  /// From a server to an idle client; 0: none.
  uint32_t keepalive_ms = 3000;
  /// For the whole of connecting; of a server, from the request to "ready to use".
  uint32_t connect_timeout_ms = 5000;
  /// Memory of the program's own for the receive buffers, receive_bytes * receive_buffers of it: empty, ours. The
  /// program keeps it until the stream has gone.
  std::span<std::byte> receive_memory = {};
};

/// Throws base::Error with EINVAL, which names the setting that can't be and what can.
void check(const StreamSettings& settings);

/// Whom a listener takes.
struct ListenerSettings {
  StreamSettings stream = {};
  int backlog = 0;               ///< requests that wait to be accepted; 0: the connection manager's own limit
  uint32_t max_streams = 10000;  ///< at a time
  /// "10.0.0.7", "10.1.0.0/16", "fd77::/64": who may connect. Empty: everybody.
  std::vector<std::string> allowed = {};
};

/// What all streams of a Service share.
struct ServiceSettings {
  /// Which verbs library: verbs::Library::open(). Empty: RINGBOLT_VERBS, else "auto".
  std::string verbs = {};
  /// For the buffers of all streams together.
  uint64_t memory_budget_bytes = uint64_t{16} << 30U;
  /// How often streams that the program does not use are looked after.
  uint32_t service_interval_ms = 500;
};

}  // namespace ringbolt::stream
