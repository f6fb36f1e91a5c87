#include "bridge/loop.h"

#include <csignal>

#include "base/clock.h"
#include "base/error.h"

namespace ringbolt::tools::bridge {
namespace {

/// libuv's errors are negative errnos.
void check_uv(int answer, const char* call) {
  if (answer < 0) {
    throw base::Error(-answer, call, "the event loop", "look at the limit of open files (ulimit -n)");
  }
}

uv_handle_t* handle_of(void* handle) { return static_cast<uv_handle_t*>(handle); }

}  // namespace

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
