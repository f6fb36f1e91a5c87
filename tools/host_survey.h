#pragma once

#include <string>
#include <vector>

#include "cluster/cabling.h"
#include "cluster/model.h"
#include "cluster/thunderbolt.h"
#include "commands.h"

namespace ringbolt::tools {

/// What `up --hosts` has found. With set-ups the cables are not there yet.
struct HostSurvey {
  cluster::Cluster model;
  std::vector<std::string> hosts;
  std::vector<cluster::StreamSetup> setups;
};

/// Whether --hosts is the path of a file and not a list: by its form alone, nothing is looked up. Thread-safe.
bool names_a_file(const std::string& hosts);
/// "a,b,c". Throws UsageError for what is no list of hosts, each once.
std::vector<std::string> split_hosts(const std::string& text);

/// The hosts of `options.hosts`, with their interfaces or Thunderbolt streams and cables as found there. Nothing is
/// changed; what was passed over is said on stderr. Throws UsageError that names every host that can't be reached or
/// used.
HostSurvey survey_hosts(const UpOptions& options);

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
