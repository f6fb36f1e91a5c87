#include "verify/request.h"

#include <array>

#include <fmt/format.h>

#include "base/nearest.h"
#include "failure.h"
#include "pair/meeting.h"

namespace ringbolt::tools::verify {
namespace {

constexpr std::array kModes{Mode::kStream, Mode::kWrite, Mode::kRead, Mode::kAtomic, Mode::kChurn};

bool is_mode(const std::string& word) { return word == "soak" || pair::named(word, kModes); }

void refuse_idle_flags(const VerifyOptions& options) {
  pair::refuse_two_meetings(options);
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

}  // namespace

VerifyOptions with_host(VerifyOptions options) {
  if (!is_mode(options.mode)) {
    if (!options.host.empty() || !options.nodes.empty()) {
      throw UsageError(fmt::format("\"{}\" is none of stream, write, read, atomic, churn, soak", options.mode));
    }
    const std::string objection = pair::objection_to_host(options.mode);
    if (!objection.empty()) {
      const std::array<std::string, 6> modes{"stream", "write", "read", "atomic", "churn", "soak"};
      const std::string near = base::nearest(options.mode, modes);
      throw UsageError(fmt::format("\"{}\" is neither a mode ({}) nor a host that can be found: {}{}", options.mode,
                                   fmt::join(modes, ", "), objection,
                                   near.empty() ? "" : fmt::format("; did you mean {}?", near)));
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
  wish.mode = pair::named(options.mode, kModes);
  if (!options.connection.empty()) {
    wish.transport = pair::chosen(options.connection, "-c", pair::kTransports);
  }
  if (!options.order.empty()) {
    wish.order = pair::chosen(options.order, "--order", std::array{Order::kStrict, Order::kAny});
  }
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
  request.choice = pair::port_choice_of(options);
  request.device = options.device;
  request.line_rate_gbps = options.line_rate_gbps.value_or(-1);
  request.stall_s = options.stall_s;
  return request;
}

}  // namespace ringbolt::tools::verify
