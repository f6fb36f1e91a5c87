#pragma once

#include <string>
#include <vector>

#include "cluster/model.h"
#include "map/flow.h"

namespace ringbolt::tools::map {

/// What is shown of a cluster at one moment.
struct View {
  const cluster::Cluster& model;
  const std::vector<CableFlow>& flows;       ///< [cable]
  const std::vector<std::string>& problems;  ///< what can't be asked
  double interval_s = 1;                     ///< that rates are of
};

/// "0 B/s", "1.50 GB/s": powers of 1000.
std::string rate_text(double bytes_per_s);

/// A picture of nodes and cables, where it is not too much, and a line for each cable; without escapes unless coloured.
/// Pure. Thread-safe.
std::string screen_text(const View& view, bool has_colours);

/// A line for each cable, for logs: nothing but words. Pure. Thread-safe.
std::string lines_text(const View& view);

/// All of it as JSON on one line. Pure. Thread-safe.
std::string json_text(const View& view);

/// The lines of `text` that fit: the first `rows`, each cut to `columns`. Escapes take no place, and colours end with
/// their line. Pure. Thread-safe.
std::string clipped(const std::string& text, size_t columns, size_t rows);

}  // namespace ringbolt::tools::map
