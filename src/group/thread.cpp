// Who moves chunks when: callers that wait, and a thread for the time when nobody does.
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "group/world.h"

namespace ringbolt::group {
namespace {

constexpr uint64_t kMicrosecond = 1'000;
constexpr uint64_t kMillisecond = 1'000'000;
/// A caller polls so long without anything arriving before it sleeps: longer than a peer needs to be woken.
constexpr uint64_t kPollNs = 200 * kMicrosecond;
/// Sleeping callers look after deadlines; devices without events are polled so often.
constexpr uint64_t kNapNs = 20 * kMillisecond;
constexpr uint64_t kEventlessNapNs = 50 * kMicrosecond;
constexpr uint32_t kPollsPerYield = 32;
/// A rank that leaves stays for the others, which may need what it has sent or what it relays, until they leave too; not
/// for ever, and hardly at all if the group is broken.
constexpr uint64_t kLeaveNs = 2000 * kMillisecond;
constexpr uint64_t kBrokenLeaveNs = 200 * kMillisecond;
/// Callers that come and go move chunks by themselves: so long after one has gone, the thread does not have itself
/// woken for every chunk, but looks from time to time.
constexpr uint64_t kQuietNs = 5 * kMillisecond;
constexpr uint64_t kQuietNapNs = kMillisecond / 2;
/// A caller that waits sees to heartbeats, unless it does not get to run.
constexpr uint64_t kWatchNs = 20 * kMillisecond;

}  // namespace

World::~World() {
  if (thread_.joinable()) {
    take_leave();
    is_ending_ = true;
    (void)eventfd_write(wake_.get(), 1);
    thread_.join();
  }
}

void World::take_leave() {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    communicators_.clear();
    say_goodbye();
  }
  const uint64_t deadline_ns = base::now_ns() + kLeaveNs;
  const uint64_t broken_deadline_ns = base::now_ns() + kBrokenLeaveNs;
  wait([&] {
    const uint64_t now_ns = base::now_ns();
    const bool is_late = now_ns >= (failed_.empty() ? deadline_ns : broken_deadline_ns);
    return is_late || (engine()->n_unacknowledged() == 0 && have_all_said_goodbye());
  });
}

void World::wait(const std::function<bool()>& is_done) {
  ++n_waiting_;
  std::unique_lock<std::mutex> guard(lock_);
  uint64_t now_ns = base::now_ns();
  uint64_t idle_since_ns = now_ns;
  uint32_t n_idle = 0;
  while (!is_done()) {
    if (progress(now_ns)) {
      idle_since_ns = now_ns;
      n_idle = 0;
    } else if (is_done()) {
      break;
    } else if (now_ns - idle_since_ns >= kPollNs) {
      guard.unlock();
      (void)sleep_until_something(kNapNs);
      guard.lock();
    } else if (++n_idle % kPollsPerYield == 0) {
      guard.unlock();
      sched_yield();
      guard.lock();
    }
    now_ns = base::now_ns();
    if (now_ns - watched_ns_ >= kWatchNs) {
      watch(now_ns);
    }
  }
  last_waited_ns_.store(now_ns, std::memory_order_relaxed);
  --n_waiting_;
}

void World::arm() {
  for (const auto& device : engine()->devices()) {
    if (device->channel() != nullptr) {
      while (device->channel()->take_event()) {
      }
      (void)device->cq().arm();
    }
  }
}

bool World::sleep_until_something(uint64_t most_ns) {
  std::vector<pollfd> descriptors;
  {
    const std::lock_guard<std::mutex> guard(lock_);
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
      if (progress(base::now_ns())) {
        return true;
      }
      most_ns = has_events ? most_ns : std::min(most_ns, kEventlessNapNs);
      const uint64_t now_ns = base::now_ns();
      const uint64_t tick_ns = engine()->next_tick_ns();
      if (engine()->n_unacknowledged() > 0) {
        most_ns = std::min(most_ns, tick_ns > now_ns ? tick_ns - now_ns : 0);
      }
    }
    descriptors.push_back({circle_.fd(), POLLIN, 0});
    descriptors.push_back({wake_.get(), POLLIN, 0});
  }
  const timespec timeout{static_cast<time_t>(most_ns / 1'000'000'000), static_cast<long>(most_ns % 1'000'000'000)};
  return ppoll(descriptors.data(), descriptors.size(), &timeout, nullptr) > 0;
}

void World::run() {
  while (!is_ending_) {
    const uint64_t waited_ns = last_waited_ns_.load(std::memory_order_relaxed);
    if (n_waiting_ > 0) {
      nap(kWatchNs);
    } else if (base::now_ns() - waited_ns < kQuietNs) {
      nap(kQuietNapNs);
    } else {
      (void)sleep_until_something(kNapNs);
    }
    if (n_waiting_ > 0) {
      // Whoever waits holds the lock most of the time, and would only be held up.
      const std::unique_lock<std::mutex> guard(lock_, std::try_to_lock);
      if (guard.owns_lock()) {
        watch(base::now_ns());
      }
      continue;
    }
    const std::lock_guard<std::mutex> guard(lock_);
    const uint64_t now_ns = base::now_ns();
    progress(now_ns);
    if (now_ns - watched_ns_ >= kQuietNapNs) {
      watch(now_ns);
    }
  }
}

void World::nap(uint64_t most_ns) {
  pollfd wake{wake_.get(), POLLIN, 0};
  const timespec timeout{0, static_cast<long>(most_ns)};
  (void)ppoll(&wake, 1, &timeout, nullptr);
}

}  // namespace ringbolt::group
