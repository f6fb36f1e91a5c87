#include "mesh/knobs.h"

#include <fmt/core.h>

#include <charconv>
#include <string>

#include "mesh/failure.h"

namespace ringbolt::mesh {
namespace {

/// 1 s, when a frozen rank is known to be one, to an hour.
uint64_t milliseconds_of(const char* name, const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1000 || value > 3'600'000) {
    throw JoinError(fmt::format("{} is \"{}\": it must be milliseconds, 1000 to 3600000", name, text));
  }
  return value;
}

}  // namespace

fabric::LivenessKnobs liveness_from(const bootstrap::Environment& environment) {
  fabric::LivenessKnobs knobs;
  const auto frozen = environment.find("RINGBOLT_FROZEN_MS");
  if (frozen != environment.end() && !frozen->second.empty()) {
    // An hour in nanoseconds fits 64 bits by far.
    knobs.frozen_ns = milliseconds_of("RINGBOLT_FROZEN_MS", frozen->second) * 1'000'000;
  }
  return knobs;
}

}  // namespace ringbolt::mesh
