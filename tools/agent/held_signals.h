#pragma once

#include <signal.h>

#include "base/unique_fd.h"

namespace ringbolt::tools::agent {

/// Keeps SIGINT, SIGTERM and SIGHUP, unless they are ignored, from this process for as long as it lives: what they
/// interrupt is first undone. One that came meanwhile has its way when this value goes. Not thread-safe.
/// Made before threads are, which inherit the mask; for the calling thread otherwise.
class HeldSignals {
 public:
  /// Throws base::Error.
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  /// Readable when one has come; not to be read.
  int descriptor() const { return signals_.get(); }
  bool has_come() const;

 private:
  sigset_t before_{};
  base::UniqueFd signals_;
};

}  // namespace ringbolt::tools::agent
