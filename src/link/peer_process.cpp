#include "link/peer_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

namespace ringbolt::link {
namespace {

/// Up to 511 bytes of a small file of /proc; empty when it cannot be read.
std::string read_small_file(const std::string& path) {
  const base::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) {
    return {};
  }
  std::array<char, 511> text{};
  const ssize_t length = read(fd.get(), text.data(), text.size());
  return length > 0 ? std::string(text.data(), static_cast<size_t>(length)) : std::string();
}

std::string own_descriptor_path(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

}  // namespace

bool is_process_stopped(pid_t pid) {
  const std::string stat = read_small_file(fmt::format("/proc/{}/stat", pid));
  // "pid (name) state ...": the name may itself hold spaces and brackets.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) {
    return false;
  }
  return stat[name_end + 2] == 'T' || stat[name_end + 2] == 't';
}

bool is_memory_reachable(pid_t pid, uint64_t address, uint64_t expected) {
  uint64_t found = ~expected;
  const iovec local{&found, sizeof found};
  // An address of the other process: never followed here.
  const iovec remote{reinterpret_cast<void*>(static_cast<uintptr_t>(address)), sizeof found};
  return pid > 0 && process_vm_readv(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(sizeof found) &&
         found == expected;
}

int yama_scope() { return std::atoi(read_small_file("/proc/sys/kernel/yama/ptrace_scope").c_str()); }

void allow_memory_access(pid_t pid) {
  if (pid > 0 && pid != getpid()) {
    prctl(PR_SET_PTRACER, static_cast<unsigned long>(pid), 0, 0, 0);
  }
}

bool is_event_descriptor(int fd) {
  constexpr std::string_view kEventfd = "anon_inode:[eventfd]";
  std::array<char, kEventfd.size() + 1> target{};
  const ssize_t length = readlink(own_descriptor_path(fd).c_str(), target.data(), target.size());
  return length == static_cast<ssize_t>(kEventfd.size()) &&
         std::string_view(target.data(), static_cast<size_t>(length)) == kEventfd;
}

bool is_bell(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return is_event_descriptor(fd) && flags >= 0 && (flags & O_NONBLOCK) != 0;
}

bool is_read_only_file(int fd) {
  struct stat status {};
  const int flags = fcntl(fd, F_GETFL);
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && flags >= 0 && (flags & O_ACCMODE) == O_RDONLY;
}

base::UniqueFd reopen_read_only(int fd) {
  return base::UniqueFd(open(own_descriptor_path(fd).c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace ringbolt::link
