#include "perf/measure.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/clock.h"
#include "perf/fetch.h"
#include "perf/histogram.h"
#include "perf/message_round.h"
#include "perf/pace.h"
#include "perf/sender.h"

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

constexpr const char* kEnd = "its last message";
/// How often who is busy looks at rare things: whether to say that it is still at it, or how far it is.
constexpr uint32_t kRareTurns = 4096;

void show(Progress& progress, const Link& link, uint64_t messages, const char* what) {
  if (progress.is_due(base::now_ns())) {
    progress.show(fmt::format("bandwidth of {} bytes: {:.1f} MB {}", link.size_bytes(),
                              static_cast<double>(messages * link.size_bytes()) / 1e6, what));
  }
}

struct Sent {
  Timing timing;
  Receipt receipt;  ///< the receiver's
};

/// SEND and WRITE. Returns what this end has sent, if it sends.
std::optional<Sent> stream(Link& link, Peer& peer, bool sends, bool receives, Progress& progress) {
  std::optional<Sender> sender;
  std::optional<Receiver> receiver;
  if (sends) {
    sender.emplace(link, peer);
  }
  if (receives) {
    receiver.emplace(link, peer);
  }
  Patience patience(link, peer, sends ? "acknowledgements of what was sent" : "messages");
  bool has_told = !sends;
  bool knows_all = !receives;
  for (uint32_t turns = 1; !has_told || (receives && !receiver->is_done()); ++turns) {
    if (turns % kRareTurns == 0) {
      (void)peer.look("nothing", kEnd);  // it may want to stop
      sends ? show(progress, link, sender->timing().tx_operations, "sent")
            : show(progress, link, receiver->receipt().messages, "received");
    }
    const bool has_sent = sends && !sender->is_done() && sender->advance();
    const bool has_received = receives && receiver->advance();
    if (!has_told && sender->is_done()) {
      peer.tell("posted", sender->posted());
      has_told = true;
    }
    if (has_sent || has_received) {
      patience.renew();
    } else if (patience.wait() && !knows_all) {
      if (const std::optional<std::string> posted = peer.look("posted", kEnd)) {
        receiver->set_posted(peer.numbers_in(*posted, link.queue_pairs()));
        knows_all = true;
      }
    }
  }
  if (receives) {
    peer.tell("receipt", {receiver->receipt().messages, receiver->receipt().lost});
  }
  if (!sends) {
    return std::nullopt;
  }
  const std::vector<uint64_t> receipt = peer.numbers_in(peer.await("receipt", "what it has received"), 2);
  return Sent{sender->timing(), {receipt[0], receipt[1]}};
}

/// The counters that the peer's atomics worked on, as they must be after so many.
void check_counters(Link& link, Peer& peer, const std::vector<uint64_t>& counts) {
  for (uint32_t index = 0; index < link.queue_pairs(); ++index) {
    uint64_t value = 0;
    std::memcpy(&value, link.receive_slot(index, 0).data(), sizeof value);
    if (value != atomic_value(counts[index])) {
      peer.fail(fmt::format("after {} atomics on queue pair {} the counter is {:#x} and should be {:#x}", counts[index],
                            index, value, atomic_value(counts[index])));
    }
  }
}

/// READ and atomics. Returns what this end has fetched, if it does.
std::optional<Sent> fetch(Link& link, Peer& peer, bool fetches, bool is_target, Progress& progress) {
  std::optional<Sent> sent;
  if (fetches) {
    Fetcher fetcher(link, peer);
    Patience patience(link, peer, "what was asked for");
    for (uint32_t turns = 0; !fetcher.is_done(); ++turns) {
      if (turns % kRareTurns == 0) {
        peer.tell_working();
        (void)peer.look("nothing", kEnd);  // it may want to stop
        show(progress, link, fetcher.checked(), "fetched");
      }
      if (fetcher.advance()) {
        patience.renew();
      } else {
        patience.wait();
      }
    }
    sent = Sent{fetcher.timing(), {fetcher.checked(), 0}};
    peer.tell("posted", fetcher.counts());
  }
  if (is_target) {
    // Passive, as the operations are: the device serves them by itself.
    const std::string counts = peer.await("posted", kEnd);
    if (link.parameters().operation == Operation::kAtomic) {
      check_counters(link, peer, peer.numbers_in(counts, link.queue_pairs()));
    }
    peer.tell("receipt", "");
  }
  if (fetches) {
    peer.await("receipt", "its check of the counters");
  }
  return sent;
}

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
      Sent theirs;
      const std::vector<uint64_t> told = peer.numbers_in(peer.await("figures", "its figures"), 6);
      theirs.timing = {told[0], told[1], told[2], told[3]};
      theirs.receipt = {told[4], told[5]};
      figures.push_back(figures_of(link, theirs, "server"));
    }
  } else if (goes_both_ways) {
    const Timing& timing = sent->timing;
    peer.tell("figures", {timing.first, timing.duration_ns, timing.tx_operations, timing.tx_duration_ns,
                          sent->receipt.messages, sent->receipt.lost});
  }
  return figures;
}

}  // namespace ringbolt::tools::perf
