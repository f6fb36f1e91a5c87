#include "plan/picture.h"

#include <algorithm>

#include "plan/layout.h"

namespace ringbolt::tools::plan {

std::string picture(const Cabling& cabling) {
  const fabric::Graph graph = fabric::merge_rails(fabric::graph_of(cabling.plan));
  std::vector<std::string> names;
  for (uint32_t node = 0; node < graph.n_nodes; ++node) {
    names.push_back(cabling.node_name(node));
  }
  return picture(graph, names, std::vector<Stroke>(graph.cables.size()), false);
}

std::string picture(const fabric::Graph& graph, const std::vector<std::string>& names,
                    const std::vector<Stroke>& strokes, bool has_colours) {
  if (graph.n_nodes > kMostDrawnNodes || graph.cables.size() > kMostDrawnCables) {
    return "";
  }
  const int rows = graph.n_nodes <= 4 ? 9 : graph.n_nodes <= 8 ? 13 : graph.n_nodes <= 14 ? 19 : 25;
  const int columns = std::min(rows * 5 / 2, 64);
  Canvas canvas(columns + 12, rows);
  const std::vector<Point> points = layout(graph);
  const auto x = [&](uint32_t node) { return (6 + (points[node].x + 1) / 2 * (columns - 1)) * 2; };
  const auto y = [&](uint32_t node) { return (points[node].y + 1) / 2 * (rows - 1) * 4 + 1.5; };
  for (size_t i = 0; i < graph.cables.size(); ++i) {
    const fabric::Cable& cable = graph.cables[i];
    canvas.line(x(cable.a), y(cable.a), x(cable.b), y(cable.b), strokes[i].pen);
  }
  for (size_t i = 0; i < graph.cables.size(); ++i) {
    const fabric::Cable& cable = graph.cables[i];
    if (!strokes[i].word.empty()) {
      // Nearer to one end than to the other: in the middle, lines cross.
      constexpr double kFromA = 0.4;
      canvas.name(x(cable.a) + (x(cable.b) - x(cable.a)) * kFromA, y(cable.a) + (y(cable.b) - y(cable.a)) * kFromA,
                  strokes[i].word);
    }
  }
  for (uint32_t node = 0; node < graph.n_nodes; ++node) {
    canvas.name(x(node), y(node), names[node]);
  }
  return canvas.text(has_colours);
}

}  // namespace ringbolt::tools::plan
