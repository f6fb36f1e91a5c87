#include "device/expected_refusals.h"

#include <cstdint>

namespace ringbolt::device {
namespace {

thread_local uint32_t n_asking = 0;

}  // namespace

void expect_refusals(bool is_asked_for) {
  if (is_asked_for) {
    ++n_asking;
  } else if (n_asking > 0) {
    --n_asking;
  }
}

bool are_refusals_expected() { return n_asking > 0; }

}  // namespace ringbolt::device
