#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "fault/stream.h"

namespace ringbolt::device {

struct Port;

/// The calls of one kind on one object, as faults count them. Not thread-safe.
class CallStream {
 public:
  /// `number`: of the object among those of its kind at the port.
  CallStream(fault::Call call, uint32_t number) : call_(call), number_(number) {}

  /// The next call, which concerns the queue pairs with these numbers: 0, or the error number of its refusal. Ask only
  /// where there may be faults of calls.
  int judge(const Port& port, std::span<const uint32_t> queue_pairs) noexcept;
  uint32_t number() const { return number_; }
  /// It concerns other queue pairs than before.
  void look_again() { known_plan_ = 0; }

 private:
  const fault::Call call_;
  const uint32_t number_;
  uint64_t known_plan_ = 0;  ///< its version
  std::optional<fault::Stream> stream_;
};

}  // namespace ringbolt::device
