#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/calling_place.h"
#include "sanitizer/reports.h"

namespace ringbolt::sanitizer {

/// In this order findings are told.
enum class ObjectKind : uint8_t { pd, mr, mw, cq, channel, qp, srq, ah };

/// What the program has made and must destroy, by pointers that are not followed. Under the lock of Shadow.
class OwnedObjects {
 public:
  /// Throws std::bad_alloc.
  void made(ObjectKind kind, const void* object, const base::CallSite& site) { objects_[object] = {kind, site, {}}; }
  /// Before its memory may be another's.
  void gone(const void* object) { objects_.erase(object); }
  /// A destroy answered EBUSY there.
  void busy(const void* object, const base::CallSite& site);
  /// In a child after fork: they are the parent's.
  void forget() { objects_.clear(); }

  /// One finding for all of a kind that were made, or were to be destroyed, at the same place; kinds in their order.
  std::vector<Finding> leaks() const;

 private:
  struct Owned {
    ObjectKind kind = ObjectKind::pd;
    base::CallSite made{};
    base::CallSite busy{};  // where it was to be destroyed, and was in use
  };
  std::unordered_map<const void*, Owned> objects_;
};

}  // namespace ringbolt::sanitizer
