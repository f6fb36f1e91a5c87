#include "cable_choice.h"

#include <algorithm>

#include <fmt/format.h>

#include "failure.h"

namespace ringbolt::tools {
namespace {

/// "A" or "A:port".
struct EndText {
  std::string node;
  std::string port;
};

EndText split_end(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon != std::string::npos && colon + 1 == text.size()) {
    throw UsageError(fmt::format("\"{}\" names no port: leave out the colon, or say which", text));
  }
  return {text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
}

bool is_end(const LiveCluster& live, const cluster::CableEnd& end, uint32_t node, const std::string& port) {
  return end.node == node && (port.empty() || live.model.nodes[node].ports[end.port].name == port);
}

std::string list_cables(const LiveCluster& live, const std::vector<uint32_t>& cables) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < cables.size() && i < kMost; ++i) {
    text += (text.empty() ? "" : ", ") + cable_text(live, cables[i]);
  }
  return cables.size() > kMost ? text + ", ..." : text;
}

std::vector<uint32_t> cables_of(const LiveCluster& live, uint32_t node) {
  std::vector<uint32_t> cables;
  for (uint32_t index = 0; index < live.model.cables.size(); ++index) {
    if (live.model.cables[index].a.node == node || live.model.cables[index].b.node == node) {
      cables.push_back(index);
    }
  }
  return cables;
}

/// The two ends as one way to read a text has them.
struct Reading {
  uint32_t node_a = 0;
  uint32_t node_b = 0;
  std::string port_a;
  std::string port_b;
};

/// A '-' separates the ends, but a node's name may hold some: each split at which both sides are nodes. At least one.
std::vector<Reading> readings_of(const LiveCluster& live, const std::string& text) {
  std::vector<Reading> readings;
  std::string first_complaint;
  for (size_t dash = text.find('-'); dash != std::string::npos; dash = text.find('-', dash + 1)) {
    try {
      const EndText a = split_end(text.substr(0, dash));
      const EndText b = split_end(text.substr(dash + 1));
      readings.push_back({find_node(live.model, a.node), find_node(live.model, b.node), a.port, b.port});
    } catch (const UsageError& error) {
      first_complaint = first_complaint.empty() ? error.what() : first_complaint;
    }
  }
  if (readings.empty()) {
    throw UsageError(first_complaint.empty()
                         ? fmt::format("\"{}\" is no cable: give two nodes, as in 1-2, or two ports, as in "
                                       "1:rdma_en2-2:rdma_en3",
                                       text)
                         : first_complaint);
  }
  return readings;
}

std::vector<uint32_t> cables_fitting(const LiveCluster& live, const Reading& one) {
  std::vector<uint32_t> fitting;
  for (const uint32_t index : cables_between(live.model, one.node_a, one.node_b)) {
    const cluster::Cable& cable = live.model.cables[index];
    if ((is_end(live, cable.a, one.node_a, one.port_a) && is_end(live, cable.b, one.node_b, one.port_b)) ||
        (is_end(live, cable.b, one.node_a, one.port_a) && is_end(live, cable.a, one.node_b, one.port_b))) {
      fitting.push_back(index);
    }
  }
  return fitting;
}

}  // namespace

std::string cable_text(const LiveCluster& live, uint32_t index) {
  const cluster::Cable& cable = live.model.cables[index];
  return fmt::format("{}-{}", cluster::end_text(live.model, cable.a), cluster::end_text(live.model, cable.b));
}

uint32_t find_cable(const LiveCluster& live, const std::string& text) {
  const std::vector<Reading> readings = readings_of(live, text);
  std::vector<uint32_t> meant;
  size_t n_fitting_readings = 0;
  for (const Reading& one : readings) {
    const std::vector<uint32_t> fitting = cables_fitting(live, one);
    n_fitting_readings += fitting.empty() ? 0U : 1U;
    for (const uint32_t cable : fitting) {
      if (std::ranges::find(meant, cable) == meant.end()) {
        meant.push_back(cable);
      }
    }
  }
  if (meant.size() == 1) {
    return meant.front();
  }
  if (n_fitting_readings > 1) {
    throw UsageError(fmt::format("\"{}\" can be read as {}: give the numbers of the nodes, as in 1-2", text,
                                 list_cables(live, meant)));
  }
  const auto fits = [&](const Reading& one) { return !cables_fitting(live, one).empty(); };
  const auto fitting_reading = std::ranges::find_if(readings, fits);
  const Reading& first = fitting_reading != readings.end() ? *fitting_reading : readings.front();
  const std::vector<uint32_t> between = cables_between(live.model, first.node_a, first.node_b);
  const std::string& name_a = live.model.nodes[first.node_a].name;
  if (between.empty()) {
    throw UsageError(fmt::format("no cable joins {} and {}; the cables of {} are {}", name_a,
                                 live.model.nodes[first.node_b].name, name_a,
                                 list_cables(live, cables_of(live, first.node_a))));
  }
  const size_t n_fitting = cables_fitting(live, first).size();
  throw UsageError(fmt::format("{} cable{} fit \"{}\"; between these nodes are {}", n_fitting,
                               n_fitting == 1 ? "" : "s", text, list_cables(live, between)));
}

}  // namespace ringbolt::tools
