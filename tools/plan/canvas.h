#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ringbolt::tools::plan {

/// How a line is drawn.
struct Pen {
  uint8_t colour = 0;  ///< of the terminal, as SGR numbers it: 31 red, 32 green, ...; 0: its usual one
  bool is_dashed = false;
  friend bool operator==(const Pen&, const Pen&) = default;
};

/// Lines in Braille dots, two columns and four rows of them in each character, and words over them. Coordinates are in
/// dots. Not thread-safe.
class Canvas {
 public:
  Canvas(int columns, int rows);

  /// Of lines that cross, the later one's colour shows.
  void line(double x0, double y0, double x1, double y1, const Pen& pen = {});
  /// A word with its middle at the dot, and a blank on each side.
  void name(double x, double y, const std::string& text);

  /// Lines without blanks at their ends and empty lines at the bottom; with colours if asked for.
  std::string text(bool has_colours = false) const;

 private:
  size_t cell(int column, int row) const { return static_cast<size_t>(row * columns_ + column); }
  void dot(long x, long y, const Pen& pen);
  std::string row_text(int row, bool has_colours) const;

  int columns_;
  int rows_;
  std::vector<uint8_t> dots_;
  std::vector<uint8_t> colours_;
  std::vector<char> letters_;
};

}  // namespace ringbolt::tools::plan
