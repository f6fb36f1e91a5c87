#pragma once

#include <cstddef>

#include "base/unique_fd.h"

namespace ringbolt::device {

/// A count of waiting events behind a descriptor that programs poll: readable while it is above 0. Thread-safe.
class EventCount {
 public:
  /// Throws base::Error; `object` is what the message names.
  explicit EventCount(const char* object);
  int descriptor() const { return fd_.get(); }

  // Never blocks: the count of an eventfd is of 64 bits (eventfd(2)).
  void add();
  /// Takes one off. Blocks until there is one, unless the descriptor is non-blocking: then EAGAIN. 0 or an errno.
  int take();
  /// Takes up to `count` off without blocking: their events were dropped. Where the kernel can't do that (before
  /// Linux 5.8) the descriptor stays readable, and one take() each finds no event.
  void take_back(size_t count);

 private:
  base::UniqueFd fd_;
};

}  // namespace ringbolt::device
