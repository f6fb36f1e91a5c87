#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "device/context.h"
#include "link/region_table.h"

namespace ringbolt::device {

/// A protection domain. `users` counts the objects in it: it can't be freed while there are any. Thread-safe.
/// Relaxed counting is enough: the program must not free it while it makes something in it.
struct ProtectionDomain {
  explicit ProtectionDomain(Context& owner) : context(owner), key(owner.process().next_pd_key()) {}

  Context& context;
  const uint32_t key;  ///< peers see it in the region table; not reused
  std::atomic<uint32_t> users{0};
  std::atomic<uint64_t> regions_made{0};   ///< so far; a region's number
  std::atomic<uint64_t> stuck_regions{0};  ///< those up to this number can't be deregistered any more
};

/// A registered piece of memory. Not thread-safe, but different regions are independent.
/// Owns its key and its entry in the region table, not the memory. `context` and `process` outlive it by the domain.
class MemoryRegion {
 public:
  /// Publishes `length` bytes from `address`, which users of the key name by addresses from `iova`. EINVAL for flags
  /// that the verbs forbid (remote write or atomics without local write), EOPNOTSUPP for on-demand paging and huge
  /// pages, ENOMEM when keys run out.
  static base::Result<std::unique_ptr<MemoryRegion>> create(ProtectionDomain& pd, uint64_t address, uint64_t length,
                                                            uint64_t iova, uint32_t access);
  /// Waits for the accesses that go on.
  /// Blocks, within Process::wait_for_accesses()'s bound. After that no peer and no queue pair of this process touches
  /// the memory by this key.
  ~MemoryRegion();
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;

  uint32_t key() const { return key_; }
  uint64_t address() const { return region_.host_first; }
  uint64_t length() const { return region_.length; }
  ProtectionDomain& pd() const { return *pd_; }

  /// A memory window is bound to it: it must not go.
  bool has_windows() const;
  /// Its domain had a queue pair that was destroyed in the state ERR, on a device that loses count then.
  bool is_stuck() const { return number_ <= pd_->stuck_regions.load(); }
  /// Changes what the flags of ibv_rereg_mr name; the key stays. 0 or an errno, and then nothing has changed.
  /// Blocks as the destructor does. While it is at it the key opens nothing.
  int change(int flags, ProtectionDomain* pd, uint64_t address, uint64_t length, uint32_t access);

 private:
  MemoryRegion(ProtectionDomain& pd, const link::Region& region, uint32_t key);

  ProtectionDomain* pd_;
  link::Region region_;
  uint32_t key_;
  uint64_t number_;  ///< in its domain
};

/// A memory window: a part of a region under a key of its own. Thread-safe.
/// Owns its key and its place in the window book. Its destructor waits for accesses as that of a region does.
class MemoryWindow {
 public:
  static base::Result<std::unique_ptr<MemoryWindow>> create(ProtectionDomain& pd, ibv_mw_type type);
  ~MemoryWindow();
  MemoryWindow(const MemoryWindow&) = delete;
  MemoryWindow& operator=(const MemoryWindow&) = delete;

  ibv_mw_type type() const { return type_; }
  ProtectionDomain& pd() const { return pd_; }
  /// The key it was given when made; bindings change the low byte.
  uint32_t key() const { return key_; }

 private:
  MemoryWindow(ProtectionDomain& pd, ibv_mw_type type, uint32_t key) : pd_(pd), type_(type), key_(key) {}

  ProtectionDomain& pd_;
  const ibv_mw_type type_;
  const uint32_t key_;
};

/// A binding as a work request asks for it.
struct WindowBinding {
  uint32_t region_key = 0;  ///< the region that the window opens
  uint32_t key = 0;         ///< the key to publish
  uint64_t address = 0;
  uint64_t length = 0;  ///< 0 closes the window
  uint32_t access = 0;
  uint32_t bound_qpn = link::kAnyQueuePair;
};

/// Whether the binding may be made: its key is one of a window of the domain, which is the domain of the region, too,
/// and the region allows it (IBV_ACCESS_MW_BIND, in bounds, no remote write on a region without local write).
/// Thread-safe.
/// Of what is there at this moment: bind_window() asks again.
bool may_bind_window(Process& process, uint32_t pd_key, const WindowBinding& binding);

/// Closes the window that has this key or one like it. The key under which it was open, which peers may use still; 0:
/// it was not. Thread-safe.
uint32_t close_window(Process& process, uint32_t key);

/// Closes a type 2 window that is bound to the queue pair; false when the key names no such window. Thread-safe.
bool invalidate_window(Process& process, uint32_t qpn, uint32_t key);

/// Publishes a closed window over its region. False as may_bind_window(). Thread-safe; allocates nothing.
bool bind_window(Process& process, uint32_t pd_key, const WindowBinding& binding);

/// The bits of ibv_access_flags that change nothing here and are accepted (ordering hints).
inline constexpr uint32_t kHintAccess = IBV_ACCESS_OPTIONAL_RANGE;

}  // namespace ringbolt::device
