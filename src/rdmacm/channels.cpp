// Event channels: taking and acknowledging events.

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "base/c_border.h"
#include "rdmacm/connection_manager.h"
#include "rdmacm/events.h"
#include "rdmacm/identifiers.h"

namespace ringbolt::rdmacm {

int result(int error) {
  if (error == 0) {
    return 0;
  }
  errno = error;
  return -1;
}

void Channel::push(std::unique_ptr<QueuedEvent> event) noexcept {
  // Nobody takes it any more. Of requests there is none here: tell_request() refuses them.
  if (is_closed) {
    return;
  }
  queue.push(std::move(event));
  const uint64_t one = 1;
  // Fails only at 2^64 - 1 events.
  [[maybe_unused]] const ssize_t written = write(fd.get(), &one, sizeof one);
}

void Channel::count_down() {
  // The count equals the length of the queue, which is not empty: this never blocks.
  uint64_t one = 0;
  [[maybe_unused]] const ssize_t got = read(fd.get(), &one, sizeof one);
}

std::unique_ptr<QueuedEvent> Channel::pop() {
  count_down();
  return queue.pop();
}

Channel* new_channel(ConnectionManager& manager) {
  // Blocking, as programs find a channel's descriptor; those that want it otherwise set O_NONBLOCK.
  base::UniqueFd fd(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
  if (!fd.is_open()) {
    return nullptr;
  }
  auto* channel = new (std::nothrow) Channel;
  if (channel == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  channel->manager = &manager;
  channel->c.fd = fd.get();
  channel->fd = std::move(fd);
  return channel;
}

void release_channel(Channel& channel) {
  if (--channel.users == 0 && channel.is_closed) {
    channel.manager->retire(std::unique_ptr<Channel>(&channel));
  }
}

namespace {

/// The channel is destroyed, and a thread of the program does not know yet: programs end while one of their threads
/// goes for the next event (rping). A kernel's call would be asleep by then.
int wait_for_exit() {
  constexpr timespec kGrace{0, 200'000'000};
  nanosleep(&kGrace, nullptr);
  return result(EBADF);
}

/// Blocks until an event may be there. 0, or -1 with errno: EAGAIN, EINTR.
int wait_readable(int fd) {
  // Without the lock, on a number that another thread may just have closed: EBADF is an ordinary answer here.
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0) {
    return wait_for_exit();
  }
  if ((flags & O_NONBLOCK) != 0) {
    return result(EAGAIN);
  }
  pollfd descriptor{fd, POLLIN, 0};
  // A cancellation point, with nothing held.
  if (poll(&descriptor, 1, -1) < 0) {
    return -1;
  }
  return (descriptor.revents & POLLNVAL) != 0 ? wait_for_exit() : 0;
}

/// What the requests in a channel that goes away, or of a listener that goes away, have made so far.
void refuse_requests(ConnectionManager& manager, const EventQueue& events) RINGBOLT_REQUIRES(manager_lock) {
  for (const QueuedEvent* event = events.first(); event != nullptr; event = event->next.get()) {
    if (event->c.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
      Id& id = Id::of(event->c.id);
      detach_id(id);
      delete_id(&id);
    }
  }
  manager.settle();
}

}  // namespace

void drop_events_of(Id& id) {
  auto dropped =
      id.channel().take_if([&](const QueuedEvent& event) { return event.c.id == &id.c || event.counts_for == &id; });
  // Those of its own end with it; what remains are requests to it.
  EventQueue requests;
  while (!dropped.is_empty()) {
    if (auto event = dropped.pop(); event->c.id != &id.c) {
      requests.push(std::move(event));
    }
  }
  if (!requests.is_empty()) {
    refuse_requests(*id.manager, requests);
  }
}

}  // namespace ringbolt::rdmacm

using ringbolt::rdmacm::Channel;
using ringbolt::rdmacm::ConnectionManager;
using ringbolt::rdmacm::Id;
using ringbolt::rdmacm::QueuedEvent;
namespace base = ringbolt::base;

extern "C" {

rdma_event_channel* rdma_create_event_channel(void) try {
  ConnectionManager& manager = ConnectionManager::get();
  const base::LockGuard guard(manager.mutex());
  Channel* channel = ringbolt::rdmacm::new_channel(manager);
  return channel == nullptr ? nullptr : &channel->c;
} catch (...) {
  return ringbolt::base::caught_null();
}

void rdma_destroy_event_channel(rdma_event_channel* c) try {
  Channel& channel = Channel::of(c);
  ConnectionManager& manager = *channel.manager;
  if (manager.is_dead()) {
    return;
  }
  const base::LockGuard guard(manager.mutex());
  // For the length of this call: what follows may take away its last identifier.
  ++channel.users;
  const auto dropped = channel.take_if([](const QueuedEvent&) { return true; });
  channel.is_closed = true;
  ringbolt::rdmacm::refuse_requests(manager, dropped);
  manager.drop_rejected(channel);
  channel.fd.reset();
  c->fd = -1;
  ringbolt::rdmacm::release_channel(channel);
} catch (...) {
  ringbolt::base::caught_nothing();
}

int rdma_get_cm_event(rdma_event_channel* c, rdma_cm_event** event) try {
  Channel& channel = Channel::of(c);
  ConnectionManager& manager = *channel.manager;
  for (;;) {
    if (manager.is_dead()) {
      return ringbolt::rdmacm::result(ENODEV);
    }
    bool is_closed = false;
    {
      const base::LockGuard guard(manager.mutex());
      is_closed = channel.is_closed;
      if (!channel.queue.is_empty()) {
        auto taken = channel.pop();
        // With the lock, so that rdma_destroy_id() in another thread waits for the acknowledgement.
        ++taken->counts_for->delivered;
        on_fetch(manager, *taken);
        *event = &taken.release()->c;
        break;
      }
    }
    if (is_closed) {
      return ringbolt::rdmacm::wait_for_exit();
    }
    if (ringbolt::rdmacm::wait_readable(c->fd) != 0) {
      return -1;
    }
  }
  // A request to a synchronous listener belongs to whoever takes it: it gets a channel of its own.
  if ((*event)->event == RDMA_CM_EVENT_CONNECT_REQUEST && Id::of((*event)->listen_id).is_sync) {
    return rdma_migrate_id((*event)->id, nullptr);
  }
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rdma_ack_cm_event(rdma_cm_event* c) try {
  if (c == nullptr) {
    return ringbolt::rdmacm::result(EINVAL);
  }
  QueuedEvent& event = QueuedEvent::of(c);
  ConnectionManager& manager = *event.counts_for->manager;
  if (!manager.is_dead()) {
    const base::LockGuard guard(manager.mutex());
    ++event.counts_for->acknowledged;
    manager.notify();
  }
  delete &event;
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

}  // extern "C"
