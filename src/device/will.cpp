#include "device/will.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "base/folder.h"
#include "base/lock_guard.h"
#include "wire/bytes.h"

namespace ringbolt::device {
namespace {

struct WillAt {
  static constexpr size_t magic = 0, network = 8, end = kBequestBytes;  // the first place is the header's
};
constexpr uint64_t kWillMagic = 0x5242'7769'6c6c'0001;  // "RBwill", version 1

struct BequestAt {
  static constexpr size_t local_id = 0, remote_id = 4, remote_qpn = 8, flow_label = 12, local = 16, remote = 32,
                          traffic_class = 48, hop_limit = 49, end = 50;
};
static_assert(BequestAt::end <= kBequestBytes);

constexpr std::string_view kWillSuffix = ".will";
constexpr size_t kMaxWillBytes = size_t{64} << 20;
constexpr uint32_t kLastQpn = 0xffffff;
constexpr uint32_t kLastFlowLabel = 0xfffff;

off_t offset_of(uint32_t place) { return static_cast<off_t>(place + 1) * static_cast<off_t>(kBequestBytes); }

/// Nothing if it is no will of that network.
std::optional<std::vector<Bequest>> read_will(int fd, uint64_t network) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || status.st_size < static_cast<off_t>(WillAt::end) ||
      status.st_size > static_cast<off_t>(kMaxWillBytes)) {
    return std::nullopt;
  }
  std::vector<std::byte> bytes(static_cast<size_t>(status.st_size));
  const ssize_t got = pread(fd, bytes.data(), bytes.size(), 0);
  if (got < static_cast<ssize_t>(WillAt::end) || wire::get_be<uint64_t>(bytes, WillAt::magic) != kWillMagic ||
      wire::get_be<uint64_t>(bytes, WillAt::network) != network) {
    return std::nullopt;
  }
  std::vector<Bequest> bequests;
  for (size_t at = WillAt::end; at + kBequestBytes <= static_cast<size_t>(got); at += kBequestBytes) {
    if (const auto one = parse_bequest(std::span(bytes).subspan(at).first<kBequestBytes>())) {
      bequests.push_back(*one);
    }
  }
  return bequests;
}

/// The name is still the file's: nobody has carried it out and removed it between our open and our lock.
bool is_still_there(int directory, const std::string& name, int fd) {
  struct stat by_name {};
  struct stat by_fd {};
  return fstatat(directory, name.c_str(), &by_name, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &by_fd) == 0 &&
         by_name.st_ino == by_fd.st_ino && by_name.st_dev == by_fd.st_dev;
}

base::UniqueFd open_folder(const std::string& directory) {
  return base::UniqueFd(open(directory.c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC));
}

}  // namespace

std::array<std::byte, kBequestBytes> emit(const Bequest& bequest) {
  std::array<std::byte, kBequestBytes> bytes{};
  const std::span<std::byte> out(bytes);
  wire::put_be(out, BequestAt::local_id, bequest.local_id);
  wire::put_be(out, BequestAt::remote_id, bequest.remote_id);
  wire::put_be(out, BequestAt::remote_qpn, bequest.remote_qpn);
  wire::put_be(out, BequestAt::flow_label, bequest.flow_label);
  wire::put_bytes(out, BequestAt::local, bequest.local);
  wire::put_bytes(out, BequestAt::remote, bequest.remote);
  wire::put_be(out, BequestAt::traffic_class, bequest.traffic_class);
  wire::put_be(out, BequestAt::hop_limit, bequest.hop_limit);
  return bytes;
}

std::optional<Bequest> parse_bequest(std::span<const std::byte, kBequestBytes> in) {
  const Bequest read{.local_id = wire::get_be<uint32_t>(in, BequestAt::local_id),
                     .remote_id = wire::get_be<uint32_t>(in, BequestAt::remote_id),
                     .remote_qpn = wire::get_be<uint32_t>(in, BequestAt::remote_qpn),
                     .flow_label = wire::get_be<uint32_t>(in, BequestAt::flow_label),
                     .local = wire::get_bytes<uint8_t, 16>(in, BequestAt::local),
                     .remote = wire::get_bytes<uint8_t, 16>(in, BequestAt::remote),
                     .traffic_class = wire::get_be<uint8_t>(in, BequestAt::traffic_class),
                     .hop_limit = wire::get_be<uint8_t>(in, BequestAt::hop_limit)};
  const bool is_right =
      read.local_id != 0 && read.remote_id != 0 && read.remote_qpn <= kLastQpn && read.flow_label <= kLastFlowLabel;
  return is_right ? std::optional(read) : std::nullopt;
}

Will::Will(std::string directory, uint32_t slot, uint64_t network)
    : directory_(std::move(directory)), slot_(slot), network_(network) {}

/// Locked before it has its name: one that is not locked is a dead one's.
bool Will::make() {
  uint64_t random = 0;
  const base::UniqueFd folder = open_folder(directory_);
  if (!folder.is_open() || getrandom(&random, sizeof random, 0) != sizeof random) {
    return false;
  }
  const std::string fresh = fmt::format("{}.new-will", slot_);  // the slot is ours, and so is what lies there
  unlinkat(folder.get(), fresh.c_str(), 0);
  base::UniqueFd file(openat(folder.get(), fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  std::array<std::byte, WillAt::end> header{};
  wire::put_be(std::span<std::byte>(header), WillAt::magic, kWillMagic);
  wire::put_be(std::span<std::byte>(header), WillAt::network, network_);
  std::string name = fmt::format("{}-{:016x}{}", slot_, random, kWillSuffix);
  if (!file.is_open() || flock(file.get(), LOCK_EX | LOCK_NB) != 0 ||
      pwrite(file.get(), header.data(), header.size(), 0) != static_cast<ssize_t>(header.size()) ||
      renameat(folder.get(), fresh.c_str(), folder.get(), name.c_str()) != 0) {
    unlinkat(folder.get(), fresh.c_str(), 0);
    return false;
  }
  file_ = std::move(file);
  name_ = std::move(name);
  return true;
}

void Will::put(const Bequest& bequest) {
  const base::LockGuard guard(mutex_);
  if (!file_.is_open() && !make()) {
    return;
  }
  const auto [entry, is_new] = places_.try_emplace(bequest.local_id, 0);
  if (is_new && free_.empty()) {
    free_.push_back(end_++);
  }
  if (is_new) {
    entry->second = free_.back();
    free_.pop_back();
  }
  // Within a page, so that a signal that ends us does not fall into the middle of it.
  const auto bytes = emit(bequest);
  [[maybe_unused]] const ssize_t written = pwrite(file_.get(), bytes.data(), bytes.size(), offset_of(entry->second));
}

void Will::remove(uint32_t local_id) {
  const base::LockGuard guard(mutex_);
  const auto found = places_.find(local_id);
  if (found == places_.end() || !file_.is_open()) {
    return;
  }
  constexpr std::array<std::byte, kBequestBytes> kEmpty{};
  [[maybe_unused]] const ssize_t written = pwrite(file_.get(), kEmpty.data(), kEmpty.size(), offset_of(found->second));
  free_.push_back(found->second);
  places_.erase(found);
}

void Will::leave() {
  const base::LockGuard guard(mutex_);
  if (file_.is_open()) {
    unlink((directory_ + "/" + name_).c_str());
    file_.reset();
  }
}

std::vector<OpenWill> wills_of_the_dead(const std::string& directory, uint64_t network) {
  std::vector<OpenWill> found;
  const base::UniqueFd folder = open_folder(directory);
  static_cast<void>(base::each_name_in(directory.c_str(), [&](std::string_view entry) {
    if (!entry.ends_with(kWillSuffix)) {
      return;
    }
    OpenWill will{std::string(entry), {}, {}};
    will.file = base::UniqueFd(openat(folder.get(), will.name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!will.file.is_open() || flock(will.file.get(), LOCK_EX | LOCK_NB) != 0 ||
        !is_still_there(folder.get(), will.name, will.file.get())) {
      return;
    }
    if (auto bequests = read_will(will.file.get(), network)) {
      will.bequests = std::move(*bequests);
      found.push_back(std::move(will));
    }
  }));
  return found;
}

void remove(const std::string& directory, const OpenWill& will) { unlink((directory + "/" + will.name).c_str()); }

}  // namespace ringbolt::device
