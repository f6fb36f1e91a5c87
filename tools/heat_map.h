#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/model.h"
#include "measurement.h"

namespace ringbolt::tools {

/// A figure for every ordered pair of nodes, made from directions: of parallel cables the better one counts, and where
/// all are cut, what other nodes relay.
struct HeatMap {
  enum class Cell { kNothing, kFigure, kCut, kFailed };
  struct Entry {
    Cell cell = Cell::kNothing;
    double figure = 0;
    double heat = 0;    ///< 0 the best figure of the map, 1 the worst, on a logarithmic scale
    uint32_t hops = 1;  ///< of a figure; more than 1: relayed
  };

  std::string title;
  std::string unit;
  std::vector<std::string> nodes;
  std::vector<Entry> entries;  ///< by row (from) and column (to): [nodes * nodes]

  const Entry& at(size_t from, size_t to) const { return entries[from * nodes.size() + to]; }
};

/// Of a model's directions: each end must be a node of it. Pure. Thread-safe. Microseconds, and Gbit/s.
HeatMap latency_map(const cluster::Cluster& model, const std::vector<Direction>& directions);
HeatMap bandwidth_map(const cluster::Cluster& model, const std::vector<Direction>& directions);

/// "0.41", "97.3", "1250": three figures that matter.
std::string figure_text(double figure);

/// "\u00b2" for 2 hops, "\u00b9\u2070" for 10; empty for 1: what stands behind a figure that is relayed.
std::string hops_text(uint32_t hops);

/// The map as lines for a terminal, with colours of the 256-colour palette if asked for.
std::string terminal_text(const HeatMap& map, bool has_colours);

/// How wide terminal_text() gets, in columns.
size_t terminal_width(const HeatMap& map);

/// What stands over the figures.
struct ReportHead {
  std::string cluster;
  std::string conditions;  ///< sizes and counts
  std::string caveat;      ///< what the figures are of: memory, a kernel, cables; and which machine has asked for them
};

/// A page with a picture of the cables, both maps as inline SVG and a table. Needs no other file. Thread-safe.
std::string html_report(const ReportHead& head, const cluster::Cluster& model,
                        const std::vector<Direction>& directions);

/// `text` with the characters that mean something in HTML replaced. Thread-safe.
std::string html_escaped(const std::string& text);

}  // namespace ringbolt::tools
