// Heartbeats and votes as they come from other ranks, and any order of them and of other inputs: nothing breaks a
// promise, and what parses is written back the same.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "fabric/agreement.h"
#include "fabric/cable_news.h"
#include "fabric/liveness.h"
#include "input.h"

namespace {

using namespace ringbolt::fabric;

void check_bytes(std::span<const std::byte> in) {
  if (const auto heartbeat = parse_heartbeat(in)) {
    std::array<std::byte, kMaxHeartbeatBytes> out{};
    const size_t length = emit(*heartbeat, out);
    RINGBOLT_ASSERT(length == in.size() && std::equal(in.begin(), in.end(), out.begin()));
  }
  if (const auto news = parse_news(in)) {
    RINGBOLT_ASSERT(news->size() * 4 == in.size() &&
                    std::is_partitioned(news->begin(), news->end(), [](const CableNews& one) { return one.works(); }));
  }
  if (const auto message = parse_agreement(in)) {
    const auto out = emit(*message);
    RINGBOLT_ASSERT(std::equal(in.begin(), in.end(), out.begin()));
  }
}

void check_agreement(ringbolt::fuzz::Input input) {
  Agreement agreement(2, 0x1F);
  while (!input.is_empty() && !agreement.is_fenced()) {
    const auto what = input.take<uint8_t>();
    const auto before = agreement.members();
    if ((what & 1) != 0) {
      agreement.suspect(input.take<uint8_t>());
    } else {
      const auto kind = (what & 2) != 0 ? Agreement::Kind::vote : Agreement::Kind::commit;
      agreement.receive(what >> 2, {kind, input.take<uint8_t>() % 8U, input.take<uint8_t>()});
    }
    RINGBOLT_ASSERT((agreement.members() & ~before) == 0 && (agreement.members() & set_of(2)) != 0);
    RINGBOLT_ASSERT((agreement.suspects() & ~agreement.members()) == 0);
  }
}

void check_liveness(ringbolt::fuzz::Input input) {
  uint64_t now = 1'000'000'000;
  Liveness liveness(1, 4, {{0, "a"}, {0, "b"}, {2, "c"}}, {}, now);
  uint64_t failed = 0;
  while (!input.is_empty()) {
    const auto what = input.take<uint8_t>();
    const auto whom = input.take<uint8_t>();
    now += input.take<uint16_t>() * uint64_t{50'000};
    Heartbeat heartbeat{.rank = whom % 5U, .n_ranks = 4, .incarnation = 1 + whom / 250U, .hosts = what};
    heartbeat.counters[what % 4U] = now;
    switch (what % 9) {
      case 0:
        liveness.heard(heartbeat, now);
        break;
      case 1:
        liveness.heard_through(whom, heartbeat, now);
        break;
      case 2:
        liveness.heard_data(whom % 4U, now);
        break;
      case 3:
        liveness.host_answered(whom, now);
        break;
      case 4:
        liveness.side_channel_closed(whom, what / 9, now);
        break;
      case 5:
        liveness.left(whom, now);
        break;
      case 6:
        liveness.cable_error(whom % 4U, "x", now);
        break;
      case 7:
        liveness.cable_mended(whom % 4U, now);
        break;
      default:
        break;
    }
    for (const LivenessChange& change : liveness.check(now)) {
      RINGBOLT_ASSERT(!change.text.empty());
    }
    RINGBOLT_ASSERT(liveness.next_deadline_ns() > now);
    RINGBOLT_ASSERT((failed & ~liveness.failed_ranks()) == 0 && (liveness.failed_ranks() & 2) == 0);
    failed = liveness.failed_ranks();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check_bytes(std::as_bytes(std::span(data, size)));
  check_agreement({data, size});
  check_liveness({data, size});
  return 0;
}
