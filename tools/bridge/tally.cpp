#include "bridge/tally.h"

#include <fmt/format.h>

#include "exposition.h"

namespace ringbolt::tools::bridge {
namespace {

struct TallyMetric {
  const char* name;  ///< without "ringbolt_bridge_"
  const char* type;
  const char* help;
  uint64_t (*value)(const Tally&);
};

constexpr TallyMetric kTallyMetrics[] = {
    {"connections", "gauge", "Connections that are open", [](const Tally& one) { return one.open; }},
    {"accepted_total", "counter", "Connections that were accepted", [](const Tally& one) { return one.accepted; }},
    {"to_fabric_bytes_total", "counter", "Bytes relayed from sockets to RDMA",
     [](const Tally& one) { return one.moved.to_fabric_bytes; }},
    {"to_socket_bytes_total", "counter", "Bytes relayed from RDMA to sockets",
     [](const Tally& one) { return one.moved.to_socket_bytes; }},
    {"messages_sent_total", "counter", "RDMA WRITEs that were sent",
     [](const Tally& one) { return one.fabric.messages_sent; }},
    {"messages_received_total", "counter", "RDMA WRITEs that were received",
     [](const Tally& one) { return one.fabric.messages_received; }},
    {"announcements_sent_total", "counter", "Receive buffers announced to peers",
     [](const Tally& one) { return one.fabric.announcements_sent; }},
    {"announcements_received_total", "counter", "Receive buffers that peers announced",
     [](const Tally& one) { return one.fabric.announcements_received; }},
    {"fabric_stalls_total", "counter", "Times that a peer's receive buffer was full",
     [](const Tally& one) { return one.fabric.stalls; }},
    {"fabric_stall_nanoseconds_total", "counter", "And for how long",
     [](const Tally& one) { return one.fabric.stall_ns; }},
    {"socket_stalls_total", "counter", "Times that a socket took no more",
     [](const Tally& one) { return one.moved.socket_stalls; }},
};

std::string labels_of_pair(const Tally& one) {
  return fmt::format("listen=\"{}\",connect=\"{}\"", escaped_label(one.listen), escaped_label(one.connect));
}

void add_head(std::string& text, const char* name, const char* type, const char* help) {
  text += fmt::format("# HELP ringbolt_bridge_{0} {2}\n# TYPE ringbolt_bridge_{0} {1}\n", name, type, help);
}

}  // namespace

void Tally::add(const Moved& of_relay, const stream::Statistics& of_stream) {
  moved.to_fabric_bytes += of_relay.to_fabric_bytes;
  moved.to_socket_bytes += of_relay.to_socket_bytes;
  moved.socket_stalls += of_relay.socket_stalls;
  fabric.messages_sent += of_stream.messages_sent;
  fabric.messages_received += of_stream.messages_received;
  fabric.announcements_sent += of_stream.announcements_sent;
  fabric.announcements_received += of_stream.announcements_received;
  fabric.stalls += of_stream.stalls;
  fabric.stall_ns += of_stream.stall_ns;
}

std::string Tally::text() const {
  const bool is_forward = !listen.starts_with("rdma:");
  const uint64_t there = is_forward ? moved.to_fabric_bytes : moved.to_socket_bytes;
  const uint64_t back = is_forward ? moved.to_socket_bytes : moved.to_fabric_bytes;
  std::string text =
      fmt::format("{} -> {}: {} connections, {} bytes there, {} back", listen, connect, accepted, there, back);
  const char* mark = "; ";
  for (const auto& [reason, count] : closed) {
    text += fmt::format("{}{} {}", mark, reason, count);
    mark = ", ";
  }
  return text;
}

std::string tallies_exposition(const std::vector<Tally>& pairs, uint64_t memory_bytes, bool is_draining) {
  std::string text = build_exposition();
  for (const TallyMetric& metric : kTallyMetrics) {
    add_head(text, metric.name, metric.type, metric.help);
    for (const Tally& one : pairs) {
      text += fmt::format("ringbolt_bridge_{}{{{}}} {}\n", metric.name, labels_of_pair(one), metric.value(one));
    }
  }
  add_head(text, "closed_total", "counter", "Connections that ended, or never came about, by reason");
  for (const Tally& one : pairs) {
    for (const auto& [reason, count] : one.closed) {
      text += fmt::format("ringbolt_bridge_closed_total{{{},reason=\"{}\"}} {}\n", labels_of_pair(one), reason, count);
    }
  }
  add_head(text, "memory_bytes", "gauge", "Memory of the budget that the buffers of streams take");
  text += fmt::format("ringbolt_bridge_memory_bytes {}\n", memory_bytes);
  add_head(text, "draining", "gauge", "1: a signal has come, and no new connections are taken");
  text += fmt::format("ringbolt_bridge_draining {}\n", is_draining ? 1 : 0);
  return text;
}

}  // namespace ringbolt::tools::bridge
