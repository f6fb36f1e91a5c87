// What happens as time goes by, and when cables fail.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/copy.h"
#include "base/error.h"
#include "engine/engine.h"

namespace ringbolt::engine {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kTickNs = kMillisecond;
constexpr uint64_t kAckDelayNs = kMillisecond;
// Longer than a busy machine keeps a rank off its core. What is lost on a cable that lives is rare; what was under way
// on one that died is sent again at once.
constexpr uint64_t kResendNs = 100 * kMillisecond;
// The patience for a message doubles with each try, so often at most.
constexpr uint32_t kMostDoublings = 4;
/// Or so many round trips, where what is under way takes longer to get through.
constexpr uint64_t kRoundTrips = 3;
constexpr uint64_t kMostPatienceNs = 8'000 * kMillisecond;
// A rank that is given up may live, and read what it has been sent, until it has given up others in turn.
constexpr uint64_t kAbandonedNs = 10'000 * kMillisecond;

}  // namespace

void Engine::tick() {
  next_tick_ns_ = now_ns_ + kTickNs;
  post_freed();
  notice_failures();
  slots_.free_retired();
  slots_.wake_resting(now_ns_);
  for (uint32_t rank = 0; rank < flows_.size(); ++rank) {
    Flow& flow = flows_[rank];
    if (flow.n_to_acknowledge > 0 && now_ns_ - flow.to_acknowledge_since_ns >= kAckDelayNs) {
      send_ack(rank);
    }
    if (!flow.unacknowledged.empty()) {
      resend(rank);
    }
  }
  for (Neighbour& neighbour : neighbours_) {
    if (!neighbour.queue.is_empty()) {
      serve(neighbour);
    }
  }
  send_pending_words();
  tell_credits();
}

void Engine::resend(uint32_t rank) {
  if (!paths_.is_reachable(rank)) {
    return;
  }
  const uint64_t least = std::clamp(kRoundTrips * flows_[rank].round_trip_ns, kResendNs, kMostPatienceNs / 4);
  for (Unacknowledged& waiting : flows_[rank].unacknowledged) {
    const uint64_t patience = std::min(least << std::min(waiting.n_tries, kMostDoublings), kMostPatienceNs);
    const bool waits_for_cable =
        !waiting.is_due && slots_.is_read(waiting.slot) && slots_.will_be_told_of(waiting.slot);
    if (waiting.sent_ns == 0 || waits_for_cable) {
      waiting.sent_ns = now_ns_;
    }
    if (slots_.is_queued(waiting.slot) || (!waiting.is_due && now_ns_ - waiting.sent_ns < patience) ||
        !has_slot_of_its_own(waiting)) {
      continue;
    }
    waiting.is_due = false;
    waiting.sent_ns = now_ns_;
    ++waiting.n_tries;
    ++counts_.resent;
    choose_path(waiting.header, {});
    waiting.header.ack = flows_[rank].received.expected();
    waiting.header.wants_ack = true;
    Origin origin;
    origin.offset = slots_.offset_of(waiting.slot);
    origin.send_slot = waiting.slot;
    protect(waiting.header, origin.offset);
    submit(waiting.header, origin, waiting.header.n_via > 0 ? waiting.header.via[0] : rank,
           ChunkSlots::size_of(waiting.slot), 0);
  }
}

/// A cable that has died may keep what it was given until it is connected anew: then a copy goes another way. False:
/// there is no memory for one now.
bool Engine::has_slot_of_its_own(Unacknowledged& waiting) {
  if (!slots_.is_read(waiting.slot)) {
    return true;
  }
  if (waiting.first_slot != kNoSlot) {
    return false;
  }
  const uint32_t length = waiting.header.length_bytes;
  const auto copy = slots_.take(length, 0);
  if (!copy) {
    return false;
  }
  base::copy(copy->bytes, slab_.data() + slots_.offset_of(waiting.slot) + kHeaderBytes, length);
  slots_.note_copy(copy->id);
  waiting.first_slot = std::exchange(waiting.slot, copy->id);
  return true;
}

void Engine::notice_failures() {
  for (uint32_t i = 0; i < cables_.size(); ++i) {
    if (!cables_[i]->is_alive() && !has_failed_[i]) {
      has_failed_[i] = true;
      receiver_->on_cable_failed(i);
    }
  }
}

void Engine::fail_device(const Device& device, int error) {
  for (const auto& cable : cables_) {
    if (&cable->device() == &device) {
      cable->fail(fmt::format("{}: ibv_poll_cq: {}", cable->plan().name, base::reason_of(error)));
    }
  }
}

void Engine::fail_cable(uint32_t cable, std::string why) {
  cables_[cable]->fail(std::move(why));
  notice_failures();
}

void Engine::reset_cable(uint32_t cable, uint16_t incarnation) {
  for (const RequestId& id : cables_[cable]->reset(incarnation)) {
    if (id.is_relayed) {
      cables_[id.from_cable]->free(id.size, id.slot);
    } else {
      slots_.free(id.slot);
    }
  }
}

void Engine::start_cable(uint32_t cable) {
  cables_[cable]->start();
  has_failed_[cable] = false;
  next_tick_ns_ = 0;
}

bool Engine::set_cable_up(uint32_t fabric_cable, bool is_up) {
  if (!paths_.set_up(fabric_cable, is_up)) {
    return false;
  }
  for (const auto& cable : cables_) {
    if (cable->plan().fabric_cable == fabric_cable) {
      cable->set_in_use(is_up);
    }
  }
  for (uint32_t rank = 0; rank < neighbours_.size(); ++rank) {
    Neighbour& neighbour = neighbours_[rank];
    if (paths_.is_joined(plan_.rank, rank)) {
      continue;
    }
    neighbour.queue.clear([&](const Entry& entry) { forget(entry); });
  }
  for (Flow& flow : flows_) {
    for (Unacknowledged& waiting : flow.unacknowledged) {
      const ChunkHeader& header = waiting.header;
      const bool is_cut = !paths_.is_open({header.via.data(), header.n_via}, header.destination);
      // A rail may have had it even if another one still leads there.
      if (is_cut || uses(header, plan_.fabric[fabric_cable])) {
        waiting.is_due = true;
        waiting.n_tries = 0;
      }
    }
  }
  next_tick_ns_ = 0;
  return true;
}

bool Engine::uses(const ChunkHeader& header, const FabricCable& cable) const {
  uint32_t at = plan_.rank;
  for (uint32_t i = 0; i <= header.n_via; ++i) {
    const uint32_t next = i < header.n_via ? header.via[i] : header.destination;
    if ((at == cable.a && next == cable.b) || (at == cable.b && next == cable.a)) {
      return true;
    }
    at = next;
  }
  return false;
}

void Engine::forget(const Entry& entry) {
  const Origin& origin = entry.origin;
  if (origin.is_relayed) {
    ++counts_.relay_drops;
    cables_[origin.from_cable]->free(origin.size, origin.slot);
    return;
  }
  slots_.note_unqueued(origin.send_slot);
  if (slots_.is_needless(origin.send_slot) || origin.is_unsequenced) {
    slots_.retire(origin.send_slot);
  }
}

/// It was sent to a rank that is given up now, which may live, and read it.
void Engine::abandon_slot(uint32_t rank, uint32_t slot) {
  const std::vector<Cable*>& rails = neighbours_[rank].rails;
  if (slots_.was_sent(slot) &&
      std::any_of(rails.begin(), rails.end(), [](const Cable* rail) { return rail->was_read_in_place(); })) {
    slots_.retire_at(slot, now_ns_ + kAbandonedNs);
  } else {
    slots_.retire(slot);
  }
}

void Engine::give_up(uint32_t rank, bool has_ended) {
  Flow& flow = flows_[rank];
  flow.is_given_up = true;
  flow.n_to_acknowledge = 0;
  for (const Unacknowledged& waiting : flow.unacknowledged) {
    for (const uint32_t slot : {waiting.slot, waiting.first_slot}) {
      if (slot != kNoSlot && has_ended) {
        slots_.retire(slot);
      } else if (slot != kNoSlot) {
        abandon_slot(rank, slot);
      }
    }
  }
  flow.unacknowledged.clear();
  std::erase_if(pending_words_, [&](const PendingWord& word) { return word.address.destination == rank; });
}

void Engine::note_groups_under_way(std::vector<bool>& groups) const {
  for (const Flow& flow : flows_) {
    for (const Unacknowledged& waiting : flow.unacknowledged) {
      groups[waiting.header.group] = true;
    }
  }
  for (const PendingWord& word : pending_words_) {
    groups[word.address.group] = true;
  }
}

size_t Engine::n_unacknowledged() const {
  size_t n = 0;
  for (const Flow& flow : flows_) {
    n += flow.unacknowledged.size();
  }
  return n;
}

}  // namespace ringbolt::engine
