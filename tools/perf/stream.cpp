// Hot path: no allocation, lock or system call for a message.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "base/clock.h"
#include "perf/initiator.h"
#include "perf/message.h"
#include "perf/traffic.h"

namespace ringbolt::tools::perf {
namespace {

/// Over UC and UD, after so long without a credit: notices are sent again, and what is under way is given up.
// Both far above a round trip.
constexpr uint64_t kRemindNs = 2'000'000;
constexpr uint64_t kLostNs = 50'000'000;

/// A nap must not hold the sender up, who has three quarters of the window left when a notice comes: so many messages,
/// of half a microsecond at least, take longer than this and the slack of the timer.
constexpr std::chrono::microseconds kNap{20};
constexpr uint32_t kLeastNapWindow = 256;

bool is_write(const Link& link) { return link.parameters().operation == Operation::kWrite; }

/// Streams SENDs or WRITEs over all queue pairs of a link, never more than the receiver has room for, until the pace
/// says that it is enough and the receiver has acknowledged all: by credits, which settle what was posted. A first
/// window that is not timed warms up. Over UC and UD, where messages and credits get lost, what is not acknowledged in
/// a while counts as lost. Not thread-safe.
class Sender : public Initiator {
 public:
  Sender(Link& link, Peer& peer)
      : Initiator(link, peer, is_write(link) ? IBV_WR_RDMA_WRITE : IBV_WR_SEND,
                  std::min<uint64_t>(link.theirs().window, kMostWarmUp) * link.queue_pairs()),
        is_write_(is_write(link)),
        is_compared_(link.parameters().bandwidth_check != Check::kNone),
        window_(link.theirs().window),
        slots_(slots_used(link.depths().send_slots, window_)),
        notice_every_(std::max(window_ / 4, 1U)),
        notices_(link.queue_pairs()) {
    settled_ns_ = base::now_ns();
  }

  /// Does what can be done without waiting. True if that was something. Throws ProbeFailure.
  bool advance() {
    bool has_worked = false;
    bool needs_credits = phase_ != Phase::kRunning;
    for (uint32_t index = 0; index < lanes_.size(); ++index) {
      has_worked |= post(index);
      needs_credits |= lanes_[index].posted - lanes_[index].settled > window_ / 4 * 3;
    }
    has_worked |= reap();
    // While there is plenty of room, credits can wait: looking for them costs as much as a small message.
    if (needs_credits) {
      has_worked |= take_credits();
    }
    if (has_worked) {
      fruitless_ = 0;
    } else if (!link_.loses_nothing() && ++fruitless_ % 1024 == 0) {
      look_for_loss();
    }
    change_phase();
    return has_worked;
  }

 private:
  static constexpr uint64_t kMostWarmUp = 64;
  struct Notices {
    uint64_t told = 0;  // messages that they have told of
    uint32_t under_way = 0;
  };

  bool post(uint32_t index) {
    const Lane& lane = lanes_[index];
    bool has_posted = false;
    // A bounded share, so that the other queue pairs and directions get theirs.
    for (uint32_t lists = 0; lists < 128; ++lists) {
      const uint64_t room =
          std::min(link_.depths().in_flight - (lane.posted - lane.completed), window_ - (lane.posted - lane.settled));
      if (!post_list(index, room, [&](uint64_t number) { add(index, number); })) {
        break;
      }
      has_posted = true;
      if (is_write_ && lane.posted - notices_[index].told >= notice_every_) {
        post_notice(index);
      }
    }
    if (is_write_ && has_posted_all() && notices_[index].told != lane.posted) {
      post_notice(index);
    }
    return has_posted;
  }

  void add(uint32_t index, uint64_t number) {
    const std::span<std::byte> slot = link_.send_slot(index, number % slots_);
    if (is_compared_) {
      write_stamp(slot, stamp_of(link_.seed(), number));
    }
    poster_.add(index, slot, is_write_ ? link_.remote_receive_address(index, number % window_) : 0);
  }

  void post_notice(uint32_t index) {
    // Half of the receives, so that a late completion is no overrun.
    if (notices_[index].under_way < Link::kNotices / 2) {
      notices_[index].told = lanes_[index].posted;
      ++notices_[index].under_way;
      link_.post_notice(index, lanes_[index].posted, uint64_t{index} << 32U);
    }
  }

  bool reap() {
    std::array<ibv_wc, 16> completions;
    const int count = link_.poll(link_.send_cq(), completions, "what was sent");
    for (int i = 0; i < count; ++i) {
      const uint64_t id = completions[static_cast<size_t>(i)].wr_id;
      const auto covered = static_cast<uint32_t>(id);
      lanes_[id >> 32U].completed += covered;
      notices_[id >> 32U].under_way -= covered == 0 ? 1 : 0;  // of a notice
      timing_.tx_operations += covered;
    }
    if (count > 0) {
      completed_ns_ = base::now_ns();
    }
    return count > 0;
  }

  bool take_credits() {
    bool has_taken = false;
    while (const std::optional<Link::Word> credit = link_.take_credit()) {
      if (credit->queue_pair < lanes_.size()) {
        Lane& lane = lanes_[credit->queue_pair];
        // Late ones are older than what we know; ones beyond what was sent can't be.
        if (credit->count > lane.settled && credit->count <= lane.posted) {
          lane.settled = credit->count;
          settled_ns_ = base::now_ns();
          has_taken = true;
        }
      }
    }
    return has_taken;
  }

  void look_for_loss() {
    const uint64_t silent_ns = base::now_ns() - settled_ns_;
    for (uint32_t index = 0; index < lanes_.size(); ++index) {
      if (silent_ns > kLostNs) {
        lanes_[index].settled = lanes_[index].posted;
      } else if (silent_ns > kRemindNs && is_write_ && lanes_[index].settled != lanes_[index].posted) {
        post_notice(index);
      }
    }
    if (silent_ns > kLostNs && phase_ == Phase::kRunning) {
      settled_ns_ = base::now_ns();
    }
  }

  bool is_write_;
  bool is_compared_;
  uint32_t window_;
  uint32_t slots_;
  uint32_t notice_every_;
  std::vector<Notices> notices_;  // of each queue pair
  uint32_t fruitless_ = 0;
};

/// The receiving end of a Sender: checks every message, in order, and acknowledges. Of WRITEs it learns by notices,
/// which follow them on their queue pair. Not thread-safe.
class Receiver {
 public:
  Receiver(Link& link, Peer& peer)
      : link_(link),
        peer_(peer),
        is_write_(is_write(link)),
        may_nap_(is_write_ && link.depths().receive_slots >= kLeastNapWindow && !link.parameters().is_bidirectional &&
                 !link.has_events()),
        check_(link.parameters().bandwidth_check),
        window_(link.depths().receive_slots),
        slots_(slots_used(link.theirs().send_slots, window_)),
        credit_every_(std::max(window_ / 2, 1U)),
        lanes_(link.queue_pairs()) {}

  /// Does what can be done without waiting. True if that was something. Throws ProbeFailure, naming the message, if one
  /// is damaged, or, over RC, missing or out of order.
  bool advance() {
    std::array<ibv_wc, 16> completions;
    const int count = link_.poll(link_.receive_cq(), completions, "a receive");
    for (int i = 0; i < count; ++i) {
      const ibv_wc& one = completions[static_cast<size_t>(i)];
      const auto index = static_cast<uint32_t>(one.wr_id >> 32U);
      const auto slot = static_cast<uint32_t>(one.wr_id);
      // What a driver returns is not trusted: the slot would be out of bounds.
      if (slot >= (is_write_ ? Link::kNotices : link_.depths().receive_slots)) {
        peer_.fail("a receive completed that was not posted (id {:#x})", one.wr_id);
      }
      is_write_ ? take_notice(index, slot) : take_message(index, slot, one.byte_len);
    }
    if (count == 0) {
      when_idle();
      return false;
    }
    fruitless_ = 0;
    return true;
  }

  /// How many the sender has posted on each queue pair: it has ended.
  void set_posted(const std::vector<uint64_t>& counts) {
    for (size_t index = 0; index < lanes_.size(); ++index) {
      lanes_[index].posted = counts[index];
    }
    knows_posted_ = true;
  }
  bool knows_posted() const { return knows_posted_; }

  /// When all that was posted has come; over UC and UD when nothing more can be hoped for.
  bool is_done() {
    if (!knows_posted_) {
      return false;
    }
    const bool has_all = std::ranges::all_of(lanes_, [](const Lane& lane) { return lane.next >= lane.posted; });
    if (has_all || link_.loses_nothing()) {
      return has_all;
    }
    // The sender has waited for a credit in vain before it ended.
    for (Lane& lane : lanes_) {
      receipt_.lost += lane.posted - std::min(lane.posted, lane.next);
      lane.next = std::max(lane.next, lane.posted);
    }
    return true;
  }

  const Receipt& receipt() const { return receipt_; }

 private:
  struct Lane {
    uint64_t next = 0;  // the sequence number expected
    uint64_t credited = 0;
    uint64_t posted = 0;  // by the sender, once it has ended

    /// The credit may have been lost: it is sent again.
    void owe_credit() { credited = std::min(credited, next - std::min<uint64_t>(next, 1)); }
  };

  void check(uint32_t index, std::span<const std::byte> message, uint64_t sequence) {
    const auto source = static_cast<uint32_t>(sequence % slots_);
    if (const auto wrong = find_damage(message, link_.theirs().seed, sequence, source, check_)) {
      peer_.fail("message {} of {} bytes on queue pair {} is damaged from byte {} on", sequence, message.size(), index,
                 *wrong);
    }
  }

  void take_message(uint32_t index, uint32_t slot, uint32_t length) {
    Lane& lane = lanes_[index];
    const std::span<std::byte> message = link_.receive_slot(index, slot);
    if (length != message.size() + link_.header_bytes()) {
      peer_.fail("message {} of {} bytes arrived as {}", lane.next, message.size(), length - link_.header_bytes());
    }
    uint64_t sequence = lane.next;
    if (check_ != Check::kNone) {
      sequence = sequence_in(message, lane.next);
      if (sequence != lane.next && (link_.loses_nothing() || sequence < lane.next)) {
        peer_.fail("message {} on queue pair {} came where {} was due", sequence, index, lane.next);
      }
      check(index, message, sequence);
    }
    receipt_.lost += sequence - lane.next;
    ++receipt_.messages;
    lane.next = sequence + 1;
    link_.post_receive(index, slot);
    acknowledge(index, credit_every_);
  }

  void take_notice(uint32_t index, uint32_t slot) {
    Lane& lane = lanes_[index];
    Link::Word word;
    std::memcpy(&word, link_.notice_slot(index, slot).data(), sizeof word);
    link_.post_notice_receive(index, slot);
    if (word.count > lane.next + window_ && link_.loses_nothing()) {
      peer_.fail("a notice tells of {} messages where {} were due at most", word.count, lane.next + window_);
    }
    // The sender has given up what is older than the window; and no damaged notice keeps this end here for long.
    if (const uint64_t first = word.count - std::min<uint64_t>(word.count, window_); lane.next < first) {
      receipt_.lost += first - lane.next;
      lane.next = first;
    }
    for (; lane.next < word.count; ++lane.next) {
      const std::span<std::byte> message = link_.receive_slot(index, lane.next % window_);
      // Of an unreliable WRITE that never came the slot still holds what was there before.
      if (!link_.loses_nothing() && check_ != Check::kNone &&
          !has_stamp(message, stamp_of(link_.theirs().seed, lane.next))) {
        ++receipt_.lost;
        continue;
      }
      check(index, message, lane.next);
      ++receipt_.messages;
    }
    lane.owe_credit();  // also for nothing new
    acknowledge(index, 1);
  }

  void acknowledge(uint32_t index, uint64_t least) {
    Lane& lane = lanes_[index];
    if (lane.next - lane.credited >= least && link_.send_credit(index, lane.next)) {
      lane.credited = lane.next;
    }
  }

  void when_idle() {
    // Some microseconds after the last message: what is not acknowledged yet may be all that the sender waits for.
    constexpr uint32_t kPause = 64;
    constexpr uint32_t kBetweenNaps = 8;
    constexpr uint32_t kRepeat = 1U << 16U;
    ++fruitless_;
    if (may_nap_ && fruitless_ > kPause && fruitless_ % kBetweenNaps == 0) {
      std::this_thread::sleep_for(kNap);
    }
    if (fruitless_ % kPause != 0) {
      return;
    }
    for (uint32_t index = 0; index < lanes_.size(); ++index) {
      if (!link_.loses_nothing() && fruitless_ % kRepeat == 0) {
        lanes_[index].owe_credit();
      }
      acknowledge(index, 1);
    }
  }

  Link& link_;
  Peer& peer_;
  bool is_write_;
  /// The target of WRITEs has nothing to do until it is told of some; looking all the time would take from the writer
  /// what the two share: a processor, or the memory's bookkeeping.
  bool may_nap_;
  Check check_;
  uint32_t window_;
  uint32_t slots_;
  uint32_t credit_every_;
  std::vector<Lane> lanes_;
  Receipt receipt_;
  uint32_t fruitless_ = 0;
  bool knows_posted_ = false;
};

}  // namespace

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
  for (uint32_t turns = 1; !has_told || (receives && !receiver->is_done()); ++turns) {
    if (turns % kRareTurns == 0) {
      (void)peer.look("nothing", kLastMessage);  // it may want to stop
      sends ? show(progress, link, sender->timing().tx_operations, "sent")
            : show(progress, link, receiver->receipt().messages, "received");
    }
    const bool has_sent = sends && !sender->is_done() && sender->advance();
    const bool has_received = receives && receiver->advance();
    if (!has_told && sender->is_done()) {
      peer.tell("posted", sender->counts());
      has_told = true;
    }
    if (has_sent || has_received) {
      patience.renew();
    } else if (patience.wait() && receives && !receiver->knows_posted()) {
      if (const std::optional<std::string> posted = peer.look("posted", kLastMessage)) {
        receiver->set_posted(peer.numbers_in(*posted, link.queue_pairs()));
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

}  // namespace ringbolt::tools::perf
