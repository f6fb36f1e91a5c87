// Hot path: no allocation, lock or system call for a message.
#include "perf/message_round.h"

#include <array>
#include <atomic>

#include <fmt/format.h>

#include "base/clock.h"
#include "perf/message.h"

namespace ringbolt::tools::perf {

Round::Round(Link& link, Peer& peer, ibv_wr_opcode opcode)
    : link_(link),
      peer_(peer),
      poster_(link, peer, opcode),
      patience_(link, peer, "a message of the round trips"),
      slots_(slots_used(link.depths().send_slots, link.theirs().window)),
      source_slots_(slots_used(link.theirs().send_slots, link.depths().receive_slots)) {}

std::span<std::byte> Round::stamped_slot(uint64_t sequence) {
  const std::span<std::byte> slot = link_.send_slot(0, sequence % slots_);
  write_stamp(slot, stamp_of(link_.seed(), sequence));
  return slot;
}

void Round::post(std::span<std::byte> slot, uint64_t remote_address) {
  poster_.add(0, slot, remote_address);
  poster_.post(0);
  ++sent_;
}

void Round::await_posted(const char* what) {
  while (completed_ < sent_) {
    if (reap(what) == 0) {
      patience_.wait();
    }
  }
}

int Round::reap(const char* what) {
  std::array<ibv_wc, 4> completions;
  const int count = link_.poll(link_.send_cq(), completions, what);
  for (int i = 0; i < count; ++i) {
    completed_ += static_cast<uint32_t>(completions[static_cast<size_t>(i)].wr_id);
  }
  return count;
}

bool Round::has_lost() {
  constexpr uint64_t kLostNs = 50'000'000;
  if (!patience_.wait() || link_.loses_nothing() || patience_.silent_ns() <= kLostNs) {
    return false;
  }
  patience_.renew();
  return true;
}

void MessageRound::send(uint64_t number) {
  post(stamped_slot(number), 0);
  repay();
  await_posted("what was sent");
}

void MessageRound::repay() {
  if (owed_slot_) {
    link_.post_receive(0, *owed_slot_);
    owed_slot_.reset();
  }
}

std::optional<uint64_t> MessageRound::take() {
  std::array<ibv_wc, 1> completion;
  if (link_.poll(link_.receive_cq(), completion, "a receive") == 0) {
    return std::nullopt;
  }
  patience_.renew();
  repay();  // of a message that nothing was sent for
  const auto slot = static_cast<uint32_t>(completion[0].wr_id);
  const std::span<const std::byte> message = link_.receive_slot(0, slot);
  const Check check = link_.parameters().latency_check;
  uint64_t number = expected_;
  if (check != Check::kNone) {
    number = sequence_in(message, expected_);
    const auto source = static_cast<uint32_t>(number % source_slots_);
    if (const auto wrong = find_damage(message, link_.theirs().seed, number, source, check)) {
      peer_.fail(fmt::format("message {} of {} bytes is damaged from byte {} on", number, message.size(), *wrong));
    }
    if (number != expected_ && link_.loses_nothing()) {
      peer_.fail(fmt::format("message {} came where {} was due", number, expected_));
    }
  }
  owed_slot_ = slot;
  if (link_.depths().receive_slots == 1) {
    repay();
  }
  return number;
}

bool MessageRound::ask(uint64_t number) {
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

void MessageRound::answer_all() {
  while (true) {
    if (const std::optional<uint64_t> number = take()) {
      send(*number);
      expected_ = *number + 1;
    } else if (patience_.wait() && peer_.look("asked", "the next message of the round trips")) {
      return;
    }
  }
}

void WriteRound::write(uint64_t number) {
  // Numbers begin at 1, so that memory that was never written is no message.
  post(stamped_slot(number + 1), link_.remote_receive_address(0, 0));
  await_posted("a WRITE");
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
  reap("a WRITE");
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
  write(number);
  while (!has_come(number)) {
    if (has_lost()) {
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
      number = !link_.loses_nothing() && is_later ? newest : number;
    }
  }
}

}  // namespace ringbolt::tools::perf
