#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "wire/flow.h"

/// What others need to end a process' connections once it is dead: a file `<slots>/<slot>-<random>.connections` with
/// its connections over networks, which it holds locked as long as it lives (docs/formats/connection-record.md).
namespace ringbolt::device {

/// A connection as whoever ends it in our place must know it.
struct RecordEntry {
  uint32_t local_id = 0;  ///< never 0
  uint32_t remote_id = 0;
  uint32_t remote_qpn = 0;
  uint32_t flow_label = 0;
  wire::Address local{};
  wire::Address remote{};
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 64;
  friend bool operator==(const RecordEntry&, const RecordEntry&) = default;
};

inline constexpr size_t kRecordEntryBytes = 64;
std::array<std::byte, kRecordEntryBytes> emit(const RecordEntry& entry);
/// Nothing for a place that is empty, or holds what emit() would not write.
std::optional<RecordEntry> parse_record_entry(std::span<const std::byte, kRecordEntryBytes> bytes);

/// The record of this process. What can't be written down, for want of room on the disk, say, nobody will end: that
/// is no reason to have no connection. Thread-safe.
class ConnectionRecord {
 public:
  /// `network`: of this process, link::network_namespace(). The file is made with the first entry.
  ConnectionRecord(std::string directory, uint32_t slot, uint64_t network);

  /// Writes one place of the file: a system call under the lock. One that is known already is written anew.
  void put(const RecordEntry& entry);
  void remove(uint32_t local_id);
  /// The process ends by itself: what it has left to say, it has said.
  void leave();
  /// In a forked child: the parent's lock must not live on in it.
  void abandon_after_fork() RINGBOLT_NOT_ANALYSED { file_.reset(); }

 private:
  bool make() RINGBOLT_REQUIRES(mutex_);

  const std::string directory_;
  const uint32_t slot_;
  const uint64_t network_;
  base::Mutex mutex_;
  base::UniqueFd file_ RINGBOLT_GUARDED_BY(mutex_);  // locked
  std::string name_ RINGBOLT_GUARDED_BY(mutex_);
  std::unordered_map<uint32_t, uint32_t> places_ RINGBOLT_GUARDED_BY(mutex_);  // by local id
  std::vector<uint32_t> free_ RINGBOLT_GUARDED_BY(mutex_);
  uint32_t end_ RINGBOLT_GUARDED_BY(mutex_) = 0;  // of the places that were used
};

/// The record of a process that has ended, opened and locked: nobody else acts on it meanwhile.
struct OpenRecord {
  std::string name;
  base::UniqueFd file;
  std::vector<RecordEntry> entries;
};

/// The records in the folder whose owners were on that network and are dead. That a lock can be had proves it: the
/// owner took it before the file had its name, and the kernel gives it back when the last descriptor of it is closed,
/// which no program does but by ending, by exec, or by closing what is not its own. No process number is looked at, so
/// none can be taken for another's; one that is stopped keeps its locks.
std::vector<OpenRecord> records_of_the_dead(const std::string& directory, uint64_t network);
/// It was carried out, or can't be.
void remove(const std::string& directory, const OpenRecord& record);

}  // namespace ringbolt::device
