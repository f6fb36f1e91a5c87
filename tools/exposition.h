#pragma once

#include <string>
#include <vector>

#include "port_counts.h"

namespace ringbolt::tools {

/// The counters in the text form that Prometheus reads (version 0.0.4): for each metric HELP, TYPE and one line a port.
/// Metrics are named after those of node_exporter's infiniband collector; docs/metrics.md lists them. A counter that
/// the kernel has under several names is there once. Thread-safe.
std::string exposition(const std::vector<PortCounts>& ports);

/// The sample that tells which release this is, with which every page begins. Thread-safe; so is the next.
std::string build_exposition();
/// `text` as the value of a label, between its quotes.
std::string escaped_label(const std::string& text);

}  // namespace ringbolt::tools
