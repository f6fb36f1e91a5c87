#include "device/queue_pair_notes.h"

#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "device/failures.h"
#include "device/work_request.h"

namespace ringbolt::device {

uint64_t QueuePairNotes::posted_ns(const Send& send) const {
  return send.ticks == 0 ? base::now_ns() : clock_.ns(send.ticks);
}

void QueuePairNotes::note_receive_list(const ibv_recv_wr* original, uint32_t posted, const ReceivePosting& from) {
  for (uint32_t i = 0; original != nullptr && i < posted; original = original->next) {
    for (uint32_t places = places_of(original->num_sge); places > 0 && i < posted; --places, ++i) {
      note_receive(original->wr_id, from.site);
    }
  }
  if (posted != 0) {
    last_receive_ticks_ = from.ticks != 0 ? from.ticks : clock_.now();
  }
}

NotedReceive QueuePairNotes::taken_receive(uint32_t behind) const {
  const size_t room = receives_.size();
  return receives_posted_ <= behind ? NotedReceive{} : receives_[(next_receive_ + 2 * room - behind % room - 1) % room];
}

bool QueuePairNotes::note_starved(uint64_t now_ns) {
  constexpr uint64_t kPauseNs = 500'000'000;
  if (starved_at_ == receives_posted_ && now_ns < starved_ns_ + kPauseNs) {
    return false;
  }
  starved_at_ = receives_posted_;
  starved_ns_ = now_ns;
  return true;
}

std::string QueuePairNotes::receives_text(uint32_t posted) const {
  if (receives_posted_ == 0) {
    return "no receive was ever posted";
  }
  return fmt::format("{} receives are posted; {} were, the last {} at {}", posted, receives_posted_,
                     age_text(clock_.ns(last_receive_ticks_)), base::place_of(taken_receive(0).site));
}

void QueuePairNotes::say_why_send(base::Explanation why) {
  const base::LockGuard guard(mutex_);
  send_why_ = send_why_ ? send_why_ : std::optional(std::move(why));
}

void QueuePairNotes::say_why_receive(base::Explanation why) {
  const base::LockGuard guard(mutex_);
  receive_why_ = receive_why_ ? receive_why_ : std::optional(std::move(why));
}

std::optional<base::Explanation> QueuePairNotes::take_why_send() {
  const base::LockGuard guard(mutex_);
  return std::exchange(send_why_, std::nullopt);
}

std::optional<base::Explanation> QueuePairNotes::take_why_receive() {
  const base::LockGuard guard(mutex_);
  return std::exchange(receive_why_, std::nullopt);
}

void QueuePairNotes::say_ended(std::string by) {
  const base::LockGuard guard(mutex_);
  if (!is_ended_) {
    is_ended_ = true;
    ended_by_ = std::move(by);
  }
}

std::string QueuePairNotes::take_ended() {
  const base::LockGuard guard(mutex_);
  return std::exchange(ended_by_, std::string());
}

void QueuePairNotes::clear() {
  const base::LockGuard guard(mutex_);
  send_why_.reset();
  receive_why_.reset();
  ended_by_.clear();
  is_ended_ = false;
}

}  // namespace ringbolt::device
