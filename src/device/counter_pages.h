#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "base/mutex.h"
#include "cluster/counter_page.h"

namespace ringbolt::device {

/// Where the ports of a process count: one page for a file, whoever asks. A page lives as long as this, or as somebody
/// holds it. Its lock is a leaf. Thread-safe.
class CounterPages {
 public:
  /// The page of the port whose file lies at `path`; empty: it has none. A file that can't be used is replaced by own
  /// memory, for good, which RINGBOLT_LOG=debug tells once. Throws std::bad_alloc.
  std::shared_ptr<cluster::CounterPage> at(const std::string& path, cluster::CounterPage::Port port)
      RINGBOLT_EXCLUDES(mutex_);

 private:
  base::Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<cluster::CounterPage>> pages_ RINGBOLT_GUARDED_BY(mutex_);
};

}  // namespace ringbolt::device
