// Hot path: no allocation, lock or system call for a message.
#include <array>
#include <atomic>
#include <optional>

#include <fmt/format.h>

#include "base/clock.h"
#include "perf/fetch.h"
#include "perf/histogram.h"
#include "perf/measure.h"
#include "perf/message.h"
#include "perf/pace.h"
#include "perf/poster.h"

namespace ringbolt::tools::perf {
namespace {

/// What one end of round trips posts and awaits, one at a time, whatever the operation. Not thread-safe.
class Round {
 protected:
  /// `what`: the awaited, for messages.
  Round(Link& link, Peer& peer, ibv_wr_opcode opcode, const char* what)
      : link_(link),
        peer_(peer),
        poster_(link, peer, opcode),
        patience_(link, peer, what),
        slots_(slots_used(link.depths().send_slots, link.theirs().window)),
        source_slots_(slots_used(link.theirs().send_slots, link.depths().receive_slots)) {}

  /// Adds the message to the poster's list, stamped.
  void add(uint64_t sequence, uint64_t remote_address) {
    const std::span<std::byte> slot = link_.send_slot(0, sequence % slots_);
    write_stamp(slot, stamp_of(link_.seed(), sequence));
    poster_.add(0, slot, remote_address);
  }
  void post() {
    poster_.post(0);
    ++sent_;
  }
  /// As perftest does: some devices push what is posted only while somebody polls for it.
  void await_posted(const char* what) {
    while (completed_ < sent_) {
      // Of a slow path: a peer that only serves sees nothing of this, and would take a long silence for a hang.
      if (reap(what) == 0 && patience_.wait()) {
        peer_.tell_working();
      }
    }
  }
  /// How many completions it took.
  int reap(const char* what) {
    std::array<ibv_wc, 4> completions;
    const int count = link_.poll(link_.send_cq(), completions, what);
    for (int i = 0; i < count; ++i) {
      completed_ += static_cast<uint32_t>(completions[static_cast<size_t>(i)].wr_id);
    }
    return count;
  }
  /// After a look that found no answer: it has been awaited for too long. Over RC never.
  bool has_lost() {
    // As of a stream: far above a round trip.
    constexpr uint64_t kLostNs = 50'000'000;
    if (!patience_.wait() || link_.loses_nothing() || patience_.silent_ns() <= kLostNs) {
      return false;
    }
    patience_.renew();
    return true;
  }
  /// Compares message `number`, which the peer calls `sequence`. `what`: "WRITE".
  void check(std::span<const std::byte> message, const char* what, uint64_t number, uint64_t sequence) {
    const auto source = static_cast<uint32_t>(sequence % source_slots_);
    if (const auto wrong =
            find_damage(message, link_.theirs().seed, sequence, source, link_.parameters().latency_check)) {
      peer_.fail("{} {} of {} bytes is damaged from byte {} on", what, number, message.size(), *wrong);
    }
  }

  Link& link_;
  Peer& peer_;
  Poster poster_;
  Patience patience_;

 private:
  uint32_t slots_;
  uint32_t source_slots_;
  uint64_t sent_ = 0;
  uint64_t completed_ = 0;
};

constexpr const char* kMessage = "a message of the round trips";
constexpr const char* kNextMessage = "the next message of the round trips";

/// One end of round trips by SEND. Each message bears its sender's seed, so an echo is no answer. Not thread-safe.
class MessageRound : Round {
 public:
  MessageRound(Link& link, Peer& peer) : Round(link, peer, IBV_WR_SEND, kMessage) {}

  /// Sends message `number` and takes the answer to it. False if that was lost, which over RC is a failure.
  /// Throws ProbeFailure. Hot path.
  bool ask(uint64_t number) {
    expected_ = number;
    send(number);
    while (true) {
      // An answer that comes after it was given up is passed over.
      if (const std::optional<uint64_t> got = take()) {
        if (*got == number) {
          return true;
        }
      } else if (has_lost()) {
        return false;
      }
    }
  }

  /// Answers everything until the peer says that it has "asked" all.
  void answer_all() {
    while (true) {
      if (const std::optional<uint64_t> number = take()) {
        send(*number);
        expected_ = *number + 1;
      } else if (patience_.wait() && peer_.look("asked", kNextMessage)) {
        return;
      }
    }
  }

 private:
  void send(uint64_t number) {
    add(number, 0);
    post();
    repay();
    await_posted("what was sent");
  }

  /// Posts the receive of the message taken last: after the answer, which it would only delay.
  void repay() {
    if (owed_slot_) {
      link_.post_receive(0, *owed_slot_);
      owed_slot_.reset();
    }
  }

  /// The number of a message, if one has come.
  std::optional<uint64_t> take() {
    std::array<ibv_wc, 1> completion;
    if (link_.poll(link_.receive_cq(), completion, "a receive") == 0) {
      return std::nullopt;
    }
    patience_.renew();
    repay();  // of a message that nothing was sent for
    const auto slot = static_cast<uint32_t>(completion[0].wr_id);
    if (slot >= link_.depths().receive_slots) {
      peer_.fail("a receive completed that was not posted (id {:#x})", completion[0].wr_id);
    }
    const std::span<const std::byte> message = link_.receive_slot(0, slot);
    uint64_t number = expected_;
    if (link_.parameters().latency_check != Check::kNone) {
      number = sequence_in(message, expected_);
      check(message, "message", number, number);
      if (number != expected_ && link_.loses_nothing()) {
        peer_.fail("message {} came where {} was due", number, expected_);
      }
    }
    owed_slot_ = slot;
    if (link_.depths().receive_slots == 1) {
      repay();
    }
    return number;
  }

  uint64_t expected_ = 0;
  std::optional<uint32_t> owed_slot_;
};

/// One end of round trips by WRITE into one slot at the other end, which looks at the memory until both stamps are
/// there. Not thread-safe.
class WriteRound : Round {
 public:
  WriteRound(Link& link, Peer& peer) : Round(link, peer, IBV_WR_RDMA_WRITE, kMessage) {}

  /// Writes message `number` and waits for that of the peer. False if it was lost, which over RC is a failure.
  /// Throws ProbeFailure. Hot path.
  bool ask(uint64_t number) {
    write(number);
    while (!has_come(number)) {
      if (has_lost()) {
        return false;
      }
    }
    patience_.renew();
    return true;
  }

  /// Answers everything until the peer says that it has "asked" all.
  void answer_all() {
    for (uint64_t number = 0;;) {
      if (has_come(number)) {
        write(number++);
        patience_.renew();
      } else if (patience_.wait()) {
        if (peer_.look("asked", kNextMessage)) {
          return;
        }
        // The peer gives up what is lost and goes on with the next.
        const uint64_t newest = sequence_in(link_.receive_slot(0, 0), number + 1) - 1;
        const bool is_later = newest > number && newest - number < 64;
        number = !link_.loses_nothing() && is_later ? newest : number;
      }
    }
  }

 private:
  void write(uint64_t number) {
    // Numbers begin at 1, so that memory that was never written is no message.
    add(number + 1, link_.remote_receive_address(0, 0));
    post();
    await_posted("a WRITE");
  }

  /// Whether the peer's message `number` has come whole.
  bool has_come(uint64_t number) {
    // Between looks at the memory completions are taken: some devices make progress only then, and a dead peer shows
    // there first.
    constexpr int kLooks = 64;
    const std::span<const std::byte> message = link_.receive_slot(0, 0);
    const uint64_t stamp = stamp_of(link_.theirs().seed, number + 1);
    for (int look = 0; look < kLooks; ++look) {
      // No fence of the processor yet: a look that comes too early is only made again.
      std::atomic_signal_fence(std::memory_order_seq_cst);  // the device writes it behind the compiler's back
      if (has_stamp(message, stamp)) {
        std::atomic_thread_fence(std::memory_order_acquire);
        check(message, "WRITE", number, number + 1);
        return true;
      }
    }
    reap("a WRITE");
    return false;
  }
};

/// READs or atomics one after the other; the peer is passive. Not thread-safe.
class FetchRound : Round {
 public:
  FetchRound(Link& link, Peer& peer)
      : Round(link, peer, Fetch::opcode_of(link.parameters()), kFetched),
        fetch_(link, peer, link.parameters().latency_check) {}

  /// Fetches and checks what came. Always true. Throws ProbeFailure. Hot path.
  bool ask(uint64_t number) {
    // The peer awaits the end, and sees nothing of what its device serves. Here for rounds that are too short to wait
    // in.
    constexpr uint64_t kOften = 4096;
    if (number % kOften == 0) {
      peer_.tell_working();
    }
    fetch_.add(poster_, 0, number);
    post();
    await_posted(kFetched);
    patience_.renew();
    fetch_.check(0, number);
    return true;
  }

 private:
  static constexpr const char* kFetched = "what was asked for";
  Fetch fetch_;
};

// Caches, page tables and the clock speed settle; of a bounded run a quarter of its time at most.
constexpr uint64_t kWarmUpRounds = 200;
/// How often it is asked whether progress should be shown.
constexpr uint64_t kTurns = 64;

/// `round.ask(n)` makes round trip n and says whether it came back.
template <class Asking>
LatencyFigures ask(Link& link, Asking& round, bool is_half, Progress& progress) {
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
template <class Asking>
std::optional<LatencyFigures> play(Link& link, Peer& peer, bool is_client, Progress& progress) {
  Asking round(link, peer);
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
