#pragma once

#include <string>
#include <vector>

#include "plan/cabling.h"
#include "plan/canvas.h"

namespace ringbolt::tools::plan {

/// Larger cablings are a black spot.
inline constexpr uint32_t kMostDrawnNodes = 24;
inline constexpr size_t kMostDrawnCables = 72;

/// The cabling in Braille dots, with the nodes' names; lines of up to 80 columns. Empty if there is too much to draw.
/// Rails are one line. Pure. Thread-safe.
std::string picture(const Cabling& cabling);

/// How the line of a cable is drawn, and what stands on it.
struct Stroke {
  Pen pen = {};
  std::string word = {};
};

/// The same of any graph without rails; one stroke for each of its cables. Pure. Thread-safe.
std::string picture(const fabric::Graph& graph, const std::vector<std::string>& names,
                    const std::vector<Stroke>& strokes, bool has_colours);

}  // namespace ringbolt::tools::plan
