#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <vector>

#include "random.h"
#include "transport/operation.h"
#include "wire/flow.h"

namespace ringbolt::sim {

/// What a cable does to packets. Chances are in parts per million.
struct Weather {
  uint32_t loss = 0;
  uint32_t duplication = 0;
  uint32_t reordering = 0;
  uint32_t corruption = 0;
  uint64_t delay_ns = 10'000;
  uint64_t reorder_delay_ns = 50'000;  ///< a reordered packet is late by up to this
  uint64_t bits_per_second = 0;        ///< 0: no limit
  uint64_t queue_bytes = 1U << 20;     ///< before the bottleneck; what does not fit is dropped
  uint64_t cut_from_ns = UINT64_MAX;   ///< a partition
  uint64_t cut_until_ns = UINT64_MAX;
};

struct NetworkCounters {
  uint64_t sent = 0;
  uint64_t delivered = 0;
  uint64_t lost = 0;
  uint64_t overflowed = 0;
  uint64_t corrupted = 0;
};

/// Two ends and a cable. A packet travels as the bytes that a UDP datagram would hold, ICRC included; a damaged one is
/// thrown away by its ICRC, after the parser has seen it. The same seed gives the same events. Not thread-safe.
class Network {
 public:
  Network(uint64_t seed, const Weather& weather) : random_(seed), weather_(weather) {}

  /// Takes the packet to the other end; `payload` are its bytes.
  void send(uint64_t now_ns, uint32_t from_side, const transport::OutPacket& packet,
            std::span<const std::byte> payload);
  /// When the next packet arrives; UINT64_MAX: none is on its way.
  uint64_t next_arrival_ns() const { return flying_.empty() ? UINT64_MAX : flying_.top().at_ns; }

  struct Arrived {
    uint32_t to_side = 0;
    std::vector<std::byte> bytes;
  };
  /// A packet that has arrived by `now_ns`, checked against its ICRC.
  std::optional<Arrived> receive(uint64_t now_ns);

  const NetworkCounters& counters() const { return counters_; }
  /// Packets that were lost or damaged at `from_ns` or later.
  uint64_t failures_since(uint64_t from_ns) const;
  /// Prints what happens to each packet.
  void trace(bool is_on) { is_tracing_ = is_on; }

 private:
  struct Flying {
    uint64_t at_ns;
    uint64_t number;  ///< breaks ties
    uint32_t to_side;
    bool is_damaged;
    std::vector<std::byte> bytes;
    bool operator>(const Flying& other) const {
      return at_ns != other.at_ns ? at_ns > other.at_ns : number > other.number;
    }
  };

  std::vector<std::byte> serialize(uint32_t from_side, const transport::OutPacket& packet,
                                   std::span<const std::byte> payload) const;
  void launch(uint64_t at_ns, uint32_t from_side, std::vector<std::byte> bytes);
  void note(uint64_t now_ns, const char* what, uint32_t from_side, std::span<const std::byte> bytes) const;

  Random random_;
  Weather weather_;
  uint64_t line_free_ns_[2] = {0, 0};
  uint64_t numbers_ = 0;
  std::priority_queue<Flying, std::vector<Flying>, std::greater<>> flying_;
  NetworkCounters counters_;
  std::vector<uint64_t> failure_times_ns_;
  bool is_tracing_ = false;
};

}  // namespace ringbolt::sim
