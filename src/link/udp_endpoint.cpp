#include "link/udp_endpoint.h"

#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.h"
#include "base/error.h"
#include "base/lock_guard.h"
#include "link/udp_forwarder.h"
#include "link/udp_group.h"

namespace ringbolt::link {

UdpEndpoint::UdpEndpoint(const Options& options)
    : options_(options),
      owner_(getpid()),
      pool_(UdpBufferPool::make()),
      forwarder_(std::make_unique<UdpForwarder>(options.slots_directory, options.slot)),
      group_(std::make_unique<UdpGroup>(UdpGroup::Options{options.slot, options.slot_shift, options.port}, sockets_,
                                        *forwarder_)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  const auto watch = [this](int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (fd >= 0 && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      throw base::Error(errno, "epoll_ctl", "UDP link");
    }
  };
  if (!epoll_.is_open()) {
    throw base::Error(errno, "epoll_create1", "UDP link");
  }
  for (const base::UniqueFd& socket : sockets_) {
    watch(socket.get());
  }
  watch(forwarder_->descriptor());
  watch(forwarder_->retry_descriptor());
  watch(group_->descriptor());
  watch(faults_.descriptor());
}

std::unique_ptr<UdpEndpoint> UdpEndpoint::open(const Options& options) {
  if (options.slot_shift >= 24 || options.slot >> (24 - options.slot_shift) != 0) {
    throw base::Error(EINVAL, "open", "UDP link", "the slot must fit into the 24 bits of a queue pair number");
  }
  return std::unique_ptr<UdpEndpoint>(new UdpEndpoint(options));
}

UdpEndpoint::~UdpEndpoint() {
  // In a forked child, or where the constructor has thrown: nothing of the group is ours.
  if (getpid() != owner_ || !epoll_.is_open()) {
    return;
  }
  group_->leave([this] {
    // What came in before the program left us out. Bounded: others keep sending to our slot.
    constexpr int kMostWaiting = 4096;
    constexpr uint64_t kPatienceNs = 100'000'000;
    const base::LockGuard lock(receiving_);
    is_leaving_ = true;
    due_ = kAllSources;
    for (int i = 0; i < kMostWaiting && next_datagram(); ++i) {
      for (size_t offset = 0; offset < datagram_.bytes;) {
        offset += divert(offset);
      }
      datagram_.buffer.reset();
    }
    const uint64_t deadline = base::now_ns() + kPatienceNs;
    while (forwarder_->has_waiting() && base::now_ns() < deadline) {
      sched_yield();
      count_alone(tally_.forward_failures, forwarder_->retry());
    }
  });
}

UdpCounters UdpEndpoint::counters() const { return read(tally_); }

void UdpEndpoint::set_faults(const fault::Plan& plan, std::span<const UdpFaultPort> ports) {
  faults_.set(plan, ports, base::now_ns());
}

void UdpEndpoint::abandon_after_fork() {
  for (base::UniqueFd& socket : sockets_) {
    socket.reset();
  }
  group_->abandon_after_fork();
  forwarder_->abandon_after_fork();
  faults_.abandon_after_fork();
  epoll_.reset();
}

void UdpEndpoint::add_waiting_batch(size_t family) {
  const base::LockGuard lock(waiting_lock_);
  if (waiting_batches_[family]++ == 0) {
    watch_socket(family, EPOLLIN | EPOLLOUT);
  }
}

void UdpEndpoint::remove_waiting_batch(size_t family) {
  const base::LockGuard lock(waiting_lock_);
  if (--waiting_batches_[family] == 0) {
    watch_socket(family, EPOLLIN);
  }
}

void UdpEndpoint::watch_socket(size_t family, uint32_t events) {
  const base::UniqueFd& socket = sockets_[family];
  epoll_event event{};
  event.events = events;
  event.data.fd = socket.get();
  if (socket.is_open() && epoll_.is_open()) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket.get(), &event);
  }
}

}  // namespace ringbolt::link
