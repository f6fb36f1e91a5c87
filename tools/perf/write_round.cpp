// Hot path: no allocation, lock or system call for a message.
#include "perf/write_round.h"

#include <array>
#include <atomic>

#include <fmt/format.h>

#include "perf/message.h"

namespace ringbolt::tools::perf {

WriteRound::WriteRound(Link& link, Peer& peer)
    : link_(link),
      peer_(peer),
      poster_(link, peer, IBV_WR_RDMA_WRITE),
      patience_(link, peer, "a message of the round trips"),
      slots_(slots_used(link.depths().send_slots, link.theirs().window)),
      source_slots_(slots_used(link.theirs().send_slots, link.depths().receive_slots)) {}

void WriteRound::write(uint64_t number) {
  // Numbers begin at 1, so that memory that was never written is no message.
  const uint64_t sequence = number + 1;
  const std::span<std::byte> slot = link_.send_slot(0, sequence % slots_);
  write_stamp(slot, stamp_of(link_.seed(), sequence));
  poster_.add(0, slot, link_.remote_receive_address(0, 0));
  poster_.post(0);
  ++sent_;
  while (completed_ < sent_) {  // as perftest does
    if (reap() == 0) {
      patience_.wait();
    }
  }
}

int WriteRound::reap() {
  std::array<ibv_wc, 4> completions;
  const int count = link_.poll(link_.send_cq(), completions, "a WRITE");
  for (int i = 0; i < count; ++i) {
    completed_ += static_cast<uint32_t>(completions[static_cast<size_t>(i)].wr_id);
  }
  return count;
}

bool WriteRound::has_come(uint64_t number) {
  // Between looks at the memory completions are taken: some devices make progress only then, and a dead peer shows
  // there first.
  constexpr int kLooks = 64;
  const uint64_t stamp = stamp_of(link_.theirs().seed, number + 1);
  for (int look = 0; look < kLooks; ++look) {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the device writes it behind the compiler's back
    if (has_stamp(link_.receive_slot(0, 0), stamp)) {
      std::atomic_thread_fence(std::memory_order_acquire);
      check(number);
      return true;
    }
  }
  reap();
  return false;
}

void WriteRound::check(uint64_t number) {
  if (link_.parameters().latency_check == Check::kNone) {
    return;
  }
  const uint64_t sequence = number + 1;
  const auto source = static_cast<uint32_t>(sequence % source_slots_);
  const std::span<const std::byte> message = link_.receive_slot(0, 0);
  const auto wrong = find_damage(message, link_.theirs().seed, sequence, source, link_.parameters().latency_check);
  if (wrong) {
    peer_.fail(fmt::format("WRITE {} of {} bytes is damaged from byte {} on", number, message.size(), *wrong));
  }
}

bool WriteRound::ask(uint64_t number) {
  constexpr uint64_t kLostNs = 50'000'000;
  write(number);
  while (!has_come(number)) {
    if (patience_.wait() && !link_.is_reliable() && patience_.silent_ns() > kLostNs) {
      patience_.renew();
      return false;
    }
  }
  patience_.renew();
  return true;
}

void WriteRound::answer_all() {
  for (uint64_t number = 0;;) {
    if (has_come(number)) {
      write(number++);
      patience_.renew();
    } else if (patience_.wait()) {
      if (peer_.look("asked", "the next message of the round trips")) {
        return;
      }
      // The peer gives up what is lost and goes on with the next.
      const uint64_t newest = sequence_in(link_.receive_slot(0, 0), number + 1) - 1;
      const bool is_later = newest > number && newest - number < 64;
      number = !link_.is_reliable() && is_later ? newest : number;
    }
  }
}

}  // namespace ringbolt::tools::perf
