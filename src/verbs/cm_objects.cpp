#include "verbs/cm_objects.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "base/error.h"

namespace ringbolt::verbs {
namespace {

constexpr const char* kWithoutKernel =
    "has this kernel RDMA (/dev/infiniband/rdma_cm)? Ringbolt's own needs none: RINGBOLT_VERBS=soft";

// Reads errno: nothing may come between the call and this.
[[noreturn]] void refuse_cm(const char* call, const ConnectionManager& manager) {
  // Some libraries fail without an errno where there is no device.
  throw base::Error(errno == 0 ? ENODEV : errno, call, manager.name(), kWithoutKernel);
}

}  // namespace

EventChannel::EventChannel(const ConnectionManager& manager) : manager_(manager) {
  errno = 0;
  channel_ = OwnedCm<rdma_event_channel>(manager.calls().create_event_channel(), CloseCm(manager));
  if (channel_ == nullptr) {
    refuse_cm("rdma_create_event_channel", manager);
  }
  // next() must not wait.
  const int flags = ::fcntl(fd(), F_GETFL);
  if (flags < 0 || ::fcntl(fd(), F_SETFL, flags | O_NONBLOCK) != 0) {
    refuse_cm("fcntl", manager);
  }
}

CmEvent EventChannel::next() const {
  rdma_cm_event* event = nullptr;
  // EAGAIN, or a signal: both are "none now", and whoever waits asks again.
  const bool is_there = manager_.calls().get_cm_event(get(), &event) == 0;
  return CmEvent(is_there ? event : nullptr, CloseCm(manager_));
}

CmIdentifier::CmIdentifier(const ConnectionManager& manager, const EventChannel& channel) {
  errno = 0;
  rdma_cm_id* made = nullptr;
  if (manager.calls().create_id(channel.get(), &made, nullptr, RDMA_PS_TCP) != 0) {
    refuse_cm("rdma_create_id", manager);
  }
  id_ = OwnedCm<rdma_cm_id>(made, CloseCm(manager));
}

CmIdentifier::CmIdentifier(const ConnectionManager& manager, OwnedCm<rdma_cm_id> request, const EventChannel& channel)
    : id_(std::move(request)) {
  errno = 0;
  if (manager.calls().migrate_id(id_.get(), channel.get()) != 0) {
    refuse_cm("rdma_migrate_id", manager);
  }
}

}  // namespace ringbolt::verbs
