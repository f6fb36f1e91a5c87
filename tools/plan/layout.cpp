#include "plan/layout.h"

#include <cmath>
#include <numbers>

#include "fabric/builders.h"

namespace ringbolt::tools::plan {
namespace {

void place_in_circle(std::vector<Point>& points, uint32_t n_points, double radius) {
  for (uint32_t index = 0; index < n_points; ++index) {
    const double angle = 2 * std::numbers::pi * index / n_points;
    points.push_back({radius * std::sin(angle), -radius * std::cos(angle)});
  }
}

}  // namespace

std::vector<Point> layout(const fabric::Graph& graph) {
  std::vector<Point> points;
  if (graph == fabric::petersen()) {
    place_in_circle(points, 5, 1);
    place_in_circle(points, 5, 0.5);
  } else {
    place_in_circle(points, graph.n_nodes, 1);
  }
  return points;
}

}  // namespace ringbolt::tools::plan
