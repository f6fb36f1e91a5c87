#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "base/spinlock.h"
#include "device/port.h"
#include "fault/stream.h"

namespace ringbolt::device {

/// The faults of a process that befall calls and completions, not frames: of every port, whatever carries it.
/// Thread-safe.
class VerbFaults {
 public:
  explicit VerbFaults(const Fabric& fabric);

  /// Whether any calls or completions may suffer something: one load.
  bool has_any() const { return has_any_.load(std::memory_order_relaxed); }
  /// The next call or completion of this kind at the port.
  fault::Verdict judge(fault::Subject subject, const Port& port);
  /// The cluster's faults may have changed.
  void look();

 private:
  void read();

  const Fabric& fabric_;
  std::atomic<bool> has_any_{false};
  std::atomic<uint64_t> generation_{0};
  std::mutex lock_;
  fault::Plan plan_;
  std::map<std::pair<std::string, fault::Subject>, fault::Stream> streams_;
};

}  // namespace ringbolt::device
