#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "rsocket/blocking_socket.h"

namespace ringbolt::rsocket::test {

/// While it lives this thread's sleeps have no bound but their deadline: who is not woken misses that.
class SleepsUntilWoken {
 public:
  SleepsUntilWoken() { Sleeper::of_this_thread().set_longest_sleep_ns(UINT64_MAX); }
  ~SleepsUntilWoken() { Sleeper::of_this_thread().set_longest_sleep_ns(kMaxSleepNs); }
  SleepsUntilWoken(const SleepsUntilWoken&) = delete;
  SleepsUntilWoken& operator=(const SleepsUntilWoken&) = delete;
};
/// Of such a sleep, for the deadline: more than any machine needs, and less than CTest waits for.
inline constexpr int kPatienceMs = 20'000;

/// A socket without a connection: a counter of what has come in, and an event descriptor that may say so. What a test
/// wants to happen in the middle of a call, it does in `on_progress` or `on_arm`, under the socket's lock.
class FakeSocket : public BlockingSocket {
 public:
  explicit FakeSocket(int number = 1000) : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), number_(number) {}

  int descriptor() const override { return number_; }
  Status bind(const Address&) override { return {}; }
  Status connect(const Address&) override { return {}; }
  Status listen(int) override { return {}; }
  base::Result<std::shared_ptr<Socket>> accept() override { return base::fail(EOPNOTSUPP); }
  Status shut_down(int) override { return {}; }
  void close() override {}
  base::Result<size_t> send(IoCursor, int, const Address*) override { return base::fail(EOPNOTSUPP); }
  base::Result<size_t> receive(IoCursor, int, Address*) override { return base::fail(EOPNOTSUPP); }
  base::Result<Address> peer_name() override { return base::fail(ENOTCONN); }
  base::Result<Address> own_name() override { return base::fail(ENOTCONN); }
  Status set_option(int, int, const void*, socklen_t) override { return {}; }
  Status get_option(int, int, void*, socklen_t*) override { return {}; }

  /// Waits until so many have come in: 0, or an errno.
  int await(int wanted, const Deadline& deadline) {
    const base::LockGuard lock(lock_);
    return error_of(wait(deadline, [&] { return arrived >= wanted; }));
  }
  int await_through_signals(int wanted, const Deadline& deadline) {
    const base::LockGuard lock(lock_);
    return error_of(wait_through_signals(deadline, [&] { return arrived >= wanted; }));
  }
  /// One comes in, which another thread has taken off the descriptor.
  void arrive() {
    const base::LockGuard lock(lock_);
    ++arrived;
    wake_all();
  }
  /// One comes in, and its event shows.
  void arrive_with_event() {
    const base::LockGuard lock(lock_);
    ++arrived;
    raise();
  }
  /// Until somebody has begun to sleep on it: whoever takes the lock after that finds it among those to be rung.
  void await_sleeper() {
    while (!has_sleeper()) {
      std::this_thread::yield();
    }
  }
  void raise() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);
  }
  using BlockingSocket::deadline_of;
  using BlockingSocket::is_nonblocking;

  // Of the thread that holds the lock.
  int arrived = 0;
  short events = 0;  ///< that hold besides POLLIN for what has come in
  bool is_armed = true;
  int arms = 0;
  int sleeps = 0;
  std::function<void()> on_progress = [] {};
  std::function<void()> on_arm = [] {};

 private:
  bool has_sleeper() {
    const base::LockGuard lock(lock_);
    return begun_sleeps_ > sleeps;
  }
  static int error_of(const Status& status) { return status ? 0 : status.error().value; }
  void progress() override { on_progress(); }
  short events_now(short asked) const override {
    return static_cast<short>((events | (arrived > 0 ? POLLIN : 0)) & asked);
  }
  bool arm() override {
    if (is_armed) {
      return false;
    }
    is_armed = true;
    ++arms;
    on_arm();
    return true;
  }
  void add_waits(std::vector<pollfd>& waits) const override {
    ++begun_sleeps_;
    waits.push_back({event_.get(), POLLIN, 0});
  }
  void take_events() override {
    ++sleeps;
    uint64_t count = 0;
    if (::read(event_.get(), &count, sizeof count) == sizeof count) {
      is_armed = false;
    }
  }

  mutable int begun_sleeps_ = 0;  // under the lock, as `sleeps`, which counts their ends
  base::UniqueFd event_;
  const int number_;
};

}  // namespace ringbolt::rsocket::test
