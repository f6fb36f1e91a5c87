#pragma once

#include <infiniband/verbs.h>

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "profile/gid_layout.h"

namespace ringbolt::abi {

/// The GID table of a port as ibv_query_gid_ex(3) and ibv_query_gid_table(3) show it. Refers to the addresses, all
/// zeros in a slot that has none, and owns nothing. Entries are written as far as their caller knows them, in
/// structures of `entry_bytes`: programs are older or younger than this library. Thread-safe.
class GidEntries {
 public:
  /// `length`: of the table, of which `shown` may be the first part; `netdev_index`: 0 for one in shared memory.
  /// `shown` must stay until this is gone.
  GidEntries(std::span<const ibv_gid> shown, uint32_t length, profile::GidLayout layout, uint32_t netdev_index)
      : shown_(shown), length_(length), layout_(layout), netdev_index_(netdev_index) {}

  bool has(int64_t index) const { return index >= 0 && index < int64_t{length_}; }
  uint32_t length() const { return length_; }
  /// All zeros in an empty slot. has(index).
  ibv_gid at(uint32_t index) const { return index < shown_.size() ? shown_[index] : ibv_gid{}; }
  /// 0; ENODATA: the slot is empty, and nothing is written. has(index).
  int write(uint32_t index, void* entry, size_t entry_bytes) const;
  /// The entries that are not empty, and their number; -EINVAL: there are more than `most`.
  /// `most`: entries, of entry_bytes each, that there is room for. With -EINVAL the first `most` are written.
  ssize_t write_all(void* entries, size_t most, size_t entry_bytes) const;

 private:
  void put(uint32_t index, void* entry, size_t entry_bytes) const;

  std::span<const ibv_gid> shown_;
  uint32_t length_;
  profile::GidLayout layout_;
  uint32_t netdev_index_;
};

}  // namespace ringbolt::abi
