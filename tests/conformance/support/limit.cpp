#include "limit.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "handles.h"

namespace ringbolt::conformance {

Limit::Limit(pid_t pid, __rlimit_resource what, uint64_t value) : pid_(pid), what_(what) {
  must_succeed(prlimit(pid_, what_, nullptr, &before_) == 0 ? 0 : errno, "prlimit");
  rlimit limit = before_;
  limit.rlim_cur = value;
  must_succeed(prlimit(pid_, what_, &limit, nullptr) == 0 ? 0 : errno, "prlimit");
}

Limit::~Limit() { prlimit(pid_, what_, &before_, nullptr); }

uint64_t address_space_bytes(pid_t pid) {
  uint64_t pages = 0;
  std::ifstream("/proc/" + std::to_string(pid) + "/statm") >> pages;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t next_descriptor(pid_t pid) {
  if (pid == getpid()) {
    const int next = dup(STDERR_FILENO);  // a listing would hold its own descriptor
    ::close(next);
    return static_cast<uint64_t>(next);
  }
  std::set<uint64_t> used;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    used.insert(std::stoull(entry.path().filename()));
  }
  uint64_t next = 0;
  while (used.contains(next)) {
    ++next;
  }
  return next;
}

}  // namespace ringbolt::conformance
