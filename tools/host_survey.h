#pragma once

#include <string>
#include <vector>

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

/// Whether --hosts is the path of a file and not a list.
bool names_a_file(const std::string& hosts);
/// "a,b,c". Throws UsageError for what is no list of hosts, each once.
std::vector<std::string> split_hosts(const std::string& text);

/// The hosts of `options.hosts`, with their interfaces or Thunderbolt streams and cables as found there. Nothing is
/// changed; what was passed over is said on stderr. Throws UsageError that names every host that can't be reached or
/// used.
HostSurvey survey_hosts(const UpOptions& options);

}  // namespace ringbolt::tools
