#include "abi/acknowledgements.h"

#include <cerrno>
#include <ctime>

namespace ringbolt::abi {
namespace {

class Locked {
 public:
  explicit Locked(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t& mutex_;
};

/// On the clock that a condition has which nobody has asked for another.
timespec time_in(std::chrono::milliseconds most) {
  constexpr long kNanoseconds = 1'000'000'000;
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(most);
  timespec until{};
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += whole.count();
  until.tv_nsec += std::chrono::nanoseconds(most - whole).count();
  if (until.tv_nsec >= kNanoseconds) {
    until.tv_nsec -= kNanoseconds;
    ++until.tv_sec;
  }
  return until;
}

}  // namespace

void Acknowledgements::acknowledge(uint32_t count) const {
  const Locked locked(*mutex_);
  *completed_ += count;
  // Under the mutex: who waits may free all of it as soon as it has the mutex.
  pthread_cond_signal(condition_);
}

void Acknowledgements::wait() const {
  const Locked locked(*mutex_);
  while (*completed_ != taken_->events.load()) {
    pthread_cond_wait(condition_, mutex_);
  }
}

uint32_t Acknowledgements::wait_for(std::chrono::milliseconds most) const {
  const timespec until = time_in(most);
  const Locked locked(*mutex_);
  bool may_wait = true;
  while (may_wait && *completed_ != taken_->events.load()) {
    may_wait = pthread_cond_timedwait(condition_, mutex_, &until) != ETIMEDOUT;
  }
  return taken_->events.load() - *completed_;
}

}  // namespace ringbolt::abi
