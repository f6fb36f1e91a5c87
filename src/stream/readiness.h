#pragma once

#include <cstdint>

#include "base/unique_fd.h"

namespace ringbolt::stream {

/// What programs poll for: one descriptor, readable while one of the watched ones is or the bell is rung. Not
/// thread-safe.
class Readiness {
 public:
  /// Throws base::Error.
  Readiness();

  /// For poll(2) and epoll(7). Owned by this.
  int fd() const { return epoll_.get(); }
  /// Readable from now on when `fd` is. Throws base::Error.
  /// Until that descriptor is closed, which takes it off the set (epoll(7)). No effect if it is watched already.
  void watch(int fd);
  /// Level: readable until it is silenced. A call into the system only when that changes.
  void ring(bool is_wanted);

 private:
  base::UniqueFd epoll_;
  base::UniqueFd bell_;
  bool is_rung_ = false;
};

}  // namespace ringbolt::stream
