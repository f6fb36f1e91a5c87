#include "bridge/connection.h"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"

namespace ringbolt::tools::bridge {
namespace {

// Its connect(2) answers EAGAIN at once, and no descriptor tells when it would not (unix(7)).
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

/// libuv's errors are negative errnos.
void check_uv(int answer, const char* call) {
  if (answer < 0) {
    throw base::Error(-answer, call, "the event loop", "look at the limit of open files (ulimit -n)");
  }
}

uv_handle_t* handle_of(void* handle) { return static_cast<uv_handle_t*>(handle); }

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
  // An event that was told together with the one that ended it.
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
        // The order: nothing may tell of this any more when its owner hears of the end.
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

Loop::Loop() { check_uv(uv_loop_init(&loop_), "uv_loop_init"); }

Loop::~Loop() {
  uv_run(&loop_, UV_RUN_NOWAIT);  // what was closed is told so, and is freed
  uv_loop_close(&loop_);
}

struct Watch::Handle {
  uv_poll_t poll{};
};

Watch::Watch(Loop& loop, int fd, Listening& listening) : handle_(new Handle) {
  if (const int error = uv_poll_init(loop.get(), &handle_->poll, fd); error < 0) {
    delete handle_;  // it was not begun
    check_uv(error, "uv_poll_init");
  }
  handle_->poll.data = &listening;
}

Watch::~Watch() {
  // uv_close() stops it at once; the memory must stay until the callback (libuv's uv_close()).
  uv_close(handle_of(&handle_->poll), [](uv_handle_t* closed) { delete reinterpret_cast<Handle*>(closed); });
}

void Watch::want(bool readable, bool writable) {
  const int wanted = (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0);
  if (wanted == wanted_) {
    return;
  }
  wanted_ = wanted;
  if (wanted == 0) {
    uv_poll_stop(&handle_->poll);
    return;
  }
  uv_poll_start(&handle_->poll, wanted,
                [](uv_poll_t* poll, int, int) { static_cast<Listening*>(poll->data)->on_event(); });
}

struct Deadlines::Handle {
  uv_timer_t timer{};
};

Deadlines::Deadlines(Loop& loop) : handle_(new Handle) {
  uv_timer_init(loop.get(), &handle_->timer);
  handle_->timer.data = this;
}

Deadlines::~Deadlines() {
  uv_close(handle_of(&handle_->timer), [](uv_handle_t* closed) { delete reinterpret_cast<Handle*>(closed); });
}

void Deadlines::move(Listening& listening, uint64_t before_ns, uint64_t at_ns) {
  if (before_ns == at_ns) {
    return;
  }
  if (before_ns != 0) {
    all_.erase({before_ns, &listening});
  }
  if (at_ns != 0) {
    all_.emplace(at_ns, &listening);
    set_timer();
  }
}

/// A timer that fires too early costs a look; one for each byte that moves a deadline would cost more.
void Deadlines::set_timer() {
  if (all_.empty() || (set_for_ns_ != 0 && set_for_ns_ <= all_.begin()->first)) {
    return;
  }
  constexpr uint64_t kNsInMs = 1'000'000;
  set_for_ns_ = all_.begin()->first;
  const uint64_t now_ns = base::now_ns();
  const uint64_t wait_ns = set_for_ns_ - std::min(now_ns, set_for_ns_);
  uv_update_time(handle_->timer.loop);
  uv_timer_start(
      &handle_->timer, [](uv_timer_t* timer) { static_cast<Deadlines*>(timer->data)->fire(); },
      (wait_ns + kNsInMs - 1) / kNsInMs, 0);
}

void Deadlines::fire() {
  set_for_ns_ = 0;
  const uint64_t now_ns = base::now_ns();
  while (!all_.empty() && all_.begin()->first <= now_ns) {
    Listening* const listening = all_.begin()->second;
    // First: what is told may move it anew, or end it.
    all_.erase(all_.begin());
    listening->on_event();
  }
  set_timer();
}

struct Calls::Handles {
  uv_signal_t term{}, interrupt{};
  uv_async_t call{};
  uv_prepare_t prepare{};
  std::function<void(int)> on_signal;
  std::function<void()> on_call, before_sleep;
  int open = 4;
};

Calls::Calls(Loop& loop, std::function<void(int)> on_signal, std::function<void()> on_call,
             std::function<void()> before_sleep)
    : handles_(new Handles) {
  Handles& all = *handles_;
  all.on_signal = std::move(on_signal);
  all.on_call = std::move(on_call);
  all.before_sleep = std::move(before_sleep);
  all.term.data = all.interrupt.data = all.call.data = all.prepare.data = handles_;
  const auto told = [](uv_signal_t* signal, int number) { static_cast<Handles*>(signal->data)->on_signal(number); };
  uv_signal_init(loop.get(), &all.term);
  uv_signal_init(loop.get(), &all.interrupt);
  uv_prepare_init(loop.get(), &all.prepare);
  check_uv(uv_async_init(loop.get(), &all.call, [](uv_async_t* call) { static_cast<Handles*>(call->data)->on_call(); }),
           "uv_async_init");
  check_uv(uv_signal_start(&all.term, told, SIGTERM), "uv_signal_start");
  check_uv(uv_signal_start(&all.interrupt, told, SIGINT), "uv_signal_start");
  uv_prepare_start(&all.prepare, [](uv_prepare_t* one) { static_cast<Handles*>(one->data)->before_sleep(); });
}

Calls::~Calls() {
  const auto closed = [](uv_handle_t* handle) {
    auto* const all = static_cast<Handles*>(handle->data);
    if (--all->open == 0) {
      delete all;
    }
  };
  for (void* handle : {static_cast<void*>(&handles_->term), static_cast<void*>(&handles_->interrupt),
                       static_cast<void*>(&handles_->call), static_cast<void*>(&handles_->prepare)}) {
    uv_close(handle_of(handle), closed);
  }
}

void Calls::call() { uv_async_send(&handles_->call); }

}  // namespace ringbolt::tools::bridge
