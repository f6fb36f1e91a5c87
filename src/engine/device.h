#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "verbs/library.h"
#include "verbs/objects.h"
#include "verbs/slab.h"

namespace ringbolt::engine {

/// An open device and what all its cables share: one protection domain, one completion queue and, once there is a slab,
/// one region. Not thread-safe.
/// Owned by a station; cables refer to it. Members end in the reverse order: the region before its domain.
class Device {
 public:
  /// `entries`: of the completion queue. With events if the device has them. Throws base::Error.
  Device(const verbs::Library& library, const std::string& name, int entries);

  const std::string& name() const { return context_.device(); }
  const verbs::Context& context() const { return context_; }
  const verbs::ProtectionDomain& pd() const { return pd_; }
  const verbs::CompletionQueue& cq() const { return *cq_; }
  /// Null if the device has no events.
  const verbs::CompletionChannel* channel() const { return channel_ ? &*channel_ : nullptr; }

  /// Registers the slab that all devices of the process share: before any queue pair goes to RTR, since some devices
  /// know no later ones. Throws base::Error.
  void register_slab(const verbs::Slab& slab) { region_.emplace(pd_, slab.bytes()); }
  /// Of the slab, in bytes; after register_slab().
  ibv_sge piece(size_t offset, size_t length) const { return region_->piece(offset, length); }

 private:
  verbs::Context context_;
  verbs::ProtectionDomain pd_;
  std::optional<verbs::CompletionChannel> channel_;
  std::optional<verbs::CompletionQueue> cq_;
  std::optional<verbs::MemoryRegion> region_;
};

}  // namespace ringbolt::engine
