#include "link/peer.h"

#include <poll.h>
#include <unistd.h>

#include <utility>

#include "base/assert.h"
#include "base/lock_guard.h"
#include "link/peer_process.h"

namespace ringbolt::link {

ConnectedPeer::ConnectedPeer(uint64_t id, uint32_t slot, pid_t pid, base::UniqueFd process,
                             std::shared_ptr<PeerSocket> socket)
    : id_(id), slot_(slot), pid_(pid), process_(std::move(process)), socket_(std::move(socket)) {}

bool ConnectedPeer::is_alive() const {
  pollfd exit{process_.get(), POLLIN, 0};
  return !is_gone() && (!process_.is_open() || poll(&exit, 1, 0) == 0);
}

bool ConnectedPeer::is_stopped() const { return pid_ > 0 && !is_gone() && is_process_stopped(pid_); }

void ConnectedPeer::ring() {
  if (is_ready() && !is_gone()) {
    const uint64_t one = 1;
    // A full counter is fine: the bell rings already.
    (void)!write(bell_.get(), &one, sizeof one);
  }
}

bool ConnectedPeer::send(const Message& message, std::span<const int> descriptors) {
  RINGBOLT_ASSERT(descriptor_count(message) == descriptors.size());
  const EncodedMessage encoded(message);
  if (is_gone()) {
    return false;
  }
  const base::LockGuard lock(mutex_);
  return socket_ != nullptr && socket_->send(encoded.bytes(), descriptors);
}

void ConnectedPeer::become_ready(Introduction introduction) {
  RINGBOLT_ASSERT(!is_ready());
  const Hello& hello = introduction.hello;
  bell_ = std::move(introduction.bell);
  region_table_ = std::move(introduction.region_table);
  wake_table_ = std::move(introduction.wake_table);
  memory_is_reachable_.store(is_memory_reachable(pid_, hello.nonce_address, hello.nonce), std::memory_order_release);
  incarnation_.store(hello.incarnation, std::memory_order_release);
  is_ready_.store(true, std::memory_order_release);
}

void ConnectedPeer::say_bye(uint64_t deadline_ns) {
  const EncodedMessage encoded{Message(Bye{})};
  const base::LockGuard lock(mutex_);
  if (socket_ != nullptr && socket_->send(encoded.bytes(), {})) {
    socket_->flush_until(deadline_ns);
  }
}

void ConnectedPeer::end() {
  std::shared_ptr<PeerSocket> socket;
  {
    const base::LockGuard lock(mutex_);
    socket = std::exchange(socket_, nullptr);
  }
  is_gone_.store(true, std::memory_order_release);
  if (socket) {
    socket->end();
  }
}

void ConnectedPeer::abandon_after_fork() {
  is_gone_.store(true, std::memory_order_release);
  if (socket_) {
    socket_->abandon_after_fork();
  }
  process_.reset();
  bell_.reset();
  region_table_.reset();
  wake_table_.reset();
}

}  // namespace ringbolt::link
