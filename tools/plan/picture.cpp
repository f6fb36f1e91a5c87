#include "plan/picture.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "plan/layout.h"

namespace ringbolt::tools::plan {
namespace {

/// Dots of two columns and four rows in each character.
class Canvas {
 public:
  Canvas(int columns, int rows)
      : columns_(columns), rows_(rows), dots_(static_cast<size_t>(columns * rows)), letters_(dots_.size(), '\0') {}

  void line(double x0, double y0, double x1, double y1) {
    const double length = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1.0});
    for (double step = 0; step <= length; ++step) {
      dot(std::lround(x0 + (x1 - x0) * step / length), std::lround(y0 + (y1 - y0) * step / length));
    }
  }

  /// A name with its middle at the dot, and a blank on each side.
  void name(double x, double y, const std::string& text) {
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

  std::string text() const {
    std::string all;
    for (int row = 0; row < rows_; ++row) {
      std::string line;
      for (int column = 0; column < columns_; ++column) {
        const size_t at = cell(column, row);
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
      line.erase(line.find_last_not_of(' ') + 1);
      all += line + "\n";
    }
    all.erase(all.find_last_not_of('\n') + 1);
    return all + "\n";
  }

 private:
  size_t cell(int column, int row) const { return static_cast<size_t>(row * columns_ + column); }

  void dot(long x, long y) {
    const int column = static_cast<int>(x / 2);
    const int row = static_cast<int>(y / 4);
    if (x < 0 || y < 0 || column >= columns_ || row >= rows_) {
      return;
    }
    constexpr std::array<std::array<uint8_t, 2>, 4> kBits = {{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
    dots_[cell(column, row)] |= kBits.at(static_cast<size_t>(y % 4)).at(static_cast<size_t>(x % 2));
  }

  int columns_;
  int rows_;
  std::vector<uint8_t> dots_;
  std::vector<char> letters_;
};

}  // namespace

std::string picture(const Cabling& cabling) {
  const fabric::Graph graph = fabric::merge_rails(fabric::graph_of(cabling.plan));
  if (graph.n_nodes > kMostDrawnNodes || graph.cables.size() > kMostDrawnCables) {
    return "";
  }
  const int rows = graph.n_nodes <= 4 ? 9 : graph.n_nodes <= 8 ? 13 : graph.n_nodes <= 14 ? 19 : 25;
  const int columns = std::min(rows * 5 / 2, 64);
  Canvas canvas(columns + 12, rows);
  const std::vector<Point> points = layout(graph);
  const auto x = [&](uint32_t node) { return (6 + (points[node].x + 1) / 2 * (columns - 1)) * 2; };
  const auto y = [&](uint32_t node) { return (points[node].y + 1) / 2 * (rows - 1) * 4 + 1.5; };
  for (const fabric::Cable& cable : graph.cables) {
    canvas.line(x(cable.a), y(cable.a), x(cable.b), y(cable.b));
  }
  for (uint32_t node = 0; node < graph.n_nodes; ++node) {
    canvas.name(x(node), y(node), cabling.node_name(node));
  }
  return canvas.text();
}

}  // namespace ringbolt::tools::plan
