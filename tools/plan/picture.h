#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/graph.h"
#include "plan/cabling.h"

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

struct Point {
  double x = 0;
  double y = 0;
};

/// Where to draw the nodes, in a circle of radius 1 round (0, 0), node 0 on top; y grows downwards. Petersen's graph
/// gets its pentagon and its star. Pure. Thread-safe.
std::vector<Point> layout(const fabric::Graph& graph);

/// The graph for Graphviz: nodes, and cables with their ids and ports. Pure. Thread-safe.
std::string dot_text(const Cabling& cabling);

/// A picture that needs nothing else; a cable says its ends where the mouse rests on it. Pure. Thread-safe.
std::string svg_text(const Cabling& cabling);

}  // namespace ringbolt::tools::plan
