#include "heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace ringbolt::tools {
namespace {

constexpr size_t kCellWidth = 7;

using Cell = HeatMap::Cell;

Cell cell_of(const Direction& direction) {
  switch (direction.state) {
    case Direction::State::kMeasured:
      return Cell::kFigure;
    case Direction::State::kCut:
      return Cell::kCut;
    case Direction::State::kUnreachable:
      return Cell::kNothing;
    case Direction::State::kFailed:
      break;
  }
  return Cell::kFailed;
}

/// A measured cable before a failed one, a failed one before a cut one: trouble must not hide behind a cut.
int rank(Cell cell) { return cell == Cell::kFigure ? 3 : cell == Cell::kFailed ? 2 : cell == Cell::kCut ? 1 : 0; }

void set_heat(HeatMap& map, bool is_less_better) {
  double least = INFINITY;
  double most = 0;
  for (const HeatMap::Entry& entry : map.entries) {
    if (entry.cell == Cell::kFigure) {
      least = std::min(least, entry.figure);
      most = std::max(most, entry.figure);
    }
  }
  for (HeatMap::Entry& entry : map.entries) {
    // Within a factor of 1.5 all is alike: the scale must not turn noise into colour.
    const double span = std::log(std::max(most / least, 1.5));
    if (entry.cell == Cell::kFigure && entry.figure > 0) {
      const double above = std::log(entry.figure / least) / span;
      entry.heat = std::clamp(is_less_better ? above : std::log(most / entry.figure) / span, 0.0, 1.0);
    }
  }
}

HeatMap make_map(const cluster::Cluster& model, const std::vector<Direction>& directions, const char* title,
                 const char* unit, bool is_less_better, double Direction::*figure) {
  HeatMap map;
  map.title = title;
  map.unit = unit;
  for (const cluster::Node& node : model.nodes) {
    map.nodes.push_back(node.name);
  }
  map.entries.resize(map.nodes.size() * map.nodes.size());
  for (const Direction& direction : directions) {
    HeatMap::Entry& entry = map.entries[direction.from.node * map.nodes.size() + direction.to.node];
    const Cell cell = cell_of(direction);
    const double value = direction.*figure;
    const bool is_better = is_less_better ? value < entry.figure : value > entry.figure;
    if (rank(cell) > rank(entry.cell) || (cell == Cell::kFigure && entry.cell == cell && is_better)) {
      entry = {cell, value, 0, direction.hops};
    }
  }
  set_heat(map, is_less_better);
  return map;
}

std::string cell_text(const HeatMap::Entry& entry) {
  switch (entry.cell) {
    case Cell::kNothing:
      return "\u00b7";
    case Cell::kFigure:
      return figure_text(entry.figure) + hops_text(entry.hops);
    case Cell::kCut:
      return "cut";
    case Cell::kFailed:
      break;
  }
  return "FAILED";
}

/// fmt counts a character beyond ASCII as one column, as terminals do.
std::string padded(const std::string& text) { return fmt::format("{:>{}}", text, kCellWidth); }

std::string coloured(const HeatMap::Entry& entry, const std::string& text) {
  // Green over yellow to red, as backgrounds of the 256-colour palette; black letters are legible on all.
  constexpr std::array<int, 7> kScale = {40, 76, 112, 148, 184, 214, 208};
  switch (entry.cell) {
    case Cell::kNothing:
      return fmt::format("\x1b[2m{}\x1b[0m", text);
    case Cell::kFigure: {
      const auto step = static_cast<size_t>(std::lround(entry.heat * (kScale.size() - 1)));
      return fmt::format("\x1b[48;5;{};30m{}\x1b[0m", kScale[step], text);
    }
    case Cell::kCut:
    case Cell::kFailed:
      break;
  }
  return fmt::format("\x1b[1;97;41m{}\x1b[0m", text);
}

}  // namespace

HeatMap latency_map(const cluster::Cluster& model, const std::vector<Direction>& directions) {
  return make_map(model, directions, "Latency: half the median round trip of 8 bytes", "\u00b5s", true,
                  &Direction::latency_us);
}

HeatMap bandwidth_map(const cluster::Cluster& model, const std::vector<Direction>& directions) {
  return make_map(model, directions, "Bandwidth: bytes that the receiver has verified", "Gb/s", false,
                  &Direction::bandwidth_gbps);
}

std::string figure_text(double figure) {
  const int decimals = figure < 10 ? 2 : figure < 100 ? 1 : 0;
  return fmt::format("{:.{}f}", figure, decimals);
}

std::string hops_text(uint32_t hops) {
  constexpr std::array<const char*, 10> kRaised = {"\u2070", "\u00b9", "\u00b2", "\u00b3", "\u2074",
                                                   "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
  std::string text;
  for (const char digit : hops > 1 ? std::to_string(hops) : std::string()) {
    text += kRaised.at(static_cast<size_t>(digit - '0'));
  }
  return text;
}

std::string terminal_text(const HeatMap& map, bool has_colours) {
  const bool is_relayed = std::ranges::any_of(map.entries, [](const HeatMap::Entry& entry) { return entry.hops > 1; });
  std::string text = fmt::format("{} ({}); row sends to column{}\n", map.title, map.unit,
                                 is_relayed ? "; \u00b2 \u00b3 ...: relayed, so many hops" : "");
  text += padded("");
  for (const std::string& node : map.nodes) {
    text += " " + padded(node.substr(0, kCellWidth));
  }
  text += "\n";
  for (size_t from = 0; from < map.nodes.size(); ++from) {
    text += padded(map.nodes[from].substr(0, kCellWidth));
    for (size_t to = 0; to < map.nodes.size(); ++to) {
      const std::string cell = padded(cell_text(map.at(from, to)));
      text += " " + (has_colours ? coloured(map.at(from, to), cell) : cell);
    }
    text += "\n";
  }
  return text;
}

size_t terminal_width(const HeatMap& map) { return kCellWidth + map.nodes.size() * (kCellWidth + 1); }

}  // namespace ringbolt::tools
