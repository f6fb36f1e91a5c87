#include "device/orphans.h"

#include <algorithm>
#include <array>

#include "base/lock_guard.h"

namespace ringbolt::device {
namespace {

// A lock can outlive its process for a moment: in a child between its fork and its exec, say.
constexpr std::array<uint64_t, 2> kLookAgainNs{50'000'000, 250'000'000};
// As the connection manager's own early tries; the peer that has not heard one of these hears none.
constexpr std::array<uint64_t, 5> kPausesNs{50'000'000, 100'000'000, 200'000'000, 400'000'000, 0};

std::array<std::byte, wire::kMadBytes> end_of(const RecordEntry& entry) {
  std::array<std::byte, wire::kMadBytes> mad{};
  // Nobody matches by the transaction; the peer's answer repeats it.
  wire::emit(wire::CmMad{entry.local_id, wire::CmDreq{entry.local_id, entry.remote_id, entry.remote_qpn, {}}}, mad);
  return mad;
}

}  // namespace

Orphans::Orphans(std::string directory, uint64_t network, Sender sender)
    : directory_(std::move(directory)), network_(network), sender_(std::move(sender)) {}

void Orphans::on_timer(uint64_t now_ns) {
  if (next_ns_.exchange(UINT64_MAX, std::memory_order_seq_cst) == 0) {
    looks_ = 0;
    next_look_ns_ = now_ns;
  }
  if (next_look_ns_ <= now_ns) {
    look();
    next_look_ns_ = looks_ < kLookAgainNs.size() ? now_ns + kLookAgainNs[looks_] : UINT64_MAX;
    ++looks_;
  }
  const uint64_t next = std::min(send_due(now_ns), next_look_ns_);
  uint64_t none = UINT64_MAX;  // a suspicion that came meanwhile stays
  next_ns_.compare_exchange_strong(none, next, std::memory_order_seq_cst);
}

void Orphans::look() {
  for (OpenRecord& record : records_of_the_dead(directory_, network_)) {
    Duty duty{std::move(record), {}};
    for (const RecordEntry& entry : duty.record.entries) {
      duty.endings.push_back({.entry = entry});
    }
    const base::LockGuard guard(mutex_);
    duties_.push_back(std::move(duty));
  }
}

uint64_t Orphans::send_due(uint64_t now_ns) {
  // The receiving threads come here with locks of their own, so none is held while we send.
  std::vector<RecordEntry> due;
  uint64_t next = UINT64_MAX;
  {
    const base::LockGuard guard(mutex_);
    for (Duty& duty : duties_) {
      for (Ending& ending : duty.endings) {
        if (!ending.is_over && ending.next_ns <= now_ns) {
          due.push_back(ending.entry);
          ending.next_ns = now_ns + kPausesNs[ending.tries];
          ending.is_over = ++ending.tries == kPausesNs.size();
        }
        next = ending.is_over ? next : std::min(next, ending.next_ns);
      }
    }
  }
  std::vector<uint32_t> not_ours;
  for (const RecordEntry& entry : due) {
    if (sender_(entry, end_of(entry)) == Sent::not_from_here) {
      not_ours.push_back(entry.local_id);
    }
  }
  const base::LockGuard guard(mutex_);
  std::erase_if(duties_, [&](Duty& duty) {
    // Those whose devices we do not have may be others' to end: the record stays for them, unlocked.
    const bool is_all_ours = std::ranges::none_of(duty.endings, [&](const Ending& ending) {
      return std::ranges::find(not_ours, ending.entry.local_id) != not_ours.end();
    });
    const bool is_over = std::ranges::all_of(duty.endings, &Ending::is_over);
    if (is_all_ours && is_over) {
      remove(directory_, duty.record);
    }
    return is_over || !is_all_ours;
  });
  return duties_.empty() ? UINT64_MAX : next;
}

void Orphans::on_answer(const wire::CmDrep& answer) {
  const base::LockGuard guard(mutex_);
  for (Duty& duty : duties_) {
    for (Ending& ending : duty.endings) {
      ending.is_over =
          ending.is_over || (ending.entry.local_id == answer.remote_id && ending.entry.remote_id == answer.local_id);
    }
  }
}

}  // namespace ringbolt::device
