#include "limit.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>

#include "deadline.h"
#include "handles.h"

namespace ringbolt::conformance {

Limit::Limit(pid_t pid, __rlimit_resource what, uint64_t value) : pid_(pid), what_(what) {
  must_succeed(prlimit(pid_, what_, nullptr, &before_) == 0 ? 0 : errno, "prlimit");
  rlimit limit = before_;
  limit.rlim_cur = value;
  must_succeed(prlimit(pid_, what_, &limit, nullptr) == 0 ? 0 : errno, "prlimit");
}

Limit::~Limit() { prlimit(pid_, what_, &before_, nullptr); }

namespace {

/// How often the threads of the process have been taken off their processors; none of them runs. Empty: one does.
std::optional<uint64_t> switches_while_asleep(pid_t pid) {
  uint64_t switches = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::ifstream status(thread.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("State:") && line.find('S') == std::string::npos) {
        return std::nullopt;
      }
      if (line.find("voluntary_ctxt_switches:") != std::string::npos) {
        switches += std::stoull(line.substr(line.find(':') + 1));
      }
    }
  }
  return switches;
}

/// What `read` tells of another process between two of its deeds: while it works, it holds what it gives back at once.
template <typename Read>
uint64_t read_asleep(pid_t pid, Read read) {
  uint64_t value = 0;
  EXPECT_TRUE(wait_until([&] {
    const std::optional<uint64_t> before = switches_while_asleep(pid);
    value = read();
    return before && before == switches_while_asleep(pid);
  })) << "process "
      << pid << " is never asleep";
  return value;
}

uint64_t lowest_free_descriptor(pid_t pid) {
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

}  // namespace

uint64_t address_space_bytes(pid_t pid) {
  return read_asleep(pid, [&] {
    uint64_t pages = 0;
    std::ifstream("/proc/" + std::to_string(pid) + "/statm") >> pages;
    return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  });
}

uint64_t next_descriptor(pid_t pid) {
  if (pid == getpid()) {
    const int next = dup(STDERR_FILENO);  // a listing would hold its own descriptor
    ::close(next);
    return static_cast<uint64_t>(next);
  }
  return read_asleep(pid, [&] { return lowest_free_descriptor(pid); });
}

}  // namespace ringbolt::conformance
