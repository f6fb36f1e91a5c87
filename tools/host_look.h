#pragma once

#include <string>

#include "cluster/cabling.h"
#include "cluster/thunderbolt.h"

namespace ringbolt::tools {

/// What `up --hosts` wants to know of a machine.
struct HostLook {
  std::string version;  ///< of the Ringbolt there
  std::vector<cluster::Interface> interfaces;
  cluster::ThunderboltLook thunderbolt = {};
  friend bool operator==(const HostLook&, const HostLook&) = default;
};

/// Looks at this machine: all interfaces but lo, and Thunderbolt. Throws base::Error.
HostLook look_here();

/// As one line of JSON.
std::string emit_look(const HostLook& look);

/// Reads the last line that is one, whatever a login shell printed before. Any bytes are safe to pass. Throws
/// UsageError that names `host`.
HostLook parse_look(const std::string& host, const std::string& text);

}  // namespace ringbolt::tools
