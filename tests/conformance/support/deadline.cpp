#include "deadline.h"

#include <algorithm>
#include <cstdlib>

namespace ringbolt::conformance {

double time_scale() {
  static const double scale = [] {
    const char* text = std::getenv("RINGBOLT_TEST_TIME_SCALE");
    const double value = text == nullptr ? 1.0 : std::strtod(text, nullptr);
    return value > 0.0 ? value : 1.0;
  }();
  return scale;
}

Deadline::Deadline(std::chrono::milliseconds limit)
    : at_(std::chrono::steady_clock::now() +
          std::chrono::duration_cast<std::chrono::steady_clock::duration>(limit * time_scale())) {}

bool Deadline::has_passed() const { return std::chrono::steady_clock::now() >= at_; }

int Deadline::remaining_ms() const {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(at_ - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

}  // namespace ringbolt::conformance
