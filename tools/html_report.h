#pragma once

#include <string>
#include <vector>

#include "heat_map.h"

namespace ringbolt::tools {

/// What stands over the figures.
struct ReportHead {
  std::string cluster;
  std::string conditions;  ///< sizes and counts
  std::string machine;
};

/// A page with a picture of the cables, both maps as inline SVG and a table. Needs no other file. Thread-safe.
std::string html_report(const ReportHead& head, const cluster::Cluster& model,
                        const std::vector<Direction>& directions);

/// `text` with the characters that mean something in HTML replaced. Thread-safe.
std::string html_escaped(const std::string& text);

}  // namespace ringbolt::tools
