#pragma once

#include "verbs/calls.h"

namespace ringbolt::verbs {

/// While it lives, what the device refuses on this thread is an answer and no mistake: Ringbolt's own library, which
/// tells of what a profile's machine refuses, does not tell of that. Other libraries tell of nothing. Not thread-safe:
/// of the thread that made it. Of several in one thread the last that ends counts.
class ExpectedRefusals {
 public:
  explicit ExpectedRefusals(const Calls& calls) : calls_(calls) { expect(1); }
  ~ExpectedRefusals() { expect(0); }
  ExpectedRefusals(const ExpectedRefusals&) = delete;
  ExpectedRefusals& operator=(const ExpectedRefusals&) = delete;

 private:
  void expect(int is_asked_for) const {
    if (calls_.expect_refusals != nullptr) {
      calls_.expect_refusals(is_asked_for);
    }
  }

  const Calls& calls_;
};

}  // namespace ringbolt::verbs
