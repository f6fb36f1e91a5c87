#include "crowd.h"

#include <poll.h>

#include <stdexcept>
#include <string>

namespace ringbolt::bench {
namespace {

constexpr int kPatienceMs = 30'000;
/// A poller of ours doubles its patience with each of these that it finds soon.
constexpr int kCalmingMessages = 16;
constexpr int kMostPolls = 1'000'000;

void take_one(ibv_cq& cq) {
  ibv_wc completion{};
  for (int i = 0; i < kMostPolls; ++i) {
    if (const int found = ibv_poll_cq(&cq, 1, &completion); found != 0) {
      if (found < 0 || completion.status != IBV_WC_SUCCESS) {
        throw std::runtime_error(std::string("crowd: ") + ibv_wc_status_str(completion.status));
      }
      return;
    }
  }
  throw std::runtime_error("crowd: a completion is missing");
}

}  // namespace

void Crowd::grow(size_t queue_pairs) {
  while (size_ < queue_pairs) {
    const bool both_count = queue_pairs - size_ >= 2;
    ibv_cq& cq_of_other = both_count ? cq() : *others_;
    const Pair& pair = add(cq_of_other);
    size_ += both_count ? 2 : 1;
    device_.post_message(*pair.other, *pair.one);
    take_one(cq());
    take_one(cq_of_other);
  }
}

Crowd::Pair& Crowd::add(ibv_cq& cq_of_other) {
  pairs_.push_back({device_.make_queue_pair(cq(), true, 0), device_.make_queue_pair(cq_of_other, true, 0)});
  device_.connect(*pairs_.back().one, *pairs_.back().other);
  return pairs_.back();
}

void Crowd::calm() {
  for (int i = 0; i < kCalmingMessages; ++i) {
    ibv_wc completion{};
    if (ibv_poll_cq(&cq(), 1, &completion) != 0) {
      throw std::runtime_error("crowd: a completion that nobody has asked for");
    }
    device_.post_message(*pairs_.front().other, *pairs_.front().one);
    take_one(cq());
    take_one(*others_);
  }
}

void Crowd::cause_event() {
  device_.post_message(*pairs_.front().other, *pairs_.front().one);
  wait_for_event();
  take_one(cq());
  take_one(*others_);
}

void Crowd::wait_for_event() const {
  pollfd channel{device_.channel()->fd, POLLIN, 0};
  if (poll(&channel, 1, kPatienceMs) != 1) {
    throw std::runtime_error("crowd: an armed completion queue raised no event");
  }
  ibv_cq* of = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(device_.channel(), &of, &context) != 0) {
    throw std::runtime_error("ibv_get_cq_event failed");
  }
  ibv_ack_cq_events(of, 1);
}

}  // namespace ringbolt::bench
