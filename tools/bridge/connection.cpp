#include "bridge/connection.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"

namespace ringbolt::tools::bridge {
namespace {

constexpr uint64_t kRetryNs = 10'000'000;  // a UNIX listener that has too many who wait

bool is_failure(stream::CloseReason reason) {
  return reason != stream::CloseReason::local && reason != stream::CloseReason::peer_closed;
}

std::string connect_reason(int error) {
  switch (error) {
    case ECONNREFUSED:
    case ENOENT:
      return "target-refused";
    case ETIMEDOUT:
    case EAGAIN:
      return "target-timeout";
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return "no-resources";
    default:
      return "target-unreachable";
  }
}

}  // namespace

Connection::Connection(Surroundings& around, ConnectionOwner& owner, std::unique_ptr<stream::Stream> stream,
                       base::UniqueFd socket)
    : around_(around), owner_(owner), stream_(std::move(stream)), fabric_(*stream_) {
  stream_watch_.emplace(around_.loop, stream_->fd(), *this);
  begin(std::move(socket));
  begin_relay();
}

Connection::Connection(Surroundings& around, ConnectionOwner& owner, std::unique_ptr<stream::Stream> stream,
                       const SocketTarget& target)
    : around_(around), owner_(owner), stream_(std::move(stream)), fabric_(*stream_), target_(&target) {
  stream_watch_.emplace(around_.loop, stream_->fd(), *this);
  connect_until_ns_ = base::now_ns() + around_.connect_timeout_ns;
}

Connection::~Connection() {
  set_deadline(0);
  if (!has_ended_) {  // cut off: whoever is connected is not to take it for an end
    stream_watch_.reset();
    socket_watch_.reset();
    if (socket_) {
      socket_->close(true);
    }
  }
}

void Connection::on_event() {
  if (has_ended_ || (!relay_ && !open_socket())) {
    return;
  }
  if (relay_->turn(base::now_ns())) {
    apply(relay_->wants());
  } else {
    end_of_relay();
  }
}

void Connection::stop(std::string_view reason) {
  if (relay_) {
    relay_->stop(reason);
    on_event();
  } else if (!has_ended_) {
    end(std::string(reason), {});
  }
}

void Connection::begin(base::UniqueFd socket) {
  socket_.emplace(std::move(socket));
  socket_watch_.emplace(around_.loop, socket_->fd(), *this);
}

void Connection::begin_relay() { relay_.emplace(fabric_, *socket_, around_.relay); }

/// Whether it is connected now; else it is being connected, or the connection has ended.
bool Connection::open_socket() {
  const uint64_t now_ns = base::now_ns();
  while (true) {
    if (socket_) {
      const auto error = socket_->connected();
      if (!error) {
        break;
      }
      if (*error == 0) {
        begin_relay();
        set_deadline(0);
        return true;
      }
      connect_error_ = *error;
      socket_watch_.reset();
      socket_.reset();
      ++next_target_;
    }
    if (!try_target()) {
      break;
    }
  }
  if (!has_ended_ && now_ns >= connect_until_ns_) {
    connect_error_ = ETIMEDOUT;
    end(connect_reason(ETIMEDOUT), fmt::format("not connected within {} ms", around_.connect_timeout_ns / 1'000'000));
  }
  if (!has_ended_) {
    if (socket_watch_) {
      socket_watch_->want(false, true);
    }
    set_deadline(socket_ ? connect_until_ns_ : std::min(connect_until_ns_, now_ns + kRetryNs));
  }
  return false;
}

/// Begins to connect. False: not now, or never: then the connection has ended.
bool Connection::try_target() {
  const bool is_unix = target_->place.kind == Place::Kind::unix_socket;
  const size_t n_targets = is_unix ? 1 : target_->addresses.size();
  for (; next_target_ < n_targets; ++next_target_) {
    auto made = is_unix ? connect_unix(target_->place.path) : connect_tcp(target_->addresses[next_target_]);
    if (made) {
      begin(std::move(*made));
      return true;
    }
    connect_error_ = made.error().value;
    if (is_unix && connect_error_ == EAGAIN) {
      return false;
    }
  }
  end(connect_reason(connect_error_), base::reason_of(connect_error_));
  return false;
}

void Connection::apply(const Wants& wants) {
  const uint32_t events = (wants.fabric_readable ? uint32_t{stream::kReadable} : 0U) |
                          (wants.fabric_writable ? uint32_t{stream::kWritable} : 0U) |
                          (wants.fabric_drained ? uint32_t{stream::kDrained} : 0U);
  if (events != events_) {
    stream_->want(events);
    events_ = events;
  }
  // A stream that has ended is always readable: who wants nothing of it must not be told.
  stream_watch_->want(events != 0, false);
  socket_watch_->want(wants.socket_readable, wants.socket_writable);
  set_deadline(wants.deadline_ns);
}

void Connection::end_of_relay() {
  const stream::CloseReason reason = stream_->reason();
  if (!relay_->reason().empty()) {
    const bool is_odd = relay_->reason() == "flush-timeout" || relay_->reason() == "socket-stuck";
    end(std::string(relay_->reason()), is_odd ? "what was left could not be delivered in time" : "");
    return;
  }
  const std::string words = stream_->words();
  end(std::string(stream::name_of(reason)), is_failure(reason) ? words : "");
}

void Connection::end(const std::string& reason, const std::string& problem) {
  has_ended_ = true;
  set_deadline(0);
  stream_watch_.reset();
  socket_watch_.reset();
  if (socket_) {
    socket_->close(relay_ && relay_->is_abrupt());
  }
  owner_.on_ended(*this, reason, problem);
}

void Connection::set_deadline(uint64_t at_ns) {
  around_.deadlines.move(*this, deadline_ns_, at_ns);
  deadline_ns_ = at_ns;
}

}  // namespace ringbolt::tools::bridge
