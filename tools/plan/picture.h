#pragma once

#include <string>

#include "plan/cabling.h"

namespace ringbolt::tools::plan {

/// Larger cablings are a black spot.
inline constexpr uint32_t kMostDrawnNodes = 24;
inline constexpr size_t kMostDrawnCables = 72;

/// The cabling in Braille dots, with the nodes' names; lines of up to 80 columns. Empty if there is too much to draw.
/// Rails are one line. Pure. Thread-safe.
std::string picture(const Cabling& cabling);

}  // namespace ringbolt::tools::plan
