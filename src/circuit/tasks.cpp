#include "circuit/tasks.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"

namespace ringbolt::circuit {

Tasks::Tasks() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_.is_open()) {
    throw base::Error(errno, "eventfd", "the circuits' thread");
  }
}

Tasks::~Tasks() { (void)take(); }

void Tasks::put(Task task) {
  auto* const node = new Node{std::move(task), newest_.load(std::memory_order_relaxed)};
  while (!newest_.compare_exchange_weak(node->before, node, std::memory_order_release, std::memory_order_relaxed)) {
  }
  wake();
}

void Tasks::wake() { (void)eventfd_write(wake_.get(), 1); }

std::vector<Tasks::Task> Tasks::take() {
  std::vector<Task> tasks;
  for (Node* node = newest_.exchange(nullptr, std::memory_order_acquire); node != nullptr;) {
    tasks.push_back(std::move(node->task));
    // Nobody else has it: exchange() took the whole stack.
    delete std::exchange(node, node->before);
  }
  std::ranges::reverse(tasks);
  return tasks;
}

void Tasks::wait(uint64_t most_ns) {
  constexpr uint64_t kSecond = 1'000'000'000;
  pollfd fd{wake_.get(), POLLIN, 0};
  const timespec most{static_cast<time_t>(most_ns / kSecond), static_cast<long>(most_ns % kSecond)};
  // Not poll(): its milliseconds are too coarse for half of one.
  (void)::ppoll(&fd, 1, &most, nullptr);
  eventfd_t n = 0;
  (void)eventfd_read(wake_.get(), &n);  // before take(): what is put in from now on ends the next wait
}

}  // namespace ringbolt::circuit
