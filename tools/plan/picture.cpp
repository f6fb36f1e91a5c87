#include "plan/picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "fabric/builders.h"

namespace ringbolt::tools::plan {
namespace {

/// Dots on and off along a dashed line.
constexpr long kDash = 3;

void place_in_circle(std::vector<Point>& points, uint32_t n_points, double radius) {
  for (uint32_t index = 0; index < n_points; ++index) {
    const double angle = 2 * std::numbers::pi * index / n_points;
    points.push_back({radius * std::sin(angle), -radius * std::cos(angle)});
  }
}

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

Canvas::Canvas(int columns, int rows)
    : columns_(columns),
      rows_(rows),
      dots_(static_cast<size_t>(columns * rows)),
      colours_(dots_.size()),
      letters_(dots_.size(), '\0') {}

void Canvas::line(double x0, double y0, double x1, double y1, const Pen& pen) {
  const double length = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1.0});
  for (double step = 0; step <= length; ++step) {
    if (!pen.is_dashed || static_cast<long>(step) / kDash % 2 == 0) {
      dot(std::lround(x0 + (x1 - x0) * step / length), std::lround(y0 + (y1 - y0) * step / length), pen);
    }
  }
}

void Canvas::name(double x, double y, const std::string& text) {
  const int row = std::clamp(static_cast<int>(y / 4), 0, rows_ - 1);
  const auto width = static_cast<int>(text.size());
  const int first = std::clamp(static_cast<int>(x / 2) - width / 2, 0, std::max(columns_ - width, 0));
  for (int index = -1; index <= width; ++index) {
    const int column = first + index;
    if (column >= 0 && column < columns_) {
      const bool is_blank = index < 0 || index == width;
      char& letter = letters_[cell(column, row)];
      letter = !is_blank ? text[static_cast<size_t>(index)] : letter == '\0' ? ' ' : letter;
    }
  }
}

std::string Canvas::text(bool has_colours) const {
  std::string all;
  for (int row = 0; row < rows_; ++row) {
    all += row_text(row, has_colours) + "\n";
  }
  all.erase(all.find_last_not_of('\n') + 1);
  return all + "\n";
}

std::string Canvas::row_text(int row, bool has_colours) const {
  int end = columns_;
  const auto is_blank = [&](size_t at) { return letters_[at] == ' ' || (letters_[at] == '\0' && dots_[at] == 0); };
  while (end > 0 && is_blank(cell(end - 1, row))) {
    --end;
  }
  std::string line;
  uint8_t colour = 0;
  for (int column = 0; column < end; ++column) {
    const size_t at = cell(column, row);
    const uint8_t wanted = letters_[at] != '\0' || dots_[at] == 0 ? 0 : colours_[at];
    if (has_colours && wanted != colour) {
      line += fmt::format("\x1b[{}m", wanted);
      colour = wanted;
    }
    if (letters_[at] != '\0') {
      line += letters_[at];
    } else if (dots_[at] == 0) {
      line += ' ';
    } else {  // U+2800 and a bit for each dot, in UTF-8
      line += '\xe2';
      line += static_cast<char>(0xa0 + (dots_[at] >> 6U));
      line += static_cast<char>(0x80 + (dots_[at] & 0x3fU));
    }
  }
  return colour == 0 ? line : line + "\x1b[0m";
}

void Canvas::dot(long x, long y, const Pen& pen) {
  const int column = static_cast<int>(x / 2);
  const int row = static_cast<int>(y / 4);
  if (x < 0 || y < 0 || column >= columns_ || row >= rows_) {
    return;
  }
  constexpr std::array<std::array<uint8_t, 2>, 4> kBits = {{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
  dots_[cell(column, row)] |= kBits.at(static_cast<size_t>(y % 4)).at(static_cast<size_t>(x % 2));
  colours_[cell(column, row)] = pen.colour;
}

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
