#include "device/connection_record.h"

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

struct ConnectionRecordAt {
  static constexpr size_t magic = 0, network = 8, end = kRecordEntryBytes;  // the first place is the header's
};
constexpr uint64_t kWillMagic = 0x5242'7769'6c6c'0001;  // "RBwill", version 1

struct RecordEntryAt {
  static constexpr size_t local_id = 0, remote_id = 4, remote_qpn = 8, flow_label = 12, local = 16, remote = 32,
                          traffic_class = 48, hop_limit = 49, end = 50;
};
static_assert(RecordEntryAt::end <= kRecordEntryBytes);

constexpr std::string_view kSuffix = ".connections";
// A million connections: what is longer was not written by us.
constexpr size_t kMaxWillBytes = size_t{64} << 20;
constexpr uint32_t kLastQpn = 0xffffff;
constexpr uint32_t kLastFlowLabel = 0xfffff;

off_t offset_of(uint32_t place) { return static_cast<off_t>(place + 1) * static_cast<off_t>(kRecordEntryBytes); }

/// Nothing if it is no record of that network.
std::optional<std::vector<RecordEntry>> read_record(int fd, uint64_t network) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || status.st_size < static_cast<off_t>(ConnectionRecordAt::end) ||
      status.st_size > static_cast<off_t>(kMaxWillBytes)) {
    return std::nullopt;
  }
  std::vector<std::byte> bytes(static_cast<size_t>(status.st_size));
  const ssize_t got = pread(fd, bytes.data(), bytes.size(), 0);
  if (got < static_cast<ssize_t>(ConnectionRecordAt::end) ||
      wire::get_be<uint64_t>(bytes, ConnectionRecordAt::magic) != kWillMagic ||
      wire::get_be<uint64_t>(bytes, ConnectionRecordAt::network) != network) {
    return std::nullopt;
  }
  std::vector<RecordEntry> entries;
  for (size_t at = ConnectionRecordAt::end; at + kRecordEntryBytes <= static_cast<size_t>(got);
       at += kRecordEntryBytes) {
    if (const auto one = parse_record_entry(std::span(bytes).subspan(at).first<kRecordEntryBytes>())) {
      entries.push_back(*one);
    }
  }
  return entries;
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

std::array<std::byte, kRecordEntryBytes> emit(const RecordEntry& entry) {
  std::array<std::byte, kRecordEntryBytes> bytes{};
  const std::span<std::byte> out(bytes);
  wire::put_be(out, RecordEntryAt::local_id, entry.local_id);
  wire::put_be(out, RecordEntryAt::remote_id, entry.remote_id);
  wire::put_be(out, RecordEntryAt::remote_qpn, entry.remote_qpn);
  wire::put_be(out, RecordEntryAt::flow_label, entry.flow_label);
  wire::put_bytes(out, RecordEntryAt::local, entry.local);
  wire::put_bytes(out, RecordEntryAt::remote, entry.remote);
  wire::put_be(out, RecordEntryAt::traffic_class, entry.traffic_class);
  wire::put_be(out, RecordEntryAt::hop_limit, entry.hop_limit);
  return bytes;
}

std::optional<RecordEntry> parse_record_entry(std::span<const std::byte, kRecordEntryBytes> in) {
  const RecordEntry read{.local_id = wire::get_be<uint32_t>(in, RecordEntryAt::local_id),
                         .remote_id = wire::get_be<uint32_t>(in, RecordEntryAt::remote_id),
                         .remote_qpn = wire::get_be<uint32_t>(in, RecordEntryAt::remote_qpn),
                         .flow_label = wire::get_be<uint32_t>(in, RecordEntryAt::flow_label),
                         .local = wire::get_bytes<uint8_t, 16>(in, RecordEntryAt::local),
                         .remote = wire::get_bytes<uint8_t, 16>(in, RecordEntryAt::remote),
                         .traffic_class = wire::get_be<uint8_t>(in, RecordEntryAt::traffic_class),
                         .hop_limit = wire::get_be<uint8_t>(in, RecordEntryAt::hop_limit)};
  const bool is_right =
      read.local_id != 0 && read.remote_id != 0 && read.remote_qpn <= kLastQpn && read.flow_label <= kLastFlowLabel;
  return is_right ? std::optional(read) : std::nullopt;
}

ConnectionRecord::ConnectionRecord(std::string directory, uint32_t slot, uint64_t network)
    : directory_(std::move(directory)), slot_(slot), network_(network) {}

/// Locked before it has its name: one that is not locked is a dead one's.
bool ConnectionRecord::make() {
  uint64_t random = 0;
  const base::UniqueFd folder = open_folder(directory_);
  if (!folder.is_open() || getrandom(&random, sizeof random, 0) != sizeof random) {
    return false;
  }
  const std::string fresh = fmt::format("{}.new-connections", slot_);  // the slot is ours, and so is what lies there
  unlinkat(folder.get(), fresh.c_str(), 0);
  base::UniqueFd file(openat(folder.get(), fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  std::array<std::byte, ConnectionRecordAt::end> header{};
  wire::put_be(std::span<std::byte>(header), ConnectionRecordAt::magic, kWillMagic);
  wire::put_be(std::span<std::byte>(header), ConnectionRecordAt::network, network_);
  std::string name = fmt::format("{}-{:016x}{}", slot_, random, kSuffix);
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

void ConnectionRecord::put(const RecordEntry& entry) {
  const base::LockGuard guard(mutex_);
  if (!file_.is_open() && !make()) {
    return;
  }
  const auto [place, is_new] = places_.try_emplace(entry.local_id, 0);
  if (is_new && free_.empty()) {
    free_.push_back(end_++);
  }
  if (is_new) {
    place->second = free_.back();
    free_.pop_back();
  }
  // Within a page, so that a signal that ends us does not fall into the middle of it.
  const auto bytes = emit(entry);
  [[maybe_unused]] const ssize_t written = pwrite(file_.get(), bytes.data(), bytes.size(), offset_of(place->second));
}

void ConnectionRecord::remove(uint32_t local_id) {
  const base::LockGuard guard(mutex_);
  const auto found = places_.find(local_id);
  if (found == places_.end() || !file_.is_open()) {
    return;
  }
  constexpr std::array<std::byte, kRecordEntryBytes> kEmpty{};
  [[maybe_unused]] const ssize_t written = pwrite(file_.get(), kEmpty.data(), kEmpty.size(), offset_of(found->second));
  free_.push_back(found->second);
  places_.erase(found);
}

void ConnectionRecord::leave() {
  const base::LockGuard guard(mutex_);
  if (file_.is_open()) {
    unlink((directory_ + "/" + name_).c_str());
    file_.reset();
  }
}

std::vector<OpenRecord> records_of_the_dead(const std::string& directory, uint64_t network) {
  std::vector<OpenRecord> found;
  const base::UniqueFd folder = open_folder(directory);
  static_cast<void>(base::each_name_in(directory.c_str(), [&](std::string_view entry) {
    if (!entry.ends_with(kSuffix)) {
      return;
    }
    OpenRecord record{std::string(entry), {}, {}};
    record.file = base::UniqueFd(openat(folder.get(), record.name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!record.file.is_open() || flock(record.file.get(), LOCK_EX | LOCK_NB) != 0 ||
        !is_still_there(folder.get(), record.name, record.file.get())) {
      return;
    }
    if (auto entries = read_record(record.file.get(), network)) {
      record.entries = std::move(*entries);
      found.push_back(std::move(record));
    }
  }));
  return found;
}

void remove(const std::string& directory, const OpenRecord& record) { unlink((directory + "/" + record.name).c_str()); }

}  // namespace ringbolt::device
