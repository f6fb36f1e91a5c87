#pragma once

#include <string>

namespace ringbolt {

/// How a call ended. `code` is 0 or an errno:
///   ETIMEDOUT     the deadline passed: the text says for whom this rank waited
///   ECONNRESET    a rank died, or no cable leads to it any more
///   EHOSTDOWN     a rank is frozen or silent
///   EPROTO        ranks called different things, or the same with different sizes or types
///   ECANCELED     another rank gave up the call, or the group was aborted
///   EINVAL        an argument makes no sense
/// A value. What the outputs of a failed call hold is undefined; inputs are untouched unless they are the outputs.
struct Status {
  int code = 0;
  std::string text = {};  ///< names the rank, the device and the cable as far as they are known; empty if all is well

  bool is_ok() const { return code == 0; }
  friend bool operator==(const Status&, const Status&) = default;
};

}  // namespace ringbolt
