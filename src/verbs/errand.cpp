#include "verbs/errand.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "base/assert.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/start_thread.h"

namespace ringbolt::verbs {
namespace {

/// Of the errand that this thread runs. What calls the driver lies several layers below who waits for it, and would
/// have to be handed this through all of them.
// Set and reset by Errand::run() in the errand's own thread, so never dangling.
thread_local Whereabouts* here = nullptr;

}  // namespace

struct Whereabouts::Place {
  base::Mutex mutex;
  std::string subject RINGBOLT_GUARDED_BY(mutex);
  std::string object RINGBOLT_GUARDED_BY(mutex);
  std::string call RINGBOLT_GUARDED_BY(mutex);  // empty: not in the driver
  std::string_view advice RINGBOLT_GUARDED_BY(mutex);
  uint64_t since_ns RINGBOLT_GUARDED_BY(mutex) = 0;
};

// Until the first call of the driver.
Whereabouts::Whereabouts() : place_(std::make_unique<Place>()) { place_->since_ns = base::now_ns(); }
Whereabouts::~Whereabouts() = default;

// Any thread; the errand's own in practice.
void Whereabouts::set_subject(std::string subject) {
  const base::LockGuard lock(place_->mutex);
  place_->subject = std::move(subject);
}

std::string Whereabouts::text() const {
  const base::LockGuard lock(place_->mutex);
  const double seconds = static_cast<double>(base::now_ns() - place_->since_ns) / 1e9;
  std::string about = place_->object;
  if (!place_->subject.empty()) {
    about += (about.empty() ? "" : ", ") + place_->subject;
  }
  about += about.empty() ? "" : ": ";
  if (place_->call.empty()) {
    return fmt::format("{}not done in time: is this machine overloaded, or the timeout too short?", about);
  }
  return fmt::format("{}{} has not returned for {:.1f} s: {}", about, place_->call, seconds, place_->advice);
}

// Of a thread that runs no errand: without effect. `object` is copied.
DriverCall::DriverCall(Step step, std::string_view object) : at_(here) {
  if (at_ != nullptr) {
    // Not for long: text() formats under it, and a driver's call is never made with it.
    const base::LockGuard lock(at_->place_->mutex);
    at_->place_->object = object;
    at_->place_->call = name_of(step);
    at_->place_->advice = advice_if_stuck(step);
    at_->place_->since_ns = base::now_ns();
  }
}

DriverCall::DriverCall(std::string_view call) : at_(here) {
  if (at_ != nullptr) {
    const base::LockGuard lock(at_->place_->mutex);
    at_->place_->call = call;
    at_->place_->advice = advice_if_stuck(std::nullopt);
    at_->place_->since_ns = base::now_ns();
  }
}

// Of nested ones the innermost is shown, and none after its end.
DriverCall::~DriverCall() {
  if (at_ != nullptr) {
    const base::LockGuard lock(at_->place_->mutex);
    at_->place_->call.clear();
  }
}

/// What the thread and who waits for it share.
struct Errand::Run {
  std::function<void(Whereabouts&)> what;
  Whereabouts where;
  mutable base::Mutex mutex;
  mutable base::Condition changed;
  bool is_over RINGBOLT_GUARDED_BY(mutex) = false;
  std::exception_ptr failure RINGBOLT_GUARDED_BY(mutex) = nullptr;
};

void Errand::run(const std::shared_ptr<Run>& run) {
  std::exception_ptr failure;
  here = &run->where;
  try {
    run->what(run->where);
  } catch (...) {
    // Also std::bad_alloc and the like: an exception that leaves a thread ends the process.
    failure = std::current_exception();
  }
  here = nullptr;
  const base::LockGuard lock(run->mutex);
  run->failure = failure;
  run->is_over = true;
  run->changed.notify_all();
}

// Throws std::system_error when there is no thread to be had: then nothing runs.
Errand::Errand(std::function<void(Whereabouts&)> what) : run_(new Run{std::move(what), {}, {}, {}}) {
  thread_ = base::start_thread([kept = run_] { run(kept); });
}

Errand::~Errand() {
  if (!thread_.joinable()) {
    return;
  }
  if (is_over()) {
    thread_.join();
  } else {
    // It holds `run_`, so what it works on stays.
    thread_.detach();
  }
}

bool Errand::is_over() const {
  const base::LockGuard lock(run_->mutex);
  return run_->is_over;
}

// False at the deadline. May be called again, with another one.
bool Errand::wait_until(uint64_t deadline_ns) const {
  const base::LockGuard lock(run_->mutex);
  constexpr uint64_t kMostNs = 3'600'000'000'000;  // farther away a clock may overflow
  for (uint64_t now_ns = base::now_ns(); !run_->is_over && now_ns < deadline_ns; now_ns = base::now_ns()) {
    run_->changed.wait_for(run_->mutex, std::chrono::nanoseconds(std::min(deadline_ns - now_ns, kMostNs)));
  }
  return run_->is_over;
}

void Errand::finish() {
  RINGBOLT_ASSERT(is_over());
  if (thread_.joinable()) {
    thread_.join();
  }
  std::exception_ptr failure;
  {
    const base::LockGuard lock(run_->mutex);
    // Rethrown without the lock.
    failure = std::exchange(run_->failure, nullptr);
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

std::string Errand::whereabouts() const { return run_->where.text(); }

// Throws Stuck at the deadline, and what the stage throws before it. The stage may outlive this call: it must own
// what it uses.
void within(uint64_t deadline_ns, std::function<void(Whereabouts&)> stage) {
  Errand errand(std::move(stage));
  if (!errand.wait_until(deadline_ns)) {
    throw Stuck(errand.whereabouts());
  }
  errand.finish();
}

}  // namespace ringbolt::verbs
