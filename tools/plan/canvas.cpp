#include "plan/canvas.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace ringbolt::tools::plan {
namespace {

/// Dots on and off along a dashed line.
constexpr long kDash = 3;

}  // namespace

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

}  // namespace ringbolt::tools::plan
