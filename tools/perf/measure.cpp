#include "perf/measure.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "pair/values.h"
#include "perf/traffic.h"

namespace ringbolt::tools::perf {
namespace {

BandwidthFigures figures_of(const Link& link, const Sent& sent, const char* by) {
  BandwidthFigures figures;
  figures.by = by;
  figures.is_verified =
      link.parameters().bandwidth_check != Check::kNone || link.parameters().operation == Operation::kAtomic;
  // What warmed up is not in the time, so not in the bytes; over UC and UD it may have been lost, or not.
  figures.messages = sent.receipt.messages - std::min(sent.receipt.messages, sent.timing.first);
  figures.lost = sent.receipt.lost;
  figures.verified_bytes = figures.messages * link.size_bytes();
  figures.duration_ns = sent.timing.duration_ns;
  figures.tx_bytes = sent.timing.tx_operations * link.size_bytes();
  figures.tx_duration_ns = sent.timing.tx_duration_ns;
  return figures;
}

}  // namespace

void show(Progress& progress, const Link& link, uint64_t messages, const char* what) {
  if (progress.is_due(base::now_ns())) {
    progress.show(fmt::format("bandwidth of {} bytes: {:.1f} MB {}", link.size_bytes(),
                              static_cast<double>(messages * link.size_bytes()) / 1e6, what));
  }
}

std::vector<BandwidthFigures> measure_bandwidth(Link& link, Peer& peer, bool is_client, Progress& progress) {
  const Parameters& parameters = link.parameters();
  const bool goes_both_ways = parameters.is_bidirectional;
  const bool is_fetched = parameters.operation == Operation::kRead || parameters.operation == Operation::kAtomic;
  const bool acts = is_client || goes_both_ways;
  const bool serves = !is_client || goes_both_ways;
  const std::optional<Sent> sent =
      is_fetched ? fetch(link, peer, acts, serves, progress) : stream(link, peer, acts, serves, progress);
  std::vector<BandwidthFigures> figures;
  if (is_client) {
    figures.push_back(figures_of(link, *sent, "client"));
    if (goes_both_ways) {
      figures.push_back(pair::await_value<BandwidthFigures>(peer, "figures", "its figures"));
    }
  } else if (goes_both_ways) {
    pair::tell_value(peer, "figures", figures_of(link, *sent, "server"));
  }
  return figures;
}

}  // namespace ringbolt::tools::perf
