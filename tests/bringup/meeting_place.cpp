#include "meeting_place.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "base/clock.h"

namespace ringbolt::bringup::test {
namespace {

constexpr uint64_t kPatienceNs = 30'000'000'000;
constexpr unsigned kPauseUs = 1000;

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
  write_whole(path_of(rank_), own);
  std::vector<std::vector<std::byte>> all;
  const uint64_t deadline = base::now_ns() + kPatienceNs;
  for (uint32_t rank = 0; rank < n_ranks_; ++rank) {
    while (!std::filesystem::exists(path_of(rank))) {
      if (base::now_ns() > deadline) {
        throw std::runtime_error("rank " + std::to_string(rank) + " gave no " + name);
      }
      ::usleep(kPauseUs);
    }
    all.push_back(read_whole(path_of(rank)));
  }
  return all;
}

}  // namespace ringbolt::bringup::test
