#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bridge/relay.h"
#include "stream/statistics.h"

namespace ringbolt::tools::bridge {

/// What the connections of a pair have done, those that are open included. A value.
struct Tally {
  std::string listen;
  std::string connect;
  uint64_t open = 0;
  uint64_t accepted = 0;
  Moved moved;
  stream::Statistics fabric;
  std::map<std::string, uint64_t> closed;  ///< by reason; connections that were never made, too

  /// Adds what one connection has done.
  void add(const Moved& of_relay, const stream::Statistics& of_stream);
  /// "tcp:127.0.0.1:6379 -> rdma:10.0.0.2:6379: 12 connections, 1034 bytes there, 88 back; socket-closed 12".
  std::string text() const;
};

/// What Prometheus reads. `memory_bytes`: of the budget, that the buffers of all streams take. Pure.
std::string tallies_exposition(const std::vector<Tally>& pairs, uint64_t memory_bytes, bool is_draining);

}  // namespace ringbolt::tools::bridge
