#include "exposition.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/assert.h"
#include "cluster/counter_page.h"
#include "version.h"

namespace ringbolt::tools {
namespace {

/// How a counter of the kernel's is told. Its value times `scale`.
struct Metric {
  const char* name;     ///< without "ringbolt_"
  const char* counter;  ///< where it is in several folders, their counts are the same
  const char* help;
  uint64_t scale = 1;
};

constexpr Metric kMetrics[] = {
    {"port_data_transmitted_bytes_total", "port_xmit_data", "Bytes of InfiniBand packets sent", 4},
    {"port_data_received_bytes_total", "port_rcv_data", "Bytes of InfiniBand packets received", 4},
    {"port_packets_transmitted_total", "port_xmit_packets", "Packets sent"},
    {"port_packets_received_total", "port_rcv_packets", "Packets received"},
    {"unicast_packets_transmitted_total", "unicast_xmit_packets", "Unicast packets sent"},
    {"unicast_packets_received_total", "unicast_rcv_packets", "Unicast packets received"},
    {"multicast_packets_transmitted_total", "multicast_xmit_packets", "Multicast packets sent"},
    {"multicast_packets_received_total", "multicast_rcv_packets", "Multicast packets received"},
    {"port_errors_received_total", "port_rcv_errors", "Packets received damaged or without a buffer"},
    {"port_constraint_errors_received_total", "port_rcv_constraint_errors", "Packets received of a foreign partition"},
    {"port_constraint_errors_transmitted_total", "port_xmit_constraint_errors",
     "Packets not sent because of their partition"},
    {"port_discards_transmitted_total", "port_xmit_discards", "Packets that could not be sent"},
    {"port_transmit_wait_total", "port_xmit_wait", "Microseconds that packets waited for room"},
    {"port_remote_physical_errors_received_total", "port_rcv_remote_physical_errors", "Packets marked bad by a switch"},
    {"port_switch_relay_errors_received_total", "port_rcv_switch_relay_errors",
     "Packets that a switch could not forward"},
    {"symbol_error_total", "symbol_error", "Symbols received damaged"},
    {"link_downed_total", "link_downed", "Times that the port's cable was cut"},
    {"link_error_recovery_total", "link_error_recovery", "Times that the link recovered"},
    {"local_link_integrity_errors_total", "local_link_integrity_errors", "Local link integrity errors"},
    {"excessive_buffer_overrun_errors_total", "excessive_buffer_overrun_errors", "Excessive buffer overruns"},
    {"vl15_dropped_total", "VL15_dropped", "Subnet management packets dropped"},
    {"rdma_sends_total", "rdma_sends", "SENDs begun"},
    {"rdma_receives_total", "rdma_recvs", "Receives completed"},
    {"rx_write_requests_total", "rx_write_requests", "WRITE requests received"},
    {"rx_read_requests_total", "rx_read_requests", "READ requests received"},
    {"rx_atomic_requests_total", "rx_atomic_requests", "Atomic requests received"},
    {"duplicate_requests_packets_total", "duplicate_request", "Requests received once more"},
    {"out_of_sequence_packets_received_total", "out_of_sequence", "Requests received before an earlier one"},
    {"out_of_buffer_drops_total", "out_of_buffer", "Messages that found no receive posted"},
    {"rnr_nak_sent_packets_total", "send_rnr_err", "Senders told that no receive is posted"},
    {"rnr_nak_retry_packets_total", "rnr_nak_retry_err", "Times told that no receive is posted"},
    {"packet_sequence_errors_total", "packet_seq_err", "NAKs of a wrong sequence received"},
    {"implied_nak_seq_errors_total", "implied_nak_seq_err", "Gaps in answers received"},
    {"local_ack_timeout_errors_total", "local_ack_timeout_err", "Times that the transport timer ran out"},
    {"retransmitted_packets_total", "completer_retry_err", "Requests sent again"},
    {"roce_adp_retransmits_total", "roce_adp_retrans", "Times asked early what is missing"},
    {"retry_exceeded_errors_total", "retry_exceeded_err", "Sends ended: no answer after all retries"},
    {"rnr_retry_exceeded_errors_total", "retry_rnr_exceeded_err", "Sends ended: no receive posted after all retries"},
    {"req_cqes_errors_total", "req_cqe_error", "Sends completed with an error"},
    {"req_cqes_flush_errors_total", "req_cqe_flush_error", "Sends flushed"},
    {"req_remote_access_errors_total", "req_remote_access_errors", "Sends refused: remote access"},
    {"req_remote_invalid_request_errors_total", "req_remote_invalid_request", "Sends refused: invalid request"},
    {"resp_cqes_errors_total", "resp_cqe_error", "Receives completed with an error"},
    {"resp_cqes_flush_errors_total", "resp_cqe_flush_error", "Receives flushed"},
    {"resp_local_length_errors_total", "resp_local_length_error", "Messages longer than their receive"},
    {"resp_remote_access_errors_total", "resp_remote_access_errors", "Accesses of peers refused"},
    {"icrc_encapsulated_errors_total", "rx_icrc_encapsulated", "Packets received with a wrong ICRC"},
    {"rx_drops_total", "rx_drops", "Packets received that came to nothing"},
    {"rx_pulled_sends_total", "rx_pulled_sends", "SENDs read in their sender's memory"},
};

size_t place_of(const Metric& metric) {
  const auto all = cluster::all_counters();
  for (size_t i = 0; i < all.size(); ++i) {
    if (std::string_view(all[i].name) == metric.counter) {
      return i;
    }
  }
  RINGBOLT_ASSERT(false);  // the tables go together
  return 0;
}

std::string labels_of(const PortCounts& port) {
  return fmt::format("cluster=\"{}\",node=\"{}\",device=\"{}\",port=\"1\"", escaped_label(port.cluster),
                     escaped_label(port.node), escaped_label(port.device));
}

using ValueOf = std::function<std::optional<uint64_t>(const PortCounts&)>;

void add_metric(std::string& text, std::string_view name, std::string_view type, std::string_view help,
                const std::vector<PortCounts>& ports, const ValueOf& value_of) {
  text += fmt::format("# HELP ringbolt_{} {}\n# TYPE ringbolt_{} {}\n", name, help, name, type);
  for (const PortCounts& port : ports) {
    if (const std::optional<uint64_t> value = value_of(port)) {
      text += fmt::format("ringbolt_{}{{{}}} {}\n", name, labels_of(port), *value);
    }
  }
}

}  // namespace

std::string escaped_label(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c == '\\' || c == '"' ? std::string{'\\', c} : std::string{c};
    }
  }
  return result;
}

std::string build_exposition() {
  return fmt::format(
      "# HELP ringbolt_build_info 1; the labels tell which release\n# TYPE ringbolt_build_info gauge\n"
      "ringbolt_build_info{{version=\"{}\"}} 1\n",
      kVersion);
}

std::string exposition(const std::vector<PortCounts>& ports) {
  std::string text = build_exposition();
  add_metric(text, "port_up", "gauge", "1: the port's cable is plugged in; 0: it is cut", ports,
             [](const PortCounts& port) {
               return port.state.empty() ? std::nullopt : std::optional<uint64_t>(port.state == "up" ? 1 : 0);
             });
  add_metric(text, "port_rate_bytes_per_second", "gauge", "What the port says that its cable can do", ports,
             [](const PortCounts& port) {
               constexpr uint64_t kGigabit = 125'000'000;
               return port.speed_gbps == 0 ? std::nullopt : std::optional<uint64_t>(port.speed_gbps * kGigabit);
             });
  for (const Metric& metric : kMetrics) {
    const size_t place = place_of(metric);
    add_metric(text, metric.name, "counter", metric.help, ports,
               [&](const PortCounts& port) { return std::optional<uint64_t>(port.values[place] * metric.scale); });
  }
  return text;
}

}  // namespace ringbolt::tools
