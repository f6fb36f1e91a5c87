#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "profile/gid_layout.h"

namespace ringbolt::device {

/// The addresses of a port at one moment. A value.
struct GidTables {
  std::vector<ibv_gid> known;  ///< those that it has; what a fault took away is all zeros
  std::vector<ibv_gid> shown;  ///< the GID table; a slot may be all zeros
};

/// The GID table `table` when the port's addresses have become `found`: what is there stays where it is, what is gone
/// leaves a slot of zeros, and what is new takes the first free slot, or a further one up to `capacity`. An empty table
/// stays empty. Pure. Thread-safe.
std::vector<ibv_gid> renewed(profile::GidLayout layout, const std::vector<ibv_gid>& table,
                             const std::vector<ibv_gid>& found, size_t capacity);

/// The addresses of a port, which come and go while programs have it open. Thread-safe.
class LiveGids {
 public:
  explicit LiveGids(GidTables listed);

  /// Never null.
  std::shared_ptr<const GidTables> now() const;
  /// Another one after each change.
  uint32_t generation() const;

  /// The port has these addresses now. Throws std::bad_alloc.
  void find(profile::GidLayout layout, const std::vector<ibv_gid>& found, size_t capacity);
  /// The address at this index of the table is away, or none is. Throws std::bad_alloc.
  void hide(std::optional<uint64_t> index);

 private:
  void settle() RINGBOLT_REQUIRES(mutex_);

  mutable base::Mutex mutex_;
  GidTables there_ RINGBOLT_GUARDED_BY(mutex_);  // whatever is hidden
  std::optional<uint64_t> hidden_index_ RINGBOLT_GUARDED_BY(mutex_);
  std::shared_ptr<const GidTables> now_ RINGBOLT_GUARDED_BY(mutex_);
  uint32_t generation_ RINGBOLT_GUARDED_BY(mutex_) = 0;
};

}  // namespace ringbolt::device
