#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "base/unique_fd.h"

namespace ringbolt::link {

/// Tells when one of several processes ends, and when a time is over. Not thread-safe.
/// By pidfds (pidfd_open(2)), which are readable once the process has ended, so that no number is taken for another's.
class UdpWatch {
 public:
  /// Throws base::Error.
  UdpWatch();

  /// Readable when something has happened.
  int descriptor() const { return epoll_.get(); }
  /// From now on these processes are watched, and no others. Those that can't be seen (another pid namespace) are not.
  void watch(const std::vector<pid_t>& processes);
  void alarm_in(uint64_t delay_ms);
  /// Whether anything has happened since the last call.
  bool take_news();

  /// In a forked child: closes the descriptors.
  void abandon_after_fork();

 private:
  base::UniqueFd epoll_;
  base::UniqueFd timer_;
  std::map<pid_t, base::UniqueFd> processes_;
};

}  // namespace ringbolt::link
