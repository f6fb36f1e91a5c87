#include "plan/drawing.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plan/layout.h"

namespace ringbolt::tools::plan {
namespace {

using fabric::PlannedCable;

// Names are letters, digits, '_', '.' and '-' (cluster/names.h): nothing in them needs an escape. The name of a file
// does.
std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    const bool is_plain = c >= ' ' && c != '<' && c != '>' && c != '&' && c != '"' && c != '\\';
    safe += is_plain ? c : '_';
  }
  return safe;
}

std::string port_name(const Cabling& cabling, const fabric::PlannedEnd& end) {
  return cabling.model.nodes[end.node].ports[end.port].name;
}

std::string cable_svg(const Cabling& cabling, const PlannedCable& cable, const Point& from, const Point& to) {
  // Rails are bows, each further out than the one before.
  const double bow = cable.rail == 0 ? 0 : (cable.rail % 2 == 1 ? 1 : -1) * 14.0 * ((cable.rail + 1) / 2);
  const double length = std::max(std::hypot(to.x - from.x, to.y - from.y), 1.0);
  const Point middle{(from.x + to.x) / 2 - bow * 2 * (to.y - from.y) / length,
                     (from.y + to.y) / 2 + bow * 2 * (to.x - from.x) / length};
  // A third of the way: where lines cross less than in the middle.
  const Point label{from.x * 4 / 9 + middle.x * 4 / 9 + to.x / 9, from.y * 4 / 9 + middle.y * 4 / 9 + to.y / 9};
  return fmt::format(
      "<g><path d=\"M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}\"/><title>cable {}: {} to {}, {} Gb/s</title>"
      "<text class=\"id\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text></g>\n",
      from.x, from.y, middle.x, middle.y, to.x, to.y, cable.id, cabling.end_text(cable.a), cabling.end_text(cable.b),
      cabling.speed_gbps(cable), label.x, label.y, cable.id);
}

}  // namespace

std::string dot_text(const Cabling& cabling) {
  std::string text = fmt::format("graph \"{}\" {{\n  node [shape=box];\n", escaped(cabling.shape));
  for (const cluster::Node& node : cabling.model.nodes) {
    text += fmt::format("  \"{}\";\n", node.name);
  }
  for (const PlannedCable& cable : cabling.plan.cables) {
    text += fmt::format("  \"{}\" -- \"{}\" [label=\"{}\", taillabel=\"{}\", headlabel=\"{}\"];\n",
                        cabling.node_name(cable.a.node), cabling.node_name(cable.b.node), cable.id,
                        port_name(cabling, cable.a), port_name(cabling, cable.b));
  }
  return text + "}\n";
}

std::string svg_text(const Cabling& cabling) {
  const double radius = std::clamp(30.0 + 16.0 * cabling.n_nodes(), 110.0, 900.0);
  const double middle = radius + 60;
  std::vector<Point> points = layout(fabric::graph_of(cabling.plan));
  for (Point& point : points) {
    point = {middle + radius * point.x, middle + radius * point.y};
  }
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {0:.0f}\" width=\"{0:.0f}\" role=\"img\">\n"
      "<title>{1}</title>\n"
      "<style>path{{fill:none;stroke:#4a7;stroke-width:2}}g:hover path{{stroke:#d50;stroke-width:4}}"
      "text{{font:13px sans-serif;text-anchor:middle;dominant-baseline:central;fill:#222}}"
      ".id{{font-size:10px;fill:#666;paint-order:stroke;stroke:#fff;stroke-width:3}}"
      "rect{{fill:#eef4ff;stroke:#469}}</style>\n<rect width=\"100%\" height=\"100%\" "
      "style=\"fill:#fff;stroke:none\"/>\n",
      2 * middle, escaped(cabling.shape));
  for (const PlannedCable& cable : cabling.plan.cables) {
    text += cable_svg(cabling, cable, points[cable.a.node], points[cable.b.node]);
  }
  for (uint32_t node = 0; node < cabling.n_nodes(); ++node) {
    const std::string& name = cabling.node_name(node);
    const double width = 14 + 8.0 * static_cast<double>(name.size());
    text += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"24\" rx=\"5\"/><text x=\"{:.1f}\" "
        "y=\"{:.1f}\">{}</text>\n",
        points[node].x - width / 2, points[node].y - 12, width, points[node].x, points[node].y, name);
  }
  return text + "</svg>\n";
}

}  // namespace ringbolt::tools::plan
