#pragma once

#include <string>

#include "doctor/check.h"
#include "doctor/recording.h"

namespace ringbolt::tools::doctor {

/// What a machine is called that is looked at without ssh.
inline constexpr const char* kThisMachine = "this";

/// What is to be looked at: this machine, unless it says more.
struct Scope {
  std::string hosts;      ///< "a,b" or the path of a cluster file or hostfile; empty: no others
  std::string cluster;    ///< that is up; empty: none
  double timeout_s = 60;  ///< for each machine; what was read until then counts
};

/// Looks at this machine, at machines by ssh, or at the nodes of a cluster, all at once. Reads only. A machine that
/// does not answer is in the recording with its reason. Blocks for `timeout_s` at most. Throws UsageError for a scope
/// that makes no sense.
Recording gather(const Scope& scope);

/// Runs a step where gather() has read its host with this scope. Blocks for a minute at most. Throws UsageError with
/// what the command said if it fails.
void carry_out(const Scope& scope, const Step& step);

/// The plan that a file or a cluster is, without looking at any machine: for recordings that have none.
Recording plan_in(const Scope& scope);

}  // namespace ringbolt::tools::doctor
