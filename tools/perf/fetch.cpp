// Hot path: no allocation, lock or system call for an operation.
#include "perf/fetch.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "base/clock.h"
#include "perf/initiator.h"
#include "perf/message.h"
#include "perf/traffic.h"

namespace ringbolt::tools::perf {
namespace {

/// What an atomic's counter holds after `count` of them; starts at 0. An odd step, so that all 64 bits take part.
uint64_t atomic_value(uint64_t count) { return count * 0x9e3779b97f4a7c15U; }

uint64_t number_in(std::span<const std::byte> slot) {
  uint64_t number = 0;
  std::memcpy(&number, slot.data(), sizeof number);
  return number;
}

}  // namespace

Fetch::Fetch(Link& link, Peer& peer, Check check)
    : link_(link),
      peer_(peer),
      check_(check),
      is_atomic_(link.parameters().operation == Operation::kAtomic),
      source_slots_(slots_used(link.theirs().send_slots, link.depths().receive_slots)),
      // An atomic's own receive slots are the counters that the peer may work on.
      landing_slots_(is_atomic_ ? link.depths().send_slots : link.depths().receive_slots) {}

ibv_wr_opcode Fetch::opcode_of(const Parameters& parameters) {
  if (parameters.operation == Operation::kRead) {
    return IBV_WR_RDMA_READ;
  }
  return parameters.atomic_kind == AtomicKind::kFetchAdd ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
}

void Fetch::add(Poster& poster, uint32_t queue_pair, uint64_t sequence) const {
  if (!is_atomic_) {
    poster.add(queue_pair, link_.receive_slot(queue_pair, sequence % landing_slots_),
               link_.remote_send_address(queue_pair, sequence % source_slots_));
    return;
  }
  ibv_send_wr& request = poster.add(queue_pair, link_.send_slot(queue_pair, sequence % landing_slots_), 0);
  request.wr.atomic.remote_addr = link_.remote_receive_address(queue_pair, 0);
  request.wr.atomic.rkey = link_.theirs().remote_key;
  const bool adds = link_.parameters().atomic_kind == AtomicKind::kFetchAdd;
  // One counter for each queue pair, whose atomics are done in order: so each swap finds what the one before it left.
  request.wr.atomic.compare_add = adds ? atomic_value(1) : atomic_value(sequence);
  request.wr.atomic.swap = adds ? 0 : atomic_value(sequence + 1);
}

void Fetch::check(uint32_t queue_pair, uint64_t sequence) const {
  if (is_atomic_) {
    const uint64_t found = number_in(link_.send_slot(queue_pair, sequence % landing_slots_));
    if (found != atomic_value(sequence)) {
      peer_.fail("atomic {} on queue pair {} found {:#x} where the ones before must have left {:#x}", sequence,
                 queue_pair, found, atomic_value(sequence));
    }
    return;
  }
  const auto source = static_cast<uint32_t>(sequence % source_slots_);
  const std::span<std::byte> message = link_.receive_slot(queue_pair, sequence % landing_slots_);
  // The peer stamps its slots once, with their own numbers: the same slot brings the same message each time.
  if (const auto wrong = find_damage(message, link_.theirs().seed, source, source, check_)) {
    peer_.fail("READ {} of {} bytes on queue pair {} brought damage from byte {} on", sequence, message.size(),
               queue_pair, *wrong);
  }
}

namespace {

/// Streams READs or atomics over all queue pairs of a link until the pace says that it is enough, and checks what each
/// brings, which settles it. The peer's part is passive. Not thread-safe.
class Fetcher : public Initiator {
 public:
  Fetcher(Link& link, Peer& peer)
      : Initiator(link, peer, Fetch::opcode_of(link.parameters()),
                  link.depths().in_flight * uint64_t{link.queue_pairs()}),
        fetch_(link, peer, link.parameters().bandwidth_check) {}

  /// Does what can be done without waiting. True if that was something. Throws ProbeFailure, naming what is wrong.
  bool advance() {
    bool has_worked = false;
    for (uint32_t index = 0; index < lanes_.size(); ++index) {
      const uint64_t room = link_.depths().in_flight - (lanes_[index].posted - lanes_[index].settled);
      has_worked |= post_list(index, room, [&](uint64_t number) { fetch_.add(poster_, index, number); });
    }
    has_worked |= reap();
    change_phase();
    if (is_done()) {
      // settled_ns_ stays where the clock began: the last check has just been made.
      timing_.duration_ns = base::now_ns() - begin_ns_;
    }
    return has_worked;
  }

  uint64_t checked() const { return checked_; }

 private:
  bool reap() {
    std::array<ibv_wc, 16> completions;
    const int count = link_.poll(link_.send_cq(), completions, "what was asked for");
    for (int i = 0; i < count; ++i) {
      const uint64_t id = completions[static_cast<size_t>(i)].wr_id;
      const auto index = static_cast<uint32_t>(id >> 32U);
      for (auto covered = static_cast<uint32_t>(id); covered > 0; --covered) {
        fetch_.check(index, lanes_[index].settled++);
        ++checked_;
      }
    }
    return count > 0;
  }

  Fetch fetch_;
  uint64_t checked_ = 0;
};

/// The counters that the peer's atomics worked on, as they must be after so many.
void check_counters(Link& link, Peer& peer, const std::vector<uint64_t>& counts) {
  for (uint32_t index = 0; index < link.queue_pairs(); ++index) {
    const uint64_t value = number_in(link.receive_slot(index, 0));
    if (value != atomic_value(counts[index])) {
      peer.fail("after {} atomics on queue pair {} the counter is {:#x} and should be {:#x}", counts[index], index,
                value, atomic_value(counts[index]));
    }
  }
}

}  // namespace

std::optional<Sent> fetch(Link& link, Peer& peer, bool fetches, bool is_target, Progress& progress) {
  std::optional<Sent> sent;
  if (fetches) {
    Fetcher fetcher(link, peer);
    Patience patience(link, peer, "what was asked for");
    for (uint32_t turns = 0; !fetcher.is_done(); ++turns) {
      if (turns % kRareTurns == 0) {
        // The target sees nothing of this, and would take a long silence for a hang.
        peer.tell_working();
        (void)peer.look("nothing", kLastMessage);  // it may want to stop
        show(progress, link, fetcher.checked(), "fetched");
      }
      if (fetcher.advance()) {
        patience.renew();
      } else if (patience.wait()) {
        peer.tell_working();  // where turns are slow, kRareTurns of them are longer than a peer waits
      }
    }
    sent = Sent{fetcher.timing(), {fetcher.checked(), 0}};
    peer.tell("posted", fetcher.counts());
  }
  if (is_target) {
    // Passive, as the operations are: the device serves them by itself.
    // The peer tells of its last operation only after having checked it, so the counters stand still.
    const std::string counts = peer.await("posted", kLastMessage);
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

}  // namespace ringbolt::tools::perf
