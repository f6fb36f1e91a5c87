#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "cluster_state.h"
#include "standing.h"

namespace ringbolt::tools {

/// What one `ringbolt run` tells those who ask meanwhile or later: which of its programs have ended, and how. A file
/// clusters/<name>/runs/<pid>, locked while the run goes on (docs/cluster.md). It stays only if a program failed, until
/// the next run of the cluster. What can't be written is not told: no run fails for it. Not thread-safe.
class RunRecord {
 public:
  /// Removes the records of runs that are over. Nothing here throws but for want of memory. Waits for another run that
  /// does the same, for a second at most; there is no record then.
  RunRecord(const LiveCluster& live, const std::vector<std::string>& command);
  ~RunRecord();
  RunRecord(const RunRecord&) = delete;
  RunRecord& operator=(const RunRecord&) = delete;

  /// `how`: one line, as ChildProcess::end_text() has it.
  void note_failure(const std::string& node, pid_t pid, const std::string& how);
  const std::vector<Death>& deaths() const { return deaths_; }

 private:
  std::string folder_;
  std::string path_;
  std::string command_;
  base::UniqueFd file_;
  std::vector<Death> deaths_;
};

/// The programs that have failed, as the records of the cluster tell, those of runs that are over too. In no order.
std::vector<Death> recorded_deaths(const cluster::RuntimeDir& dir, const std::string& name);

}  // namespace ringbolt::tools
