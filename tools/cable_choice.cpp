#include "cable_choice.h"

#include <utility>

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

/// A '-' separates the ends, but a node's name may hold some: the split at which both sides are nodes counts.
std::pair<EndText, EndText> split_cable(const LiveCluster& live, const std::string& text) {
  std::string first_complaint;
  for (size_t dash = text.find('-'); dash != std::string::npos; dash = text.find('-', dash + 1)) {
    const EndText a = split_end(text.substr(0, dash));
    const EndText b = split_end(text.substr(dash + 1));
    try {
      find_node(live.model, a.node);
      find_node(live.model, b.node);
      return {a, b};
    } catch (const UsageError& error) {
      first_complaint = first_complaint.empty() ? error.what() : first_complaint;
    }
  }
  throw UsageError(first_complaint.empty()
                       ? fmt::format("\"{}\" is no cable: give two nodes, as in 1-2, or two ports, as in "
                                     "1:rdma_en2-2:rdma_en3",
                                     text)
                       : first_complaint);
}

}  // namespace

std::string cable_text(const LiveCluster& live, uint32_t index) {
  const cluster::Cable& cable = live.model.cables[index];
  return fmt::format("{}-{}", cluster::end_text(live.model, cable.a), cluster::end_text(live.model, cable.b));
}

uint32_t find_cable(const LiveCluster& live, const std::string& text) {
  const auto [a, b] = split_cable(live, text);
  const uint32_t node_a = find_node(live.model, a.node);
  const uint32_t node_b = find_node(live.model, b.node);
  const std::vector<uint32_t> between = cables_between(live.model, node_a, node_b);
  if (between.empty()) {
    throw UsageError(fmt::format("no cable joins {} and {}; the cables of {} are {}", live.model.nodes[node_a].name,
                                 live.model.nodes[node_b].name, live.model.nodes[node_a].name,
                                 list_cables(live, cables_of(live, node_a))));
  }
  std::vector<uint32_t> fitting;
  for (const uint32_t index : between) {
    const cluster::Cable& cable = live.model.cables[index];
    if ((is_end(live, cable.a, node_a, a.port) && is_end(live, cable.b, node_b, b.port)) ||
        (is_end(live, cable.b, node_a, a.port) && is_end(live, cable.a, node_b, b.port))) {
      fitting.push_back(index);
    }
  }
  if (fitting.size() != 1) {
    throw UsageError(fmt::format("{} cable{} fit{} \"{}\"; between these nodes are {}", fitting.size(),
                                 fitting.size() == 1 ? "" : "s", fitting.size() == 1 ? "s" : "", text,
                                 list_cables(live, between)));
  }
  return fitting.front();
}

}  // namespace ringbolt::tools
