#pragma once

#include <vector>

#include "fabric/graph.h"

namespace ringbolt::tools::plan {

struct Point {
  double x = 0;
  double y = 0;
};

/// Where to draw the nodes, in a circle of radius 1 round (0, 0), node 0 on top; y grows downwards. Petersen's graph
/// gets its pentagon and its star. Pure. Thread-safe.
std::vector<Point> layout(const fabric::Graph& graph);

}  // namespace ringbolt::tools::plan
