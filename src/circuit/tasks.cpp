#include "circuit/tasks.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"

namespace ringbolt::circuit {

Tasks::Tasks() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_.is_open()) {
    throw base::Error(errno, "eventfd", "the circuits' thread");
  }
}

Tasks::~Tasks() {
  take([](const Task&) {});
}

void Tasks::put(Task task) {
  auto* const node = new Node{std::move(task), newest_.load(std::memory_order_relaxed)};
  while (!newest_.compare_exchange_weak(node->before, node, std::memory_order_release, std::memory_order_relaxed)) {
  }
  wake();
}

void Tasks::wake() { (void)eventfd_write(wake_.get(), 1); }

Tasks::Node* Tasks::oldest_first() {
  Node* oldest = nullptr;
  // Nobody else has the nodes: exchange() took the whole stack.
  for (Node* node = newest_.exchange(nullptr, std::memory_order_acquire); node != nullptr;) {
    Node* const before = std::exchange(node->before, oldest);
    oldest = std::exchange(node, before);
  }
  return oldest;
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
