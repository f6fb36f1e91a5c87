// Hot path, but for building and ending it: reading and writing.
#include "stream/stream.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "stream/stream_wait.h"

namespace ringbolt::stream {
namespace {

uint64_t total_of(std::span<const iovec> pieces) {
  uint64_t total = 0;
  for (const iovec& piece : pieces) {
    total += piece.iov_len;
  }
  return total;
}

}  // namespace

Stream::Stream(std::shared_ptr<Service> service, const StreamSettings& settings, Role role, std::string name)
    : service_(std::move(service)),
      settings_(settings),
      role_(role),
      name_(std::move(name)),
      cm_(service_->manager()),
      cm_watch_(base::now_ns() + uint64_t{settings.connect_timeout_ms} * 1'000'000) {}

std::unique_ptr<Stream> Stream::connect(std::shared_ptr<Service> service, std::vector<Address> targets,
                                        std::string name, const StreamSettings& settings) {
  check(settings);
  std::unique_ptr<Stream> made(new Stream(std::move(service), settings, Role::client, std::move(name)));
  {
    const base::LockGuard lock(made->mutex_);
    made->cm_.set_targets(std::move(targets));
    made->begin_attempt();
  }
  // Last, and without the lock: from here on the keeper's thread looks at it, too.
  made->keeper_key_ = made->service_->keeper().add(*made);
  return made;
}

std::unique_ptr<Stream> Stream::accept(std::shared_ptr<Service> service, verbs::OwnedCm<rdma_cm_id> request,
                                       std::shared_ptr<ListenerTally> tally, const StreamSettings& settings) {
  std::unique_ptr<Stream> made(new Stream(std::move(service), settings, Role::server, {}));
  {
    const base::LockGuard lock(made->mutex_);
    made->answer(std::move(request));
  }
  made->tally_ = std::move(tally);
  // Counts that nothing is ordered by.
  made->tally_->streams.fetch_add(1, std::memory_order_relaxed);
  made->tally_->accepted.fetch_add(1, std::memory_order_relaxed);
  made->keeper_key_ = made->service_->keeper().add(*made);
  return made;
}

Stream::~Stream() {
  // First, and without the lock: from here on the keeper's thread is not in it.
  if (keeper_key_ != 0) {
    service_->keeper().remove(keeper_key_);
  }
  {
    const base::LockGuard lock(mutex_);
    if (keeper_key_ != 0) {  // else it was never one
      end(CloseReason::local, {});
    }
  }
  if (tally_) {
    tally_->streams.fetch_sub(1, std::memory_order_relaxed);
  }
}

void Stream::look() {
  const bool is_any = connection_ && !is_over() && connection_->progress();
  completions_.looked(is_any);
  if (phase_ != Phase::connected || completions_.is_time_to_look_around() || !connection_->is_alive() ||
      connection_->is_broken()) {
    look_around();
  }
}

bool Stream::is_there(uint32_t events) const {
  return (events_now() & (events | (is_over() ? uint32_t{kEnded} : 0U))) != 0;
}

uint32_t Stream::events_now() const {
  uint32_t events = is_over() ? uint32_t{kEnded} | kReadable | kWritable : 0U;
  if (connection_) {
    events |= connection_->unread() > 0 ? uint32_t{kReadable} : 0U;
    events |= connection_->can_write() ? uint32_t{kWritable} : 0U;
    events |= connection_->has_written_all() ? uint32_t{kDrained} : 0U;
  }
  return phase_ == Phase::connected ? events | kConnected : events;
}

int Stream::await_connected(const Deadline& deadline) {
  const base::LockGuard lock(mutex_);
  const int error =
      wait(deadline, [this]() RINGBOLT_REQUIRES(mutex_) { return phase_ == Phase::connected || is_over(); });
  settle();
  return error != 0 || !is_over() ? error : end_.error();
}

base::Result<size_t> Stream::read(std::span<std::byte> into, const Deadline& deadline) {
  const base::LockGuard lock(mutex_);
  if (into.empty()) {
    return size_t{0};
  }
  if (unread() == 0) {
    const int error = wait(deadline, [this]() RINGBOLT_REQUIRES(mutex_) { return unread() > 0 || is_over(); });
    if (unread() == 0) {
      settle();
      return error != 0 ? base::fail(error) : end_.answer_to_read();
    }
  }
  size_t done = 0;
  for (const auto& piece : connection_->peek()) {
    const size_t count = std::min(piece.size(), into.size() - done);
    std::copy_n(piece.begin(), count, into.begin() + static_cast<std::ptrdiff_t>(done));
    done += count;
  }
  // Under the same hold of the lock as peek(): another reader can't take the same bytes.
  connection_->consume(static_cast<uint32_t>(done));
  settle();
  return done;
}

base::Result<std::array<std::span<const std::byte>, 2>> Stream::peek(const Deadline& deadline) {
  const base::LockGuard lock(mutex_);
  if (unread() == 0) {
    const int error = wait(deadline, [this]() RINGBOLT_REQUIRES(mutex_) { return unread() > 0 || is_over(); });
    if (unread() == 0) {
      settle();
      const auto end = error != 0 ? base::Result<size_t>(base::fail(error)) : end_.answer_to_read();
      return end ? base::Result<std::array<std::span<const std::byte>, 2>>() : base::fail(end.error().value);
    }
  }
  settle();
  return connection_->peek();
}

int Stream::consume(size_t count) {
  const base::LockGuard lock(mutex_);
  if (count > unread()) {
    return EINVAL;
  }
  if (count > 0) {
    connection_->consume(static_cast<uint32_t>(count));
    settle();
  }
  return 0;
}

base::Result<size_t> Stream::write(std::span<const iovec> pieces, const Deadline& deadline) {
  const uint64_t total = total_of(pieces);
  const base::LockGuard lock(mutex_);
  asks_for_room_ = false;
  uint64_t done = 0;
  int error = is_over() ? end_.error() : 0;
  while (done < total && error == 0) {
    if (connection_ && connection_->can_write()) {
      done += connection_->write(pieces, done);
      note_end();
    }
    if (done < total) {
      error = wait(deadline, [this]() RINGBOLT_REQUIRES(mutex_) {
        return is_over() || (connection_ && connection_->can_write());
      });
      error = error == 0 && is_over() ? end_.error() : error;
    }
  }
  asks_for_room_ = done < total && !is_over();
  settle();
  // An error after some bytes is what the next call answers.
  return done > 0 || error == 0 ? base::Result<size_t>(done) : base::fail(error);
}

std::span<std::byte> Stream::room() {
  const base::LockGuard lock(mutex_);
  if (!connection_ || !connection_->can_write()) {
    look();
  }
  const auto found = connection_ && !is_over() ? connection_->room() : std::span<std::byte>();
  settle();
  return found;
}

int Stream::send(std::span<const std::byte> filled) {
  const base::LockGuard lock(mutex_);
  if (filled.empty() || is_over()) {
    return is_over() ? end_.error() : 0;
  }
  if (!connection_ || !connection_->send(filled)) {
    return EINVAL;
  }
  note_end();
  settle();
  return is_over() ? end_.error() : 0;
}

bool Stream::is_drained() {
  const base::LockGuard lock(mutex_);
  if (!connection_) {
    return true;
  }
  look();  // which may have given up a failed attempt, and the connection with it
  const bool is_done = is_over() || !connection_ || connection_->is_drained();
  note_end();
  settle();
  return is_done;
}

int Stream::register_memory(std::span<std::byte> memory) {
  const base::LockGuard lock(mutex_);
  if (memory.empty()) {
    return EINVAL;
  }
  if (!connection_) {
    return is_over() ? end_.error() : ENOTCONN;
  }
  try {
    connection_->endpoint().register_memory(memory);
  } catch (const base::Error& failure) {
    return failure.errno_value();
  }
  return 0;
}

int Stream::unregister_memory(const std::byte* begin) {
  const base::LockGuard lock(mutex_);
  if (!connection_) {
    return EINVAL;
  }
  look();
  if (!connection_) {  // a failed attempt's: its registrations went with it
    return EINVAL;
  }
  // Of any registration: which one a write was from is not kept.
  if (!is_over() && !connection_->is_sent()) {
    return EBUSY;
  }
  return connection_->endpoint().unregister_memory(begin) ? 0 : EINVAL;
}

base::Result<size_t> Stream::write_registered(std::span<const std::byte> data, const Deadline& deadline) {
  const base::LockGuard lock(mutex_);
  asks_for_room_ = false;
  if (data.empty()) {
    return size_t{0};
  }
  if (is_over()) {
    return base::fail(end_.error());
  }
  size_t done = 0;
  int error = 0;
  bool is_registered = true;
  while (done < data.size() && error == 0) {
    // Asked each time: the wait may have ended an attempt, and with its connection the registration.
    const auto key = connection_ ? connection_->endpoint().key_of(data) : std::nullopt;
    is_registered = key.has_value();
    if (!is_registered) {
      error = EINVAL;
      break;
    }
    done += connection_->write_registered(data.subspan(done), *key);
    note_end();
    if (done < data.size()) {
      error = wait(deadline, [this]() RINGBOLT_REQUIRES(mutex_) {
        return is_over() || !connection_ || connection_->can_write();
      });
      error = error == 0 && is_over() ? end_.error() : error;
    }
  }
  asks_for_room_ = done < data.size() && is_registered && !is_over();
  settle();
  return done > 0 || error == 0 ? base::Result<size_t>(done) : base::fail(error);
}

int Stream::await_sent(const Deadline& deadline) {
  const base::LockGuard lock(mutex_);
  if (!connection_) {
    return 0;
  }
  // Without a connection, which a failed attempt takes with it, nothing was written.
  const auto is_sent = [this]() RINGBOLT_REQUIRES(mutex_) { return !connection_ || connection_->is_sent(); };
  const int error = wait(deadline, [&]() RINGBOLT_REQUIRES(mutex_) { return is_over() || is_sent(); });
  settle();
  return error != 0 || is_sent() ? error : end_.error();
}

int Stream::fd() {
  const base::LockGuard lock(mutex_);
  if (!readiness_) {
    Readiness made;
    made.watch(cm_.fd());
    if (connection_) {
      made.watch(connection_->endpoint().channel_fd());
    }
    readiness_.emplace(std::move(made));
    look();
    settle();
  }
  return readiness_->fd();
}

void Stream::want(uint32_t events) {
  const base::LockGuard lock(mutex_);
  wanted_ = events;
  settle();
}

base::Result<uint32_t> Stream::await(uint32_t events, const Deadline& deadline) {
  const base::LockGuard lock(mutex_);
  const int error = wait(deadline, [&]() RINGBOLT_REQUIRES(mutex_) { return is_there(events); });
  const uint32_t now = events_now();
  if ((now & kWritable) != 0) {
    asks_for_room_ = false;  // it has been told
  }
  settle();
  // EAGAIN of a call that does not wait is no error: then nothing of what was asked for holds.
  if (error == ETIMEDOUT) {
    return base::fail(error);
  }
  return now & (events | kEnded | kConnected);
}

int Stream::close(const Deadline& deadline) {
  const base::LockGuard lock(mutex_);
  int error = is_over() || !connection_ ? 0 : wait(deadline, [this]() RINGBOLT_REQUIRES(mutex_) {
    return is_over() || !connection_ || connection_->is_drained();
  });
  note_end();  // a fence that the device did not take
  if (error == 0 && is_over() && (!end_.is_ordinary() || bytes_unconfirmed() > 0)) {
    error = end_.error();
  }
  end(CloseReason::local, {});
  settle();
  return error;
}

/// What arrives after the end is no more told: the device drops what was under way.
uint64_t Stream::bytes_unconfirmed() const {
  const Statistics seen = connection_ ? connection_->protocol().statistics() : Statistics{};
  return seen.bytes_sent - seen.bytes_arrived;
}

CloseReason Stream::reason() const {
  const base::LockGuard lock(mutex_);
  return end_.reason();
}

std::string Stream::words() const {
  const base::LockGuard lock(mutex_);
  return end_.words();
}

std::string Stream::device() const {
  const base::LockGuard lock(mutex_);
  return connection_ ? connection_->endpoint().device() : std::string();
}

Address Stream::peer() const {
  const base::LockGuard lock(mutex_);
  return cm_.peer();
}

Statistics Stream::statistics() const {
  const base::LockGuard lock(mutex_);
  return connection_ ? connection_->protocol().statistics() : Statistics{};
}

}  // namespace ringbolt::stream
