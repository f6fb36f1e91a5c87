// Hot path, but for building and ending it: reading and writing.
#include "stream/stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "stream/end_words.h"
#include "stream/stream_wait.h"

namespace ringbolt::stream {
namespace {

void check(const StreamSettings& settings) {
  const auto refuse = [](const char* what, uint64_t given, const char* remedy) {
    throw base::Error(EINVAL, "make a stream", std::string(what) + " of " + std::to_string(given), remedy);
  };
  if (settings.receive_bytes < kLeastReceiveBytes || settings.receive_bytes > kMostReceiveBytes) {
    refuse("receive_bytes", settings.receive_bytes, "take 4096 to 16777216");
  }
  if (settings.receive_buffers == 0 || settings.receive_buffers > kMostReceiveBuffers) {
    refuse("receive_buffers", settings.receive_buffers, "take 1 to 16");
  }
  const uint64_t bytes = uint64_t{settings.receive_bytes} * settings.receive_buffers;
  if (!settings.receive_memory.empty() && settings.receive_memory.size() < bytes) {
    refuse("receive_memory", settings.receive_memory.size(), "give receive_bytes for each of the receive_buffers");
  }
  if (settings.max_send_bytes == 0) {
    refuse("max_send_bytes", 0, "take what peers may have for a receive buffer, such as 16777216");
  }
}

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
      channel_(service_->manager()) {
  opening_until_ns_ = base::now_ns() + uint64_t{settings.connect_timeout_ms} * 1'000'000;
}

std::unique_ptr<Stream> Stream::connect(std::shared_ptr<Service> service, std::vector<Address> targets,
                                        std::string name, const StreamSettings& settings) {
  check(settings);
  std::unique_ptr<Stream> made(new Stream(std::move(service), settings, Role::client, std::move(name)));
  {
    const base::LockGuard lock(made->mutex_);
    made->targets_ = std::move(targets);
    made->begin_attempt();
  }
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
  made->tally_->streams.fetch_add(1, std::memory_order_relaxed);
  made->tally_->accepted.fetch_add(1, std::memory_order_relaxed);
  made->keeper_key_ = made->service_->keeper().add(*made);
  return made;
}

Stream::~Stream() {
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
  has_polled_armed_ = has_polled_armed_ || (is_any && is_armed_);
  was_idle_ = !is_any;
  idle_looks_ = is_any ? 0 : idle_looks_ + 1;
  const bool is_time = was_idle_ && idle_looks_ % kLookAroundEvery == 0;
  if (phase_ != Phase::connected || is_time || !connection_->is_alive() || connection_->is_broken()) {
    look_around();
  }
}

/// What there is besides data: time that has passed, and the connection manager.
void Stream::look_around() {
  if (is_over()) {
    return;
  }
  const uint64_t now_ns = base::now_ns();
  if (connection_) {
    connection_->tick(now_ns);
  }
  look_at_cm_events(now_ns, was_idle_);
  note_end();
}

void Stream::note_end() {
  if (!connection_ || connection_->is_alive() || is_over()) {
    return;
  }
  std::string what;
  if (connection_->failure() != IBV_WC_SUCCESS) {
    const auto status_str = service_->manager().verbs().calls().wc_status_str;
    what = status_str == nullptr ? std::to_string(connection_->failure()) : status_str(connection_->failure());
  } else if (connection_->post_error() != 0) {
    what = base::reason_of(connection_->post_error());
  }
  end(connection_->protocol().reason(), what);
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
  return error != 0 || !is_over() ? error : errno_of(reason_);
}

base::Result<size_t> Stream::end_of_reading() const {
  if (reason_ == CloseReason::peer_closed) {
    return size_t{0};
  }
  return base::fail(errno_of(reason_));
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
      return error != 0 ? base::fail(error) : end_of_reading();
    }
  }
  size_t done = 0;
  for (const auto& piece : connection_->peek()) {
    const size_t count = std::min(piece.size(), into.size() - done);
    std::copy_n(piece.begin(), count, into.begin() + static_cast<std::ptrdiff_t>(done));
    done += count;
  }
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
      const auto end = error != 0 ? base::Result<size_t>(base::fail(error)) : end_of_reading();
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
  int error = is_over() ? errno_of(reason_) : 0;
  while (done < total && error == 0) {
    if (connection_ && connection_->can_write()) {
      done += connection_->write(pieces, done);
      note_end();
    }
    if (done < total) {
      error = wait(deadline, [this]() RINGBOLT_REQUIRES(mutex_) {
        return is_over() || (connection_ && connection_->can_write());
      });
      error = error == 0 && is_over() ? errno_of(reason_) : error;
    }
  }
  asks_for_room_ = done < total && !is_over();
  settle();
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
    return is_over() ? errno_of(reason_) : 0;
  }
  if (!connection_ || !connection_->send(filled)) {
    return EINVAL;
  }
  note_end();
  settle();
  return is_over() ? errno_of(reason_) : 0;
}

bool Stream::is_drained() {
  const base::LockGuard lock(mutex_);
  if (!connection_) {
    return true;
  }
  look();
  const bool is_done = is_over() || connection_->is_drained();
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
    return is_over() ? errno_of(reason_) : ENOTCONN;
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
    return base::fail(errno_of(reason_));
  }
  const auto key = connection_ ? connection_->endpoint().key_of(data) : std::nullopt;
  if (!key) {
    return base::fail(EINVAL);
  }
  size_t done = 0;
  int error = 0;
  while (done < data.size() && error == 0) {
    done += connection_->write_registered(data.subspan(done), *key);
    note_end();
    if (done < data.size()) {
      error = wait(deadline, [this]() RINGBOLT_REQUIRES(mutex_) { return is_over() || connection_->can_write(); });
      error = error == 0 && is_over() ? errno_of(reason_) : error;
    }
  }
  asks_for_room_ = done < data.size() && !is_over();
  settle();
  return done > 0 || error == 0 ? base::Result<size_t>(done) : base::fail(error);
}

int Stream::await_sent(const Deadline& deadline) {
  const base::LockGuard lock(mutex_);
  if (!connection_) {
    return 0;
  }
  const int error = wait(deadline, [this]() RINGBOLT_REQUIRES(mutex_) { return is_over() || connection_->is_sent(); });
  settle();
  return error != 0 || connection_->is_sent() ? error : errno_of(reason_);
}

int Stream::fd() {
  const base::LockGuard lock(mutex_);
  if (!readiness_) {
    Readiness made;
    made.watch(channel_.fd());
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
  if (error == ETIMEDOUT) {
    return base::fail(error);
  }
  return now & (events | kEnded | kConnected);
}

int Stream::close(const Deadline& deadline) {
  const base::LockGuard lock(mutex_);
  int error = is_over() || !connection_ ? 0 : wait(deadline, [this]() RINGBOLT_REQUIRES(mutex_) {
    return is_over() || connection_->is_drained();
  });
  note_end();  // a fence that the device did not take
  const bool is_ordinary = reason_ == CloseReason::peer_closed || reason_ == CloseReason::local;
  if (error == 0 && is_over() && (!is_ordinary || bytes_unconfirmed() > 0)) {
    error = errno_of(reason_);
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
  return reason_;
}

std::string Stream::words() const {
  const base::LockGuard lock(mutex_);
  return words_;
}

std::string Stream::device() const {
  const base::LockGuard lock(mutex_);
  return connection_ ? connection_->endpoint().device() : std::string();
}

Address Stream::peer() const {
  const base::LockGuard lock(mutex_);
  return peer_;
}

Statistics Stream::statistics() const {
  const base::LockGuard lock(mutex_);
  return connection_ ? connection_->protocol().statistics() : Statistics{};
}

}  // namespace ringbolt::stream
