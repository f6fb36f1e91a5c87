#include "verify/request.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "failure.h"

namespace ringbolt::tools::verify {
namespace {

using pair::text_of;
using pair::Transport;

constexpr std::array kModes{Mode::kStream, Mode::kWrite, Mode::kRead, Mode::kAtomic, Mode::kChurn};

bool is_mode(const std::string& word) {
  return word == "soak" ||
         std::any_of(kModes.begin(), kModes.end(), [&](Mode mode) { return word == verify::text_of(mode); });
}

void refuse_idle_flags(const VerifyOptions& options) {
  if (!options.nodes.empty() && !options.host.empty()) {
    throw UsageError("HOST and --nodes both say where the other end is: give one of them");
  }
  if (!options.nodes.empty() && !options.device.empty()) {
    throw UsageError("--nodes takes the devices of the cable between them: leave out -d");
  }
  if (options.nodes.empty() && !options.cluster.empty()) {
    throw UsageError("--cluster says where to look for --nodes: give --nodes A,B too, or leave it out");
  }
  if (options.size_bytes && (options.least_bytes || options.most_bytes)) {
    throw UsageError("-s is --min and --max in one: give it, or them");
  }
  if (options.duration_s && options.hours) {
    throw UsageError("-D and --hours both say how long: give one of them");
  }
  if (options.hours && options.mode != "soak") {
    throw UsageError("--hours is of soak: give -D, in seconds");
  }
}

void choose_transport(const VerifyOptions& options, Wish& wish) {
  for (const Transport one : {Transport::kRc, Transport::kUc, Transport::kUd}) {
    if (options.connection == text_of(one)) {
      wish.transport = one;
    }
  }
  if (!options.connection.empty() && !wish.transport) {
    throw UsageError(fmt::format("-c \"{}\" is none of RC, UC, UD", options.connection));
  }
}

void choose_order(const VerifyOptions& options, Wish& wish) {
  for (const Order one : {Order::kStrict, Order::kAny}) {
    if (options.order == verify::text_of(one)) {
      wish.order = one;
    }
  }
  if (!options.order.empty() && !wish.order) {
    throw UsageError(fmt::format("--order \"{}\" is none of strict, any", options.order));
  }
}

}  // namespace

VerifyOptions with_host(VerifyOptions options) {
  if (!is_mode(options.mode)) {
    if (!options.host.empty() || !options.nodes.empty()) {
      throw UsageError(fmt::format("\"{}\" is none of stream, write, read, atomic, churn, soak", options.mode));
    }
    options.host = options.mode;
    options.mode = "stream";
  }
  return options;
}

Request request_of(const VerifyOptions& options) {
  refuse_idle_flags(options);
  Request request;
  Wish& wish = request.wish;
  for (const Mode mode : kModes) {
    if (options.mode == verify::text_of(mode)) {
      wish.mode = mode;
    }
  }
  choose_transport(options, wish);
  choose_order(options, wish);
  wish.least_bytes = options.size_bytes ? options.size_bytes : options.least_bytes;
  wish.most_bytes = options.size_bytes ? options.size_bytes : options.most_bytes;
  wish.count = options.iterations;
  wish.duration_s = options.hours ? std::optional(*options.hours * 3600) : options.duration_s;
  wish.seed = options.seed;
  wish.queue_pairs = options.queue_pairs;
  wish.send_depth = options.tx_depth;
  wish.receive_depth = options.rx_depth;
  wish.is_bidirectional = options.is_bidirectional;
  wish.loss_percent = options.loss_percent;
  const std::string objection = objection_to(wish);
  if (!objection.empty()) {
    throw UsageError(objection);
  }
  request.choice.mtu_bytes = options.mtu_bytes;
  request.choice.timeout_code = static_cast<uint8_t>(options.timeout_code);
  request.choice.retry_count = static_cast<uint8_t>(options.retry_count);
  request.choice.port = static_cast<uint8_t>(options.device_port);
  request.choice.gid_index = options.gid_index.value_or(-1);
  request.device = options.device;
  request.line_rate_gbps = options.line_rate_gbps.value_or(-1);
  request.stall_s = options.stall_s;
  return request;
}

std::vector<std::string> words_of(const VerifyOptions& options, const std::string& device, const std::string& end,
                                  const std::string& peer) {
  std::vector<std::string> words{"verify", options.mode, "--end", end, "--peer", peer, "-d", device};
  const auto add = [&](const char* flag, const auto& value) {
    words.insert(words.end(), {flag, fmt::format("{}", value)});
  };
  const auto add_if_set = [&](const char* flag, const auto& value) {
    if (value) {
      words.insert(words.end(), {flag, fmt::format("{}", *value)});
    }
  };
  add("--verbs", options.verbs);
  if (!options.connection.empty()) {
    add("-c", options.connection);
  }
  if (!options.order.empty()) {
    add("--order", options.order);
  }
  add_if_set("-s", options.size_bytes);
  add_if_set("--min", options.least_bytes);
  add_if_set("--max", options.most_bytes);
  add_if_set("-n", options.iterations);
  add_if_set("-D", options.duration_s);
  add_if_set("--hours", options.hours);
  add_if_set("--line-rate", options.line_rate_gbps);
  add_if_set("--seed", options.seed);
  add_if_set("-x", options.gid_index);
  add("--allow-loss", options.loss_percent);
  add("--stall", options.stall_s);
  add("-u", options.timeout_code);
  add("--retry_count", options.retry_count);
  add("-i", options.device_port);
  for (const auto& [flag, value] : {std::pair("-q", options.queue_pairs), std::pair("-m", options.mtu_bytes),
                                    std::pair("-t", options.tx_depth), std::pair("-r", options.rx_depth)}) {
    if (value != 0) {
      add(flag, value);
    }
  }
  if (options.is_bidirectional) {
    words.emplace_back("-b");
  }
  return words;
}

}  // namespace ringbolt::tools::verify
