#include "device/shared_receive_queue.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include <fmt/format.h>

#include "base/c_border.h"
#include "base/lock_guard.h"
#include "device/explanations.h"
#include "device/limits.h"
#include "device/work_request.h"

namespace ringbolt::device {
namespace {

constexpr size_t kMostOpen = 64;  // receives that messages are being put into while as many as fit are posted anew

}  // namespace

base::Result<std::unique_ptr<SharedReceiveQueue>> SharedReceiveQueue::create(ProtectionDomain& pd,
                                                                             const ibv_srq_attr& attributes) {
  if (attributes.max_wr == 0 || attributes.max_wr > kMaxSrqDepth || attributes.max_sge > kMaxSge) {
    return base::fail(base::refused(EINVAL, "ibv_create_srq", [&] {
      return base::Explanation{fmt::format("max_wr is {} and max_sge {}; the device has 1 to {}, and {} at most",
                                           attributes.max_wr, attributes.max_sge, kMaxSrqDepth, kMaxSge),
                               "ask ibv_query_device for max_srq_wr and max_srq_sge"};
    }));
  }
  try {
    return std::unique_ptr<SharedReceiveQueue>(
        new SharedReceiveQueue(pd, attributes.max_wr, std::max(1U, attributes.max_sge)));
  } catch (const std::bad_alloc&) {
    return base::fail(ENOMEM);
  }
}

ibv_srq_attr SharedReceiveQueue::query() {
  const base::LockGuard guard(lock_);
  return {ring_.depth(), ring_.max_sge(), limit_};
}

int SharedReceiveQueue::modify(const ibv_srq_attr& attributes, int mask) {
  const base::LockGuard guard(lock_);
  if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) {
    return base::refused(EINVAL, "ibv_modify_srq", [&] {
      return base::Explanation{fmt::format("the mask is {:#x}", mask), "set IBV_SRQ_MAX_WR, IBV_SRQ_LIMIT or both"};
    });
  }
  const uint32_t depth = (mask & IBV_SRQ_MAX_WR) != 0 ? attributes.max_wr : ring_.depth();
  if (depth == 0 || depth > kMaxSrqDepth || ((mask & IBV_SRQ_LIMIT) != 0 && attributes.srq_limit > depth)) {
    return base::refused(EINVAL, "ibv_modify_srq", [&] {
      return base::Explanation{
          fmt::format("depth {} of 1 to {}, srq_limit {}", depth, kMaxSrqDepth, attributes.srq_limit),
          "keep srq_limit within max_wr, and max_wr within what ibv_query_device says"};
    });
  }
  if (depth != ring_.depth()) {
    if (const int error = ring_.resize(depth)) {
      return base::refused(error, "ibv_modify_srq", [&, posted = ring_.count()] {
        return base::Explanation{fmt::format("{} receives are posted, more than the new max_wr {}", posted, depth),
                                 "shrink it when fewer are posted"};
      });
    }
  }
  if ((mask & IBV_SRQ_LIMIT) != 0) {
    limit_ = attributes.srq_limit;
  }
  return 0;
}

int SharedReceiveQueue::post(ibv_recv_wr* wr, ibv_recv_wr** bad) try {
  int error = 0;
  bool ends_want = false;
  {
    const base::LockGuard guard(lock_);
    for (; wr != nullptr; wr = wr->next) {
      error = ring_.push(*wr);
      if (error != 0) {
        name_refused(wr, bad);
        base::refused(error, "ibv_post_srq_recv",
                      [&, posted = ring_.count(), full = ring_.depth(), pieces = ring_.max_sge()] {
                        return why_receive_refused(*wr, posted, full, pieces);
                      });
        break;
      }
    }
    ends_want = is_wanting_ && !ring_.is_empty();
    is_wanting_ = is_wanting_ && !ends_want;
  }
  if (ends_want) {
    pd_.context.process().request_service();  // of all: whose message waits is not noted here, and nobody rings again
  }
  return error;
} catch (...) {
  return base::caught_errno();
}

int SharedReceiveQueue::post_noted(ibv_recv_wr* wr, ibv_recv_wr** bad, const ReceivePosting& from) try {
  {
    const base::LockGuard guard(lock_);
    if (const size_t room = 2 * size_t{ring_.depth()} + kMostOpen; noted_.size() < room) {
      std::rotate(noted_.begin(), noted_.begin() + static_cast<ptrdiff_t>(next_noted_), noted_.end());  // the oldest come first
      next_noted_ = noted_.size();
      noted_.resize(room);
    }
    const ibv_recv_wr* original = from.original != nullptr ? from.original : wr;
    for (const ibv_recv_wr* one = wr; one != nullptr && original != nullptr;
         one = one->next, original = original->next) {
      noted_[next_noted_] = {one->wr_id, {original->wr_id, from.site}};
      next_noted_ = next_noted_ + 1 == noted_.size() ? 0 : next_noted_ + 1;
    }
  }
  return post(wr, bad);
} catch (...) {
  return base::caught_errno();
}

NotedReceive SharedReceiveQueue::noted(uint64_t wr_id) {
  const base::LockGuard guard(lock_);
  for (size_t i = 0; i < noted_.size(); ++i) {
    const Noted& one = noted_[(next_noted_ + noted_.size() - 1 - i) % noted_.size()];
    if (one.receive.site && one.wr_id == wr_id) {
      return one.receive;
    }
  }
  return {};
}

uint32_t SharedReceiveQueue::count() {
  const base::LockGuard guard(lock_);
  return ring_.count();
}

bool SharedReceiveQueue::take(uint64_t& wr_id, ibv_sge* pieces, uint32_t& count, bool is_awaited) {
  bool reaches_limit = false;
  {
    const base::LockGuard guard(lock_);
    if (ring_.is_empty()) {
      is_wanting_ = is_wanting_ || is_awaited;
      return false;
    }
    const ReceiveRing::Receive receive = ring_.front();
    wr_id = receive.wr_id;
    count = static_cast<uint32_t>(receive.pieces.size());
    std::ranges::copy(receive.pieces, pieces);
    ring_.pop();
    reaches_limit = limit_ != 0 && ring_.count() < limit_;
    if (reaches_limit) {
      limit_ = 0;
    }
  }
  if (reaches_limit) {
    pd_.context.announce(IBV_EVENT_SRQ_LIMIT_REACHED, handle);
  }
  return true;
}

}  // namespace ringbolt::device
