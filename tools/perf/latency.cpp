#include "perf/latency.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "perf/fetch_round.h"
#include "perf/histogram.h"
#include "perf/message_round.h"
#include "perf/pace.h"
#include "perf/write_round.h"

namespace ringbolt::tools::perf {
namespace {

constexpr uint64_t kWarmUpRounds = 200;
/// How often it is asked whether progress should be shown.
constexpr uint64_t kTurns = 64;

/// `round.ask(n)` makes round trip n and says whether it came back.
template <class Round>
LatencyFigures ask(Link& link, Round& round, bool is_half, Progress& progress) {
  Histogram histogram;
  Pace pace(link.parameters());
  uint64_t number = 0;
  const double most_s = link.parameters().most_s;
  const uint64_t enough_ns = most_s > 0 ? base::now_ns() + static_cast<uint64_t>(most_s * 1e9 / 4) : UINT64_MAX;
  for (; number < kWarmUpRounds && base::now_ns() < enough_ns; ++number) {
    round.ask(number);
  }
  uint64_t lost = 0;
  uint64_t before = base::now_ns();
  pace.begin(before);
  while (pace.wants_more(histogram.count() + lost)) {
    const bool has_come = round.ask(number++);
    const uint64_t now = base::now_ns();
    if (has_come) {
      histogram.add(now - before);
    } else {
      ++lost;
    }
    before = now;
    if (number % kTurns == 0 && progress.is_due(now)) {
      progress.show(fmt::format("latency of {} bytes: {} round trips", link.size_bytes(), histogram.count()));
      before = base::now_ns();
    }
  }
  return latency_figures(histogram, lost, is_half);
}

/// Both ends take part: the client asks and the server answers, until it hears that it was enough.
template <class Round>
std::optional<LatencyFigures> play(Link& link, Peer& peer, bool is_client, Progress& progress) {
  Round round(link, peer);
  if (!is_client) {
    round.answer_all();
    peer.tell("answered", "");
    return std::nullopt;
  }
  const LatencyFigures figures = ask(link, round, true, progress);
  peer.tell("asked", "");
  peer.await("answered", "its end of the round trips");
  return figures;
}

}  // namespace

std::optional<LatencyFigures> measure_latency(Link& link, Peer& peer, bool is_client, Progress& progress) {
  switch (link.parameters().operation) {
    case Operation::kSend:
      return play<MessageRound>(link, peer, is_client, progress);
    case Operation::kWrite:
      return play<WriteRound>(link, peer, is_client, progress);
    case Operation::kRead:
    case Operation::kAtomic:
      break;
  }
  if (!is_client) {
    peer.await("asked", "the end of its round trips");
    return std::nullopt;
  }
  FetchRound round(link, peer);
  const LatencyFigures figures = ask(link, round, false, progress);
  peer.tell("asked", "");
  return figures;
}

}  // namespace ringbolt::tools::perf
