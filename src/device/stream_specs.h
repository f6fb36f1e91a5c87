#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ringbolt::device {

/// What RINGBOLT_STREAMS says of one device.
struct StreamSpec {
  std::string name;                ///< of the device, without "rdma_"
  std::vector<std::string> rails;  ///< texts that link::make_stream_source() understands
  uint64_t outage_ns = 10'000'000'000U;  ///< how long an interruption may last before RC counts it as silence
  friend bool operator==(const StreamSpec&, const StreamSpec&) = default;
};

inline constexpr size_t kMaxStreamPorts = 16;
inline constexpr size_t kMaxStreamRails = 8;

/// "left=fd:3+fd:4;right,outage:30=tcp:host:7777"; the outage is in seconds. Throws base::Error that names the part that is wrong; whether the streams can
/// be opened shows only when they are.
std::vector<StreamSpec> parse_stream_specs(const std::string& text);

/// An identifier that the device keeps over restarts of the program, unless its streams are descriptors that it was
/// started with, and that the device at the other end of the streams does not have.
uint64_t stream_guid(const StreamSpec& spec);

/// An IPv4 link-local address (RFC 3927) for it, host order: only to tell the two ends apart.
uint32_t stream_ipv4(uint64_t guid);

}  // namespace ringbolt::device
