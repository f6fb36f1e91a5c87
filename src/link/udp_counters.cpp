#include "link/udp_counters.h"

namespace ringbolt::link {

UdpCounters read(const UdpTally& tally) {
  const auto of = [](const std::atomic<uint64_t>& word) { return word.load(std::memory_order_relaxed); };
  UdpCounters counters;
  counters.received_packets = of(tally.received_packets);
  counters.received_bytes = of(tally.received_bytes);
  counters.received_datagrams = of(tally.received_datagrams);
  counters.sent_packets = of(tally.sent_packets);
  counters.sent_bytes = of(tally.sent_bytes);
  counters.sent_messages = of(tally.sent_messages);
  counters.forwarded_packets = of(tally.forwarded_packets);
  counters.forward_failures = of(tally.forward_failures);
  counters.dropped_runts = of(tally.dropped_runts);
  counters.dropped_oversize = of(tally.dropped_oversize);
  counters.dropped_strangers = of(tally.dropped_strangers);
  counters.dropped_malformed = of(tally.dropped_malformed);
  counters.no_buffer = of(tally.no_buffer);
  counters.send_full = of(tally.send_full);
  counters.send_refused = of(tally.send_refused);
  counters.unreachable = of(tally.unreachable);
  counters.segmentation_refused = of(tally.segmentation_refused);
  counters.group_changes = of(tally.group_changes);
  return counters;
}

}  // namespace ringbolt::link
