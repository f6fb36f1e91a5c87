#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "fault/rule.h"

namespace ringbolt::device {

struct Port;

/// Where the faults of a process come from. A value.
struct FaultSource {
  fault::Plan own;               ///< of RINGBOLT_FAULTS: as long as the process lives
  std::string path;              ///< the cluster's fault file, which comes and goes; empty: no cluster
  std::optional<uint32_t> node;  ///< of the cluster

  /// All faults as of now. A file that can't be read or understood adds none, and `complaint` says why.
  fault::Plan read(std::string& complaint) const;
};

/// The faults of RINGBOLT_FAULTS: lines, or the path of a file (it begins with '/'). Throws base::Error.
fault::Plan faults_from_environment();

/// The port as rules name it.
fault::Place place_of(const Port& port);

/// Throws base::Error for faults that can't come true: on ports in shared memory, and, where all ports of the world are
/// here, for a port that is not.
void check_faults(const fault::Plan& plan, std::span<const std::shared_ptr<const Port>> ports);

}  // namespace ringbolt::device
