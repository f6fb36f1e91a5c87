#include <sys/mman.h>
#include <sys/socket.h>

#include "base/lock_guard.h"
#include "rsocket/piece_size.h"
#include "rsocket/stream.h"

// Hot path: no allocation per message.

namespace ringbolt::rsocket {

template <class CanSend, class SendOne>
base::Result<size_t> Stream::send_all(IoCursor& from, int flags, CanSend can_send, SendOne send_one) {
  if (!is_nonblocking(flags)) {
    sending_.lock();
  } else if (!sending_.try_lock()) {
    return base::fail(EAGAIN);
  }
  // A call that does not block must not wait for one that does.
  const base::LockGuard sending(sending_, base::kAdoptLock);
  const base::LockGuard lock(lock_);
  const Deadline deadline = deadline_of(options_.send_timeout, flags);
  auto status = await_connected(deadline);
  if (status && mappings_.news() != nullptr) {
    status = send_mappings(deadline);
  }
  const size_t total = from.left();
  PieceSize at_most;
  while (status && from.left() > 0) {
    const size_t wanted = std::min<size_t>(from.left(), at_most.bytes());
    if (!base::call_locked(can_send, wanted)) {
      status = wait(deadline, [&]() RINGBOLT_REQUIRES(lock_) { return can_send(wanted) || objection_to_send() != 0; });
      if (!status) {
        break;
      }
    }
    if (objection_to_send() != 0) {
      status = base::fail(state_.report(objection_to_send()));
      break;
    }
    // write_mapped() alone: the peer has no mapping there.
    if (base::call_locked(send_one, at_most.bytes()) == 0) {
      status = base::fail(EINVAL);
      break;
    }
    at_most.grow();
  }
  const size_t sent = total - from.left();
  if (!status && sent == 0) {
    return base::fail(status.error().value);
  }
  return sent;
}

base::Result<size_t> Stream::send(IoCursor from, int flags, const Address* to) {
  if (to != nullptr) {
    return base::fail(EISCONN);
  }
  if ((flags & MSG_OOB) != 0) {
    return base::fail(EOPNOTSUPP);
  }
  return send_all(
      from, flags, [this](size_t wanted) RINGBOLT_REQUIRES(lock_) { return connection_->can_send(wanted); },
      [&](uint32_t at_most) RINGBOLT_REQUIRES(lock_) { return connection_->send(from, at_most, lock_); });
}

base::Result<size_t> Stream::write_mapped(IoCursor from, off_t offset, int flags) {
  auto at = static_cast<uint64_t>(offset);
  return send_all(
      from, flags, [this](size_t wanted) RINGBOLT_REQUIRES(lock_) { return connection_->can_send_direct(wanted); },
      [&](uint32_t at_most) RINGBOLT_REQUIRES(lock_) {
        const uint32_t sent = connection_->send_direct(from, at, at_most, lock_);
        at += sent;
        return sent;
      });
}

base::Result<size_t> Stream::receive(IoCursor to, int flags, Address* from) {
  if ((flags & MSG_OOB) != 0) {
    return base::fail(EOPNOTSUPP);
  }
  if (!is_nonblocking(flags)) {
    receiving_.lock();
  } else if (!receiving_.try_lock()) {
    return base::fail(EAGAIN);
  }
  const base::LockGuard receiving(receiving_, base::kAdoptLock);
  const base::LockGuard lock(lock_);
  const Deadline deadline = deadline_of(options_.receive_timeout, flags);
  auto status = await_connected(deadline);
  const bool is_peek = (flags & MSG_PEEK) != 0;
  const size_t total = to.left();
  const auto is_over = [this]() RINGBOLT_REQUIRES(lock_) { return state_.is_over() || !directions_.may_read(); };
  while (status && to.left() > 0) {
    if (connection_->readable() == 0) {
      status = wait(deadline, [&]() RINGBOLT_REQUIRES(lock_) { return connection_->readable() > 0 || is_over(); });
      if (!status) {
        break;
      }
    }
    if (connection_->readable() == 0) {
      status = state_.is(Phase::failed) ? base::fail(state_.report(state_.error())) : Status{};
      break;
    }
    connection_->receive(to, is_peek, lock_);
    if (is_peek || (flags & MSG_WAITALL) == 0) {
      break;
    }
  }
  const size_t received = total - to.left();
  if (!status && received == 0) {
    return base::fail(status.error().value);
  }
  if (from != nullptr) {
    *from = peer_;
  }
  return received;
}

Status Stream::send_mappings(const Deadline& deadline) {
  while (mappings_.news() != nullptr) {
    const auto status = wait(deadline, [this]() RINGBOLT_REQUIRES(lock_) {
      return connection_->can_send_mapping() || objection_to_send() != 0;
    });
    if (!status) {
      return status;
    }
    if (objection_to_send() != 0) {
      return base::fail(state_.report(objection_to_send()));
    }
    // It may have been unmapped while the lock was given up.
    if (const Mappings::News* news = mappings_.news()) {
      connection_->send_mapping(news->index, news->offset, news->block);
      mappings_.told();
    }
  }
  return {};
}

base::Result<off_t> Stream::map(void* memory, size_t bytes, int protection, off_t offset) {
  if ((protection & ~PROT_WRITE) != 0 || bytes == 0) {
    return base::fail(EINVAL);
  }
  const base::LockGuard lock(lock_);
  if (!has_data_part()) {
    const auto status = await_connected(deadline_of(options_.send_timeout, 0));
    if (!status) {
      return base::fail(status.error().value);
    }
  }
  const bool is_remote = (protection & PROT_WRITE) != 0;
  const off_t at = offset == -1 ? static_cast<off_t>(reinterpret_cast<uintptr_t>(memory)) : offset;
  const int error =
      mappings_.add(link_.id()->pd, memory, bytes, is_remote, static_cast<uint64_t>(at), connection_->peer_mappings());
  if (error != 0) {
    return base::fail(error);
  }
  return at;
}

Status Stream::unmap(void* memory, size_t bytes) {
  const base::LockGuard lock(lock_);
  return mappings_.remove(memory, bytes) ? Status{} : base::fail(EINVAL);
}

}  // namespace ringbolt::rsocket
