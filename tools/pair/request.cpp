#include "pair/request.h"

namespace ringbolt::tools::pair {

void refuse_two_meetings(const PairOptions& options) {
  if (!options.nodes.empty() && !options.host.empty()) {
    throw UsageError("HOST and --nodes both say where the other end is: give one of them");
  }
  if (!options.nodes.empty() && !options.device.empty()) {
    throw UsageError("--nodes takes the devices of the cable between them: leave out -d");
  }
  if (options.nodes.empty() && !options.cluster.empty()) {
    throw UsageError("--cluster says where to look for --nodes: give --nodes A,B too, or leave it out");
  }
}

PortChoice port_choice_of(const PairOptions& options) {
  PortChoice choice;
  choice.mtu_bytes = options.mtu_bytes;
  choice.timeout_code = static_cast<uint8_t>(options.timeout_code);
  choice.retry_count = static_cast<uint8_t>(options.retry_count);
  choice.port = static_cast<uint8_t>(options.device_port);
  choice.gid_index = options.gid_index.value_or(-1);
  return choice;
}

Words::Words(std::string command, std::string operation, const PairOptions& options, const EndWords& end)
    : words_{std::move(command), std::move(operation), "--end", end.end, "--peer", end.peer, "-d", end.device} {
  add("--verbs", options.verbs);
  add("-s", options.size_bytes);
  add("-n", options.iterations);
  add("-D", options.duration_s);
  add("--line-rate", options.line_rate_gbps);
  add("-x", options.gid_index);
  add("-u", options.timeout_code);
  add("--retry_count", options.retry_count);
  add("-i", options.device_port);
  add_unless_0("-m", options.mtu_bytes);
  add_unless_0("-t", options.tx_depth);
  add_unless_0("-r", options.rx_depth);
  add_flag("-b", options.is_bidirectional);
  add_flag("--tell-progress", options.tells_progress && end.end == "client");
}

void Words::add(const char* flag, const std::string& text) {
  if (!text.empty()) {
    words_.insert(words_.end(), {flag, text});
  }
}

void Words::add_unless_0(const char* flag, uint32_t value) {
  if (value != 0) {
    add(flag, value);
  }
}

void Words::add_flag(const char* flag, bool is_set) {
  if (is_set) {
    words_.emplace_back(flag);
  }
}

}  // namespace ringbolt::tools::pair
