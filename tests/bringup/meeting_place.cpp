#include "meeting_place.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace ringbolt::bringup::test {
namespace {

constexpr uint64_t kPatienceNs = 30'000'000'000;

/// Says when another file is in the folder.
class Arrivals {
 public:
  explicit Arrivals(const std::string& folder) : events_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    if (inotify_add_watch(events_.get(), folder.c_str(), IN_MOVED_TO) < 0) {
      throw std::runtime_error("no watch of " + folder + ": " + std::strerror(errno));
    }
  }
  /// Waits for one that has come since the last call; until the deadline.
  void wait(uint64_t deadline_ns) const {
    const uint64_t now = base::now_ns();
    pollfd waiting{events_.get(), POLLIN, 0};
    ::poll(&waiting, 1, now < deadline_ns ? static_cast<int>((deadline_ns - now) / 1'000'000 + 1) : 0);
    std::array<char, 4096> seen;
    while (::read(events_.get(), seen.data(), seen.size()) > 0) {
    }
  }

 private:
  base::UniqueFd events_;
};

void write_whole(const std::string& path, std::span<const std::byte> bytes) {
  const std::string draft = path + ".draft";
  std::ofstream file(draft, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  std::filesystem::rename(draft, path);
}

std::vector<std::byte> read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> chars{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> bytes(chars.size());
  std::transform(chars.begin(), chars.end(), bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

}  // namespace

std::vector<std::vector<std::byte>> MeetingPlace::all_gather(const std::string& name,
                                                             std::span<const std::byte> own) const {
  const auto path_of = [&](uint32_t rank) { return folder_ + "/" + name + "-" + std::to_string(rank); };
  const Arrivals arrivals(folder_);  // before the first look, so that none is missed
  write_whole(path_of(rank_), own);
  std::vector<std::vector<std::byte>> all;
  const uint64_t deadline = base::now_ns() + kPatienceNs;
  for (uint32_t rank = 0; rank < n_ranks_; ++rank) {
    while (!std::filesystem::exists(path_of(rank))) {
      if (base::now_ns() > deadline) {
        throw std::runtime_error("rank " + std::to_string(rank) + " gave no " + name);
      }
      arrivals.wait(deadline);
    }
    all.push_back(read_whole(path_of(rank)));
  }
  return all;
}

}  // namespace ringbolt::bringup::test
