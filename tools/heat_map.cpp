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
    if (entry.cell == Cell::kFigure && entry.figure > 0) {  // of 0 there is no logarithm
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
    } else if (entry.cell == Cell::kFigure) {
      entry.heat = is_less_better ? 0 : 1;
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

constexpr const char* kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222;background:#fff}"
    "svg{max-width:100%;height:auto}svg text{font:13px system-ui,sans-serif}"
    "table{border-collapse:collapse}td,th{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:right}"
    "td:nth-child(-n+3),th:nth-child(-n+3){text-align:left}.bad{color:#b00;font-weight:bold}.note{color:#666}";

/// Green at 0 over yellow to red at 1.
std::string heat_colour(double heat) { return fmt::format("hsl({:.0f} 65% 62%)", 130 * (1 - heat)); }

std::string cell_title(const HeatMap::Entry& entry, const HeatMap& map) {
  return fmt::format("{} {}{}", figure_text(entry.figure), map.unit,
                     entry.hops > 1 ? fmt::format(", relayed, {} hops", entry.hops) : "");
}

std::string cell_svg(const HeatMap& map, size_t from, size_t to, double x, double y, double side) {
  const HeatMap::Entry& entry = map.at(from, to);
  std::string fill = "#f4f4f4";
  std::string text;
  std::string letters = "#222";
  switch (entry.cell) {
    case HeatMap::Cell::kNothing:
      break;
    case HeatMap::Cell::kFigure:
      fill = heat_colour(entry.heat);
      text = figure_text(entry.figure) + hops_text(entry.hops);
      break;
    case HeatMap::Cell::kCut:
    case HeatMap::Cell::kFailed:
      fill = "#b00";
      letters = "#fff";
      text = entry.cell == HeatMap::Cell::kCut ? "cut" : "failed";
      break;
  }
  return fmt::format(
      "<g><title>{} to {}: {}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"{}\">{}</text></g>\n",
      html_escaped(map.nodes[from]), html_escaped(map.nodes[to]),
      text.empty()                           ? "no cable"
      : entry.cell == HeatMap::Cell::kFigure ? cell_title(entry, map)
                                             : text,
      x, y, side - 2, side * 0.6 - 2, fill, x + side / 2 - 1, y + side * 0.36, letters, text);
}

std::string map_svg(const HeatMap& map) {
  constexpr double kSide = 64;
  constexpr double kHead = 90;
  const auto count = static_cast<double>(map.nodes.size());
  std::string svg = fmt::format("<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">\n",
                                kHead + count * kSide, 30 + count * kSide * 0.6);
  for (size_t node = 0; node < map.nodes.size(); ++node) {
    const std::string name = html_escaped(map.nodes[node]);
    const auto place = static_cast<double>(node);
    svg +=
        fmt::format("<text x=\"{}\" y=\"18\" text-anchor=\"middle\">{}</text>\n", kHead + (place + 0.5) * kSide, name);
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kHead - 8,
                       30 + place * kSide * 0.6 + kSide * 0.36, name);
  }
  for (size_t from = 0; from < map.nodes.size(); ++from) {
    for (size_t to = 0; to < map.nodes.size(); ++to) {
      svg += cell_svg(map, from, to, kHead + static_cast<double>(to) * kSide,
                      30 + static_cast<double>(from) * kSide * 0.6, kSide);
    }
  }
  return svg + "</svg>\n";
}

/// Nodes on a circle, cables as lines; parallel cables are bent apart.
std::string graph_svg(const cluster::Cluster& model, const std::vector<Direction>& directions) {
  constexpr double kRadius = 150;
  constexpr double kMiddle = 190;
  const auto place = [&](uint32_t node) {
    const double angle = 2 * M_PI * node / static_cast<double>(model.nodes.size()) - M_PI / 2;
    return std::pair(kMiddle + kRadius * std::cos(angle), kMiddle + kRadius * std::sin(angle));
  };
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {0} {0}\" width=\"{0}\" height=\"{0}\" role=\"img\">\n", 2 * kMiddle);
  for (uint32_t index = 0; index < model.cables.size(); ++index) {
    const cluster::Cable& cable = model.cables[index];
    bool is_good = true;
    for (const Direction& direction : directions) {
      is_good &= direction.cable != index || direction.state == Direction::State::kMeasured;
    }
    double bend = 0;
    for (uint32_t earlier = 0; earlier < index; ++earlier) {
      const cluster::Cable& other = model.cables[earlier];
      const bool is_parallel = (other.a.node == cable.a.node && other.b.node == cable.b.node) ||
                               (other.a.node == cable.b.node && other.b.node == cable.a.node);
      bend += is_parallel ? 24 : 0;
    }
    const auto [ax, ay] = place(cable.a.node);
    const auto [bx, by] = place(cable.b.node);
    svg += fmt::format(
        "<path d=\"M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" stroke=\"{}\" stroke-width=\"3\"{}>"
        "<title>cable {}: {} - {}</title></path>\n",
        ax, ay, (ax + bx) / 2 + bend, (ay + by) / 2 + bend, bx, by, is_good ? "#4a8" : "#b00",
        is_good ? "" : " stroke-dasharray=\"6 6\"", index, html_escaped(cluster::end_text(model, cable.a)),
        html_escaped(cluster::end_text(model, cable.b)));
  }
  for (uint32_t node = 0; node < model.nodes.size(); ++node) {
    const auto [x, y] = place(node);
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"20\" fill=\"#fff\" stroke=\"#222\" stroke-width=\"2\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
        x, y, x, y + 4.5, html_escaped(model.nodes[node].name.substr(0, 6)));
  }
  return svg + "</svg>\n";
}

std::string table_html(const cluster::Cluster& model, const std::vector<Direction>& directions) {
  std::string html =
      "<table><tr><th>from</th><th>to</th><th>state</th><th>hops</th><th>latency, \u00b5s</th><th>p99, \u00b5s</th>"
      "<th>worst, \u00b5s</th><th>bandwidth, Gb/s</th></tr>\n";
  for (const Direction& one : directions) {
    html += fmt::format("<tr><td>{}</td><td>{}</td>", html_escaped(from_text(model, one)),
                        html_escaped(to_text(model, one)));
    if (one.state == Direction::State::kMeasured) {
      html += fmt::format(
          "<td>measured</td><td{}>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
          one.through.empty() ? "" : fmt::format(" title=\"through {}\"", html_escaped(through_text(model, one))),
          one.hops, figure_text(one.latency_us), figure_text(one.latency_p99_us), figure_text(one.latency_most_us),
          figure_text(one.bandwidth_gbps));
    } else {
      html += fmt::format("<td class=\"bad\">{}</td><td colspan=\"5\">{}</td></tr>\n", state_text(one.state),
                          html_escaped(one.problem));
    }
  }
  return html + "</table>\n";
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

std::string html_escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string html_report(const ReportHead& head, const cluster::Cluster& model,
                        const std::vector<Direction>& directions) {
  const HeatMap latency = latency_map(model, directions);
  const HeatMap bandwidth = bandwidth_map(model, directions);
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Ringbolt matrix of {0}</title>"
      "<style>{1}</style></head><body>\n<h1>Matrix of {0}</h1>\n<p class=\"note\">{2}<br>{3}</p>\n",
      html_escaped(head.cluster), kStyle, html_escaped(head.conditions), html_escaped(head.caveat));
  page += graph_svg(model, directions);
  for (const HeatMap* map : {&latency, &bandwidth}) {
    page += fmt::format(
        "<h2>{} ({})</h2>\n<p class=\"note\">Row sends to column. \u00b2 \u00b3 ...: other "
        "nodes relay, so many hops.</p>\n{}",
        map->title, map->unit, map_svg(*map));
  }
  return page + "<h2>All directions</h2>\n" + table_html(model, directions) + "</body></html>\n";
}

}  // namespace ringbolt::tools
