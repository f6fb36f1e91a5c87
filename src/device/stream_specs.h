#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/address.h"

namespace ringbolt::device {

/// How long an interruption may last where nobody says; longer than it takes to find that a stream is silent.
inline constexpr uint64_t kDefaultOutageNs = 5'000'000'000U;

/// What RINGBOLT_STREAMS says of one device.
struct StreamSpec {
  std::string name;                ///< of the device, without "rdma_"
  std::vector<std::string> rails;  ///< texts that link::make_stream_source() understands
  uint64_t outage_ns = kDefaultOutageNs;  ///< how long an interruption may last before RC counts it as silence
  friend bool operator==(const StreamSpec&, const StreamSpec&) = default;
};

inline constexpr size_t kMaxStreamPorts = 16;
inline constexpr size_t kMaxStreamRails = 8;

/// "left=fd:3+fd:4;right,outage:30=tcp:host:7777"; the outage is in seconds. Throws base::Error that names the part that is wrong; whether the streams can
/// be opened shows only when they are.
std::vector<StreamSpec> parse_stream_specs(const std::string& text);

/// "fd:3+fd:4" in parts. Throws base::Error when they are too many, or one is empty.
std::vector<std::string> rails_of(const std::string& text);

/// An identifier that the device keeps over restarts of the program, unless its streams are descriptors that it was
/// started with, and that the device at the other end of the streams does not have.
uint64_t stream_guid(const StreamSpec& spec);

using cluster::stream_ipv4;

}  // namespace ringbolt::device
