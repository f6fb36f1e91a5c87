#pragma once

// Hot path: Registered::key() and holds() do nothing but read.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "circuit/devices.h"
#include "circuit/log.h"

namespace ringbolt::circuit {

/// Devices with which one piece of memory is registered at most; what further ones carry goes by frames.
inline constexpr size_t kMostDevices = 8;

/// Keys of one device for a piece of memory.
struct Keys {
  uint32_t local = 0;
  uint32_t remote = 0;
  friend bool operator==(const Keys&, const Keys&) = default;
};
/// [device]; without a value: it is not registered there.
using DeviceKeys = std::array<std::optional<Keys>, kMostDevices>;

/// Pages that are registered with all devices that are in use: what whoever holds them sends from and receives into.
/// Thread-safe. Owned by Registrations, while anybody has added it.
class Registered {
 public:
  Registered(uintptr_t first, uintptr_t end) : first_(first), end_(end) {}

  bool holds(const void* data, size_t size) const {
    const auto at = reinterpret_cast<uintptr_t>(data);
    return at >= first_ && at <= end_ && size <= end_ - at;
  }
  /// None: the device is not in use, or has refused. `device`: Device::number.
  std::optional<Keys> key(size_t device) const {
    if (device >= kMostDevices || (have_.load(std::memory_order_acquire) >> device & 1U) == 0) {
      return std::nullopt;
    }
    return keys_[device];
  }
  /// All that there are now, for who must not look here later.
  DeviceKeys keys() const {
    DeviceKeys all;
    for (size_t device = 0; device < kMostDevices; ++device) {
      all[device] = key(device);
    }
    return all;
  }

 private:
  /// Circuits, the endpoint and the program's registrations share it. Its regions go before its devices.
  friend class Registrations;
  const uintptr_t first_;
  const uintptr_t end_;
  /// Of those devices the keys are written and stay. Pairs with the acquire in key(); written under the cache's lock.
  std::atomic<uint32_t> have_ = 0;
  std::array<Keys, kMostDevices> keys_{};
  std::array<std::optional<verbs::MemoryRegion>, kMostDevices> regions_;
  uint32_t n_users_ = 0;
};

/// A process's memory that is registered with its devices, by whole pages, each range once however often it is asked
/// for: a part of what is there already costs nothing. Devices are used from the first rail over them on. What a
/// device refuses is said, and no error: that memory goes by frames. Thread-safe; registers under a lock, which no
/// data call takes.
class Registrations {
 public:
  Registrations(std::shared_ptr<const Devices> devices, Log log) : devices_(std::move(devices)), log_(std::move(log)) {}

  /// For as many remove(). Of all devices in use. Null: no such range of memory is possible. Blocks while devices pin
  /// the pages: milliseconds for a GiB. The memory must stay mapped until remove(). Two ranges that overlap, and of
  /// which none holds the other, are registered each.
  const Registered* add(void* data, size_t size) RINGBOLT_EXCLUDES(lock_);
  /// It must not be asked any more by whoever has added it; once nobody is left, the devices are told.
  void remove(const Registered* one) RINGBOLT_EXCLUDES(lock_);
  /// From now on all memory is registered with this one, too.
  void use(const Device& device) RINGBOLT_EXCLUDES(lock_);

  /// Ranges that are registered now.
  size_t size() RINGBOLT_EXCLUDES(lock_);

 private:
  void register_with(Registered& one, size_t device) RINGBOLT_REQUIRES(lock_);

  const std::shared_ptr<const Devices> devices_;
  const Log log_;
  base::Mutex lock_;
  uint32_t in_use_ RINGBOLT_GUARDED_BY(lock_) = 0;  ///< a bit for each device
  bool has_warned_ RINGBOLT_GUARDED_BY(lock_) = false;
  std::multimap<uintptr_t, std::unique_ptr<Registered>> by_first_ RINGBOLT_GUARDED_BY(lock_);
};

}  // namespace ringbolt::circuit
