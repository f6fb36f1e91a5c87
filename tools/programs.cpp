#include "programs.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/unique_fd.h"
#include "cluster/read_file.h"

namespace ringbolt::tools {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_ending_in(const std::string& folder, const std::string& extension) {
  std::vector<std::string> files;
  for (const std::string& name : cluster::names_in(folder)) {
    if (fs::path(name).extension() == extension) {
      files.push_back(folder + "/" + name);
    }
  }
  return files;
}

/// Throws base::Error where nobody can tell.
std::optional<pid_t> holder(const std::string& lock_path) {
  base::UniqueFd fd(::open(lock_path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!fd.is_open()) {
    if (errno != ENOENT) {  // it has just ended
      throw base::Error(errno, "open", lock_path);
    }
    return std::nullopt;
  }
  if (::flock(fd.get(), LOCK_SH | LOCK_NB) == 0) {
    return std::nullopt;  // closing gives our shared lock back
  }
  if (errno != EWOULDBLOCK) {
    throw base::Error(errno, "flock", lock_path);
  }
  char text[32];
  const ssize_t length = ::pread(fd.get(), text, sizeof text, 0);
  pid_t pid = 0;
  if (length > 0) {
    std::from_chars(text, text + length, pid);
  }
  return pid;
}

std::string command_of(pid_t pid) {
  try {
    std::string name = cluster::read_file(fmt::format("/proc/{}/comm", pid), 64);
    while (!name.empty() && name.back() == '\n') {
      name.pop_back();
    }
    return name;
  } catch (const base::Error&) {
    return "";
  }
}

/// `folder_fd`: the folder of the socket. By its number the address is short, however long the folder's path.
bool poke(int folder_fd, const std::string& socket_path) {
  constexpr char kPoke[] = "RBPOKE1\n";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", folder_fd, fs::path(socket_path).filename().string());
  if (path.size() >= sizeof address.sun_path) {
    return false;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return fd.is_open() && ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
         ::send(fd.get(), kPoke, sizeof kPoke - 1, MSG_NOSIGNAL | MSG_DONTWAIT) ==
             static_cast<ssize_t>(sizeof kPoke - 1);
}

}  // namespace

std::string Program::text() const {
  const std::string place = node.empty() ? fmt::format("pid {}", pid) : fmt::format("pid {} on {}", pid, node);
  return command.empty() ? place : fmt::format("{} ({})", command, place);
}

Program program_of(pid_t pid) { return {pid, command_of(pid), ""}; }

std::vector<Program> running_programs(const std::string& slots) {
  std::vector<Program> programs;
  for (const std::string& path : files_ending_in(slots, ".lock")) {
    if (const std::optional<pid_t> pid = holder(path)) {
      programs.push_back(program_of(*pid));
    }
  }
  std::sort(programs.begin(), programs.end(), [](const Program& a, const Program& b) { return a.pid < b.pid; });
  return programs;
}

size_t poke_programs(const std::string& slots) {
  const std::vector<std::string> sockets = files_ending_in(slots, ".sock");
  base::UniqueFd folder(::open(slots.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return static_cast<size_t>(
      std::count_if(sockets.begin(), sockets.end(), [&](const std::string& path) { return poke(folder.get(), path); }));
}

std::string list_programs(const std::vector<Program>& programs) {
  std::string text;
  for (const Program& program : programs) {
    text += (text.empty() ? "" : ", ") + program.text();
  }
  return text;
}

}  // namespace ringbolt::tools
