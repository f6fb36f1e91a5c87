#include "link/slot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/folder.h"
#include "link/socket.h"

namespace ringbolt::link {
namespace {

// The kernel caps it at net.core.somaxconn, 4096 by default.
constexpr int kListenBacklog = 4096;

// What the owner of a slot may have made beside its lock: it goes with the slot.
constexpr std::array<std::string_view, 4> kCompanions{".sock", ".mad", ".services", ".udp"};

std::string slot_lock_name(uint32_t slot) { return fmt::format("{}.lock", slot); }

/// Makes `directory` and its missing parents, each 0700 whatever the umask says.
void make_directories(const std::filesystem::path& directory) {
  if (directory.has_parent_path() && directory.parent_path() != directory &&
      !std::filesystem::exists(directory.parent_path())) {
    make_directories(directory.parent_path());
  }
  if (mkdir(directory.c_str(), 0700) == 0) {
    if (chmod(directory.c_str(), 0700) != 0) {
      throw base::Error(errno, "chmod 0700", directory);
    }
  } else if (errno != EEXIST) {
    throw base::Error(errno, "mkdir", directory, "set RINGBOLT_RUNTIME_DIR to a folder you may write to");
  }
}

base::UniqueFd open_directory(const std::string& directory) {
  base::UniqueFd fd(open(directory.c_str(), O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) {
    throw base::Error(errno, "open", directory, "it must be a folder of yours, no symbolic link");
  }
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) {
    throw base::Error(errno, "fstat", directory);
  }
  if (status.st_uid != geteuid() || (status.st_mode & 022) != 0) {
    throw base::Error(
        EPERM, fmt::format("check (owner {}, mode {:o}, user {})", status.st_uid, status.st_mode & 07777, geteuid()),
        directory, "it must belong to you and be writable by nobody else (0700)");
  }
  return fd;
}

/// The path of `fd` is still `name`: its owner did not unlink it between our open and our flock.
bool names_same_file(int directory_fd, const std::string& name, int fd) {
  struct stat by_name {};
  struct stat by_fd {};
  return fstatat(directory_fd, name.c_str(), &by_name, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &by_fd) == 0 &&
         by_name.st_ino == by_fd.st_ino && by_name.st_dev == by_fd.st_dev;
}

void remove_companions(int directory_fd, const std::string& slot) {
  for (const std::string_view suffix : kCompanions) {
    unlinkat(directory_fd, (slot + std::string(suffix)).c_str(), 0);
  }
}

void write_pid(int fd) {
  const std::string text = fmt::format("{}\n", getpid());
  // For people only: nothing reads it back, so a full disk does no harm.
  if (ftruncate(fd, 0) == 0) {
    (void)!pwrite(fd, text.data(), text.size(), 0);
  }
}

}  // namespace

std::string slot_socket_name(uint32_t slot) { return fmt::format("{}.sock", slot); }

Slot::Slot(std::string directory, base::UniqueFd directory_fd)
    : directory_(std::move(directory)), directory_fd_(std::move(directory_fd)), owner_(getpid()) {}

Slot Slot::claim(const std::string& directory, uint32_t slot_limit, uint32_t start) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(directory, error);
  if (error) {
    throw base::Error(error.value(), "find the working directory for", directory);
  }
  std::string path = absolute.lexically_normal().string();
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  make_directories(path);
  base::UniqueFd directory_fd = open_directory(path);
  Slot slot(path, std::move(directory_fd));
  for (uint32_t i = 0; i < slot_limit; ++i) {
    if (slot.try_claim((start + i) % slot_limit)) {
      slot.sweep();
      return slot;
    }
  }
  throw base::Error(EUSERS, fmt::format("claim one of {} slots, all taken", slot_limit), path,
                    "end some of the processes that have the device open");
}

bool Slot::try_claim(uint32_t number) {
  constexpr int kAttempts = 8;  // each fails only when an owner left between our open and our flock
  const std::string name = slot_lock_name(number);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    base::UniqueFd lock(openat(directory_fd_.get(), name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock.is_open()) {
      throw base::Error(errno, "open", directory_ + "/" + name);
    }
    if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) {
        return false;
      }
      throw base::Error(errno, "flock", directory_ + "/" + name);
    }
    if (names_same_file(directory_fd_.get(), name, lock.get())) {
      write_pid(lock.get());
      number_ = number;
      lock_ = std::move(lock);
      remove_companions(directory_fd_.get(), std::to_string(number));
      listen_on(number);
      return true;
    }
  }
  return false;
}

void Slot::sweep() const {
  constexpr std::string_view kEnding = ".lock";
  static_cast<void>(base::each_name_in(directory_.c_str(), [&](std::string_view entry) {
    if (!entry.ends_with(kEnding) || entry.size() == kEnding.size()) {
      return;
    }
    const std::string stem(entry.substr(0, entry.size() - kEnding.size()));
    const std::string name(entry);
    if (stem == std::to_string(number_)) {
      return;
    }
    const base::UniqueFd lock(openat(directory_fd_.get(), name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    // The kernel gave the lock back if its owner was killed. Whoever claims the slot meanwhile finds the lock taken, or
    // the name gone, and tries again.
    if (lock.is_open() && flock(lock.get(), LOCK_EX | LOCK_NB) == 0 &&
        names_same_file(directory_fd_.get(), name, lock.get())) {
      remove_companions(directory_fd_.get(), stem);
      unlinkat(directory_fd_.get(), name.c_str(), 0);
    }
  }));
}

void Slot::listen_on(uint32_t number) {
  const std::string name = slot_socket_name(number);
  const std::string object = directory_ + "/" + name;
  if (unlinkat(directory_fd_.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    throw base::Error(errno, "unlink", object);
  }
  listening_ = open_socket();
  const auto address = socket_address(directory_, directory_fd_.get(), name);
  if (!listening_.is_open() || !address) {
    throw base::Error(listening_.is_open() ? ENAMETOOLONG : errno, "socket", object);
  }
  if (bind(listening_.get(), address->get(), address->length) != 0) {
    throw base::Error(errno, "bind", object, "a path beyond 107 bytes needs /proc: use a shorter RINGBOLT_RUNTIME_DIR");
  }
  // The umask may have taken our own right to connect.
  if (fchmodat(directory_fd_.get(), name.c_str(), 0600, 0) != 0 || ::listen(listening_.get(), kListenBacklog) != 0) {
    throw base::Error(errno, "listen", object);
  }
}

Slot::~Slot() { release(); }

void Slot::release() {
  if (!lock_.is_open() || getpid() != owner_) {
    return;
  }
  if (listening_.is_open()) {
    // Also ends copies of the socket that a forked child may hold.
    shutdown(listening_.get(), SHUT_RDWR);
  }
  remove_companions(directory_fd_.get(), std::to_string(number_));
  // Unlinked before unlocked: who has opened the old file sees in names_same_file() that it is no longer the slot's.
  unlinkat(directory_fd_.get(), slot_lock_name(number_).c_str(), 0);
  lock_.reset();
}

void Slot::abandon_after_fork() {
  lock_.reset();
  listening_.reset();
  directory_fd_.reset();
}

}  // namespace ringbolt::link
