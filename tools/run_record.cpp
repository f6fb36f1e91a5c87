#include "run_record.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/folder.h"
#include "cluster/read_file.h"

namespace ringbolt::tools {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostRecordBytes = size_t{1} << 20U;
constexpr const char* kMark = "ringbolt-run";
constexpr const char* kRecordVersion = "1";

std::string folder_of(const cluster::RuntimeDir& dir, const std::string& name) { return dir.cluster(name) + "/runs"; }

std::vector<std::string> records_in(const std::string& folder) {
  std::vector<std::string> paths;
  (void)base::each_name_in(folder.c_str(),
                           [&](std::string_view name) { paths.push_back(folder + "/" + std::string(name)); });
  return paths;
}

/// Waits for a lock that others hold for microseconds, unless one was stopped just then. False: it is not to be had.
bool lock_soon(int descriptor) {
  constexpr int kMostTries = 200;
  constexpr timespec kPause{0, 5'000'000};
  for (int i = 0; i < kMostTries; ++i) {
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
      return true;
    }
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return false;
    }
    ::nanosleep(&kPause, nullptr);
  }
  return false;
}

/// A lock that can't be asked for is nobody's word that the run is over.
bool is_over(const std::string& path) {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  return file.is_open() && ::flock(file.get(), LOCK_SH | LOCK_NB) == 0;
}

/// The program's name, fit for a word of a line.
std::string name_of(const std::vector<std::string>& command) {
  constexpr size_t kMostNameBytes = 64;
  std::string name = fs::path(command.empty() ? "" : command.front()).filename().string().substr(0, kMostNameBytes);
  for (char& c : name) {
    c = c > ' ' && c != '\x7f' ? c : '_';
  }
  return name.empty() ? "program" : name;
}

void add_deaths(const std::string& path, std::vector<Death>& deaths) {
  std::istringstream lines;
  try {
    lines.str(cluster::read_file(path, kMostRecordBytes));
  } catch (const base::Error&) {
    return;  // just removed
  }
  std::string word;
  std::string version;
  std::string command;
  lines >> word >> version >> command;
  if (word != kMark || version != kRecordVersion) {
    return;
  }
  Death death;
  death.command = command;
  death.is_over = is_over(path);
  while (lines >> word >> death.node >> death.pid >> death.at_ns && std::getline(lines >> std::ws, death.how) &&
         word == "end" && !lines.eof()) {  // a line without its end is being written
    deaths.push_back(death);
  }
}

/// The folder at that path, made if it isn't there, and its lock: who makes or removes records holds it. Not open: it
/// can't be had.
base::UniqueFd locked_folder(const std::string& path) {
  constexpr int kMostTries = 3;  // one more for each run that removes the folder between our look and our lock
  for (int n = 0; n < kMostTries; ++n) {
    try {
      cluster::make_private_dir(path);
    } catch (const base::Error&) {
      return {};
    }
    base::UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (folder.is_open() && !lock_soon(folder.get())) {
      return {};
    }
    struct stat locked = {};
    struct stat there = {};
    if (folder.is_open() && ::fstat(folder.get(), &locked) == 0 && ::lstat(path.c_str(), &there) == 0 &&
        locked.st_ino == there.st_ino && locked.st_dev == there.st_dev) {
      return folder;
    }
  }
  return {};
}

}  // namespace

RunRecord::RunRecord(const LiveCluster& live, const std::vector<std::string>& command)
    : folder_(folder_of(live.dir, live.model.name)),
      path_(fmt::format("{}/{}", folder_, ::getpid())),
      command_(name_of(command)) {
  // Until the record has a lock of its own: before that it looks like one of a run that is over.
  const base::UniqueFd folder = locked_folder(folder_);
  if (!folder.is_open()) {
    return;
  }
  for (const std::string& path : records_in(folder_)) {
    if (path == path_ || is_over(path)) {
      ::unlink(path.c_str());
    }
  }
  base::UniqueFd file(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open()) {
    return;
  }
  if (!lock_soon(file.get())) {  // who asks is_over() has it for a moment
    ::unlink(path_.c_str());
    return;
  }
  const std::string head = fmt::format("{} {} {}\n", kMark, kRecordVersion, command_);
  (void)!::write(file.get(), head.data(), head.size());
  file_ = std::move(file);
}

RunRecord::~RunRecord() {
  if (file_.is_open() && deaths_.empty()) {
    const base::UniqueFd folder = locked_folder(folder_);
    ::unlink(path_.c_str());
    if (folder.is_open()) {
      ::rmdir(folder_.c_str());  // stays while others have records there
    }
  }
}

void RunRecord::note_failure(const std::string& node, pid_t pid, const std::string& how) {
  deaths_.push_back({node, pid, command_, how, base::now_ns(), false});
  const std::string line = fmt::format("end {} {} {} {}\n", node, pid, deaths_.back().at_ns, how);
  (void)!::write(file_.get(), line.data(), line.size());
}

std::vector<Death> recorded_deaths(const cluster::RuntimeDir& dir, const std::string& name) {
  std::vector<Death> deaths;
  for (const std::string& path : records_in(folder_of(dir, name))) {
    add_deaths(path, deaths);
  }
  return deaths;
}

}  // namespace ringbolt::tools
