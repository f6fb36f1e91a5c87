#include "cluster/runtime_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include <fmt/format.h>

#include "base/error.h"

namespace ringbolt::cluster {
namespace {

constexpr const char* kElsewhere = "set RINGBOLT_RUNTIME_DIR to a folder of your own";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool is_folder(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::string choose_root() {
  std::string root = variable("RINGBOLT_RUNTIME_DIR");
  if (!root.empty()) {
    return root;
  }
  // After su or in a container the variable often names a folder that is not there.
  root = variable("XDG_RUNTIME_DIR");
  if (!root.empty() && root.front() == '/' && is_folder(root)) {
    return root + "/ringbolt";
  }
  // Anyone may make that folder first: check_private_dir() then refuses it, as it belongs to somebody else.
  return fmt::format("/tmp/ringbolt-{}", ::geteuid());
}

}  // namespace

RuntimeDir RuntimeDir::from_environment() { return at(choose_root()); }

RuntimeDir RuntimeDir::at(const std::string& root) {
  std::string path = root;
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  if (path.empty() || path.front() != '/') {
    throw base::Error(EINVAL, "runtime folder", "\"" + root + "\"", "RINGBOLT_RUNTIME_DIR must be an absolute path");
  }
  // Checked even if it was there: an older version or a person may have made it with another mode.
  make_private_dir(path);
  return RuntimeDir(path);
}

std::string RuntimeDir::make_default_slots() const {
  make_private_dir(default_dir());
  make_private_dir(default_slots());
  return default_slots();
}

std::string RuntimeDir::make_network_slots() const {
  constexpr const char* kNamespace = "/proc/self/ns/net";
  struct stat status {};
  if (::stat(kNamespace, &status) != 0) {
    throw base::Error(errno, "identify the network namespace", kNamespace, "is /proc mounted?");
  }
  make_private_dir(default_dir());
  // The inode names a namespace as long as it lives (namespaces(7)); a later one with the same number finds slots
  // that nobody holds.
  const std::string path = fmt::format("{}/net-{}", default_dir(), status.st_ino);
  make_private_dir(path);
  return path;
}

void make_private_dir(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) {
    ::chmod(path.c_str(), 0700);  // the umask may have taken our own rights
  } else if (errno != EEXIST) {
    throw base::Error(errno, "mkdir", path, kElsewhere);
  }
  check_private_dir(path);
}

void check_private_dir(const std::string& path) {
  struct stat status {};
  // lstat, not stat: a symbolic link of somebody else's could be turned elsewhere after this look.
  if (::lstat(path.c_str(), &status) != 0) {
    throw base::Error(errno, "lstat", path, kElsewhere);
  }
  if (!S_ISDIR(status.st_mode)) {
    throw base::Error(ENOTDIR, S_ISLNK(status.st_mode) ? "is a symbolic link" : "is no folder", path,
                      fmt::format("remove it, or {}", kElsewhere));
  }
  if (status.st_uid != ::geteuid()) {
    throw base::Error(EPERM, fmt::format("belongs to uid {}, not to uid {}", status.st_uid, ::geteuid()), path,
                      kElsewhere);
  }
  // Nobody else can enter, so that what is inside needs no checks of its own.
  if ((status.st_mode & 077U) != 0) {
    throw base::Error(EPERM, fmt::format("others may enter it (mode {:04o})", status.st_mode & 07777U), path,
                      fmt::format("chmod 700 {}, or {}", path, kElsewhere));
  }
}

}  // namespace ringbolt::cluster
