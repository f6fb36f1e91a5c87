// Who moves chunks when: callers that wait, and a thread for the time when nobody does.
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "mesh/mesh.h"
#include "mesh/word.h"

namespace ringbolt::mesh {
namespace {

constexpr uint64_t kMicrosecond = 1'000;
constexpr uint64_t kMillisecond = 1'000'000;
/// A caller polls so long without anything arriving before it sleeps: longer than a peer needs to be woken.
constexpr uint64_t kPollNs = 200 * kMicrosecond;
/// A caller that has all it wants goes on for so long while chunks of its own wait for the peer's credits: the peer,
/// which works on those before, mostly gives them at once, and to wake the thread takes the core from whoever computes
/// on it.
constexpr uint64_t kFinishNs = 50 * kMicrosecond;
/// Sleeping callers look after deadlines; devices without events are polled so often.
constexpr uint64_t kNapNs = 20 * kMillisecond;
constexpr uint64_t kEventlessNapNs = 50 * kMicrosecond;
constexpr uint32_t kPollsPerYield = 32;
/// The same once giving the core away has let others run for so long: they may be who is waited for.
constexpr uint32_t kPollsPerYieldOnSharedCore = 4;
constexpr uint64_t kOthersRunNs = 3 * kMicrosecond;
/// Callers that come and go move chunks by themselves: so long after one has gone, the thread does not have itself
/// woken for every chunk, but looks from time to time.
constexpr uint64_t kQuietNs = 5 * kMillisecond;
constexpr uint64_t kQuietNapNs = kMillisecond / 2;
/// A caller that waits sees to heartbeats, unless it does not get to run.
constexpr uint64_t kWaitedNapNs = 20 * kMillisecond;
/// A rank that has relayed for others in one of so many calls is likely to be needed again.
constexpr uint64_t kRelayCalls = 16;
/// What connects a cable anew may take so long when this rank leaves.
constexpr uint64_t kReconnectionNs = 100 * kMillisecond;
/// A rank that leaves waits so long for others that don't.
constexpr uint64_t kLingerNs = 1'000 * kMillisecond;

}  // namespace

Mesh::~Mesh() {
  if (thread_.joinable()) {
    leave();
    is_ending_ = true;
    (void)eventfd_write(wake_.get(), 1);
    thread_.join();
  }
  watch_.wait_for_mending(kReconnectionNs);
}

/// What this rank has sent must arrive although it may have to be sent again, and others may need it as a relay for
/// what it does not wait for itself: so it stays until all others want to go, too, but not for long.
void Mesh::leave() {
  const uint64_t deadline_ns = base::now_ns() + kLingerNs;
  bool has_told = false;
  wait([&]() RINGBOLT_REQUIRES(lock) {
    const bool is_over = engine()->n_unacknowledged() == 0;
    if (is_over && !has_told) {
      has_told = true;
      (void)side_channel_.send(bootstrap::kEveryone, kLeavingMessage, {});
    }
    return (is_over && watch_.ranks().may_leave(rank())) || base::now_ns() >= deadline_ns;
  });
}

void Mesh::wait_locked(const std::function<bool()>& is_done, uint64_t now_ns) {
  // While somebody waits the thread leaves the chunks to them.
  n_waiting_.store(n_waiting_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // only under the lock
  now_ns = now_ns == 0 ? base::now_ns() : now_ns;
  uint64_t idle_since_ns = now_ns;
  for (uint32_t n_polls = 1, n_idle = 0; !is_done(); ++n_polls) {
    if (progress(now_ns)) {
      n_idle = 0;
    } else if (is_done()) {
      break;
    } else if (++n_idle % polls_per_yield_ == 0) {
      if (now_ns - idle_since_ns < kPollNs) {
        give_way();
      } else {
        const base::Unlocked unlocked(lock);
        // Whatever it was, the next round finds out.
        (void)sleep_until_something(kNapNs);
        n_polls = 0;
        now_ns = base::now_ns();
      }
    }
    if (n_polls % kPollsPerLook == 0) {
      now_ns = base::now_ns();
      idle_since_ns = n_idle < kPollsPerLook ? now_ns : idle_since_ns;
      if (engine() != nullptr && now_ns >= watch_.next_ns()) {
        watch(now_ns);  // the thread may not get the lock for as long as there is much to do
      }
    }
  }
  end_waiting(now_ns);
}

/// Others get the lock meanwhile, too: nothing that was read under it before is true any more.
void Mesh::give_way() {
  uint64_t away_ns = 0;
  {
    const base::Unlocked unlocked(lock);
    const uint64_t begin_ns = base::now_ns();
    sched_yield();
    away_ns = base::now_ns() - begin_ns;
  }
  polls_per_yield_ = away_ns > kOthersRunNs ? kPollsPerYieldOnSharedCore : kPollsPerYield;
}

void Mesh::end_waiting(uint64_t now_ns) {
  const bool has_left_queue = engine() != nullptr && !finish_sending();
  last_waited_ns_.store(now_ns, std::memory_order_relaxed);
  n_waiting_.store(n_waiting_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  if (engine() != nullptr) {
    leave_to_thread(has_left_queue);
  }
}

/// Whether nothing is left that waits for credits.
bool Mesh::finish_sending() {
  if (!engine()->has_queued()) {
    return true;
  }
  if (n_waiting_.load(std::memory_order_relaxed) > 1) {
    return false;  // others see to it
  }
  const uint64_t begin_ns = base::now_ns();
  for (uint64_t now_ns = begin_ns; now_ns - begin_ns < kFinishNs; now_ns = base::now_ns()) {
    progress(now_ns);
    if (!engine()->has_queued()) {
      return true;
    }
  }
  return false;
}

/// Whether something is under way that no caller waits for.
bool Mesh::is_left_busy() const { return n_waiting_.load(std::memory_order_relaxed) == 0 && clients_.is_any_busy(); }

/// A caller goes, who was the one to move chunks. Mostly nobody needs the next ones at once; but a rank that has more
/// to send than it could, or that others are joined by, must not make them wait for the end of the thread's nap. A
/// relay's thread is woken if no caller comes soon, and so is that of a rank with asynchronous calls under way: to wake
/// it after each call would cost more than short calls take where ranks share processors, and so would naps short
/// enough.
void Mesh::leave_to_thread(bool has_left_queue) {
  const uint64_t relayed = std::exchange(relayed_before_, engine()->counts().relayed);
  n_idle_leaves_ = relayed != relayed_before_ ? 0 : n_idle_leaves_ + 1;
  const bool is_needed = has_left_queue || wants_turn_.load(std::memory_order_relaxed);
  has_left_queue_.store(is_needed, std::memory_order_relaxed);
  if (is_needed) {
    (void)eventfd_write(wake_.get(), 1);
  } else if ((relayed_before_ > 0 && n_idle_leaves_ < kRelayCalls) || is_left_busy()) {
    const itimerspec soon{{}, {0, static_cast<long>(kQuietNapNs)}};
    (void)timerfd_settime(relay_timer_.get(), 0, &soon, nullptr);
  }
}

void Mesh::arm() {
  for (const auto& device : engine()->devices()) {
    if (device->channel() != nullptr) {
      // Events that are left would keep the descriptor readable, and nobody would sleep.
      while (device->channel()->take_event()) {
      }
      (void)device->cq().arm();
    }
  }
}

bool Mesh::sleep_until_something(uint64_t most_ns) {
  std::vector<pollfd> descriptors;
  {
    const base::LockGuard guard(lock);
    if (engine() != nullptr) {
      bool has_events = true;
      for (const auto& device : engine()->devices()) {
        if (device->channel() == nullptr) {
          has_events = false;
        } else {
          descriptors.push_back({device->channel()->fd(), POLLIN, 0});
        }
      }
      arm();
      // After arming: a completion that had come before raises no event (ibv_req_notify_cq(3)), so it is looked for
      // here.
      if (progress(base::now_ns())) {
        return true;
      }
      most_ns = has_events ? most_ns : std::min(most_ns, kEventlessNapNs);
      const uint64_t now_ns = base::now_ns();
      const uint64_t tick_ns = engine()->next_tick_ns();
      // Only then is there something to be sent again by the clock.
      if (engine()->n_unacknowledged() > 0) {
        most_ns = std::min(most_ns, tick_ns > now_ns ? tick_ns - now_ns : 0);
      }
      most_ns = std::min(most_ns, watch_.next_ns() > now_ns ? watch_.next_ns() - now_ns : 0);
    }
    descriptors.push_back({side_channel_.fd(), POLLIN, 0});
    descriptors.push_back({wake_.get(), POLLIN, 0});
  }
  const timespec timeout{static_cast<time_t>(most_ns / 1'000'000'000), static_cast<long>(most_ns % 1'000'000'000)};
  // Without the lock. The descriptors stay open: devices, side channel and wake_ live as long as the mesh, whose
  // destructor nobody may call meanwhile. A signal ends it early, which costs a look.
  const bool has_something = ppoll(descriptors.data(), descriptors.size(), &timeout, nullptr) > 0;
  if (has_something && descriptors[descriptors.size() - 2].revents != 0) {
    const base::LockGuard guard(lock);
    watch_.look_soon();  // the side channel: a rank may have died
  }
  return has_something;
}

/// The thread. It ends soon after the destructor says so: wake_ ends its naps.
void Mesh::run() {
  while (!is_ending_) {
    if (n_waiting_ > 0) {
      nap(kWaitedNapNs);
    } else if (wants_turn_) {
      sched_yield();
    } else if (!has_left_queue_ && base::now_ns() - last_waited_ns_.load(std::memory_order_relaxed) < kQuietNs) {
      nap(kQuietNapNs);
    } else {
      (void)sleep_until_something(kNapNs);
    }
    eventfd_t woken = 0;
    // EAGAIN where nobody has written.
    (void)eventfd_read(wake_.get(), &woken);
    // Who waits may sleep, and this thread has read what was to wake it.
    const bool moves = n_waiting_ == 0 || wants_turn_ || has_left_queue_;
    if (moves) {
      lock.lock();
    } else if (!lock.try_lock()) {
      continue;  // whoever waits holds the lock most of the time, and would only be held up
    }
    const base::LockGuard guard(lock, base::kAdoptLock);
    if (moves) {
      progress(base::now_ns());
    }
    const uint64_t now_ns = base::now_ns();
    if (now_ns >= watch_.next_ns()) {
      watch(now_ns);
    }
  }
}

void Mesh::nap(uint64_t most_ns) {
  std::array<pollfd, 2> descriptors = {{{wake_.get(), POLLIN, 0}, {relay_timer_.get(), POLLIN, 0}}};
  // All naps are shorter than a second, as timespec(3type) wants of its nanoseconds.
  const timespec timeout{0, static_cast<long>(most_ns)};
  (void)ppoll(descriptors.data(), descriptors.size(), &timeout, nullptr);
  if (uint64_t n_expired = 0; descriptors[1].revents != 0) {
    (void)!read(relay_timer_.get(), &n_expired, sizeof n_expired);
  }
}

}  // namespace ringbolt::mesh
