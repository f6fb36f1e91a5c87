#pragma once

#include <infiniband/verbs.h>

#include <new>

#include "base/calling_place.h"
#include "sanitizer/shadow.h"

/// Where the border meets the sanitizer, in programs that are started with RINGBOLT_SANITIZE. In others shadow() is
/// null: then a context's table has the device's own calls, and the rest tests a constant.
namespace ringbolt::abi {

/// For the life of the process; null: nobody wants to hear of mistakes. Thread-safe.
sanitizer::Shadow* shadow();

/// Puts the sanitizer's calls in place of the device's.
void sanitize_calls(ibv_context_ops& ops);

/// Whether the address lies in our connection manager, whose own objects live as long as it does.
bool is_of_connection_manager(const void* address);

/// Tells it what the program has done: `tell(shadow, site)`. What can't be noted for want of memory is not.
template <class Tell>
void tell_sanitizer(Tell&& tell) {
  if (sanitizer::Shadow* const known = shadow(); known != nullptr) [[unlikely]] {
    try {
      tell(*known, base::call_site());
    } catch (const std::bad_alloc&) {
    }
  }
}

inline void note_made(sanitizer::ObjectKind kind, const void* object) {
  tell_sanitizer([&](sanitizer::Shadow& known, const base::CallSite& site) { known.made(kind, object, site); });
}
inline void note_lookup(const ibv_context* context) {
  if (sanitizer::Shadow* const known = shadow(); known != nullptr) [[unlikely]] {
    known->looked_up(context);
  }
}
/// Before its memory may be another object's.
inline void note_gone(const void* object) {
  if (sanitizer::Shadow* const known = shadow(); known != nullptr) [[unlikely]] {
    known->gone(object);
  }
}

}  // namespace ringbolt::abi
