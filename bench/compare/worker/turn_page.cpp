#include "turn_page.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "base/cpu_pause.h"

namespace ringbolt::bench {

void TurnPage::arrive(unsigned ranks, uint64_t round) {
  arrivals.fetch_add(1);
  while (arrivals.load(std::memory_order_acquire) < ranks * round) {
    sched_yield();
  }
}

void TurnPage::wait_for_turn(uint64_t value) const {
  while (turn.load(std::memory_order_acquire) != value) {
    base::cpu_pause();
  }
}

TurnPage& map_turn_page(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  void* memory = fd < 0 ? MAP_FAILED : mmap(nullptr, sizeof(TurnPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    throw std::runtime_error(fmt::format("{}: cannot map the turn page: {}", path, std::strerror(errno)));
  }
  close(fd);
  return *static_cast<TurnPage*>(memory);  // a fresh page of zeroes is a valid TurnPage
}

}  // namespace ringbolt::bench
