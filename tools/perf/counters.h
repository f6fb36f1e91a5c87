#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ringbolt::tools::perf {

/// What a port has sent and received since it came up.
struct PortCounters {
  uint64_t transmitted_bytes = 0;
  uint64_t received_bytes = 0;
  friend bool operator==(const PortCounters&, const PortCounters&) = default;
};

/// By how much it has counted on. Where it is below what it was it has been reset, or its device made anew, meanwhile:
/// then what it has counted since.
constexpr uint64_t counted_since(uint64_t before, uint64_t after) { return after < before ? after : after - before; }

/// Reads `root`/sys/class/infiniband/`device`/ports/`port`/counters/port_xmit_data and port_rcv_data, which count words
/// of 4 bytes. Empty if they are not there. Thread-safe.
/// Two files that are read one after the other: under traffic the two counts are of slightly different moments.
std::optional<PortCounters> read_port_counters(const std::string& root, const std::string& device, unsigned port);

/// Those of a device of this process, from the /sys that it has: $RINGBOLT_SYSROOT, which `ringbolt run`, `exec` and
/// `env` set, or the machine's. Of our own library, which needs no such folder, else out of the file that the port
/// counts in, for the node that this process is on. Empty if there is none, or it can't be read. Thread-safe.
std::optional<PortCounters> counters_of(const std::string& device, unsigned port, const std::string& library);

}  // namespace ringbolt::tools::perf
