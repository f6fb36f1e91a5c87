#pragma once

#include <infiniband/verbs.h>

#include <new>

#include "base/calling_place.h"
#include "sanitizer/shadow.h"

/// Where the border meets the sanitizer, in programs that are started with RINGBOLT_SANITIZE. In others shadow() is
/// null: then a context's table has the device's own calls, and the rest tests a constant.
namespace ringbolt::abi {

/// For the life of the process; null: nobody wants to hear of mistakes. Thread-safe.
/// Made when the library is loaded, so later calls only test a constant.
sanitizer::Shadow* shadow();

/// Puts the sanitizer's calls in place of the device's.
void sanitize_calls(ibv_context_ops& ops);

/// While it lives, calls in this thread are known to come from there: by the extended verbs, whose functions are ours
/// and call the table in the program's name. To find that out by the stack takes microseconds.
class SiteScope {
 public:
  /// One at a time in a thread. `frame`, `returns_to`: of the function that the program calls.
  SiteScope(const void* frame, const void* returns_to);
  SiteScope(const SiteScope&) = delete;
  SiteScope& operator=(const SiteScope&) = delete;
  ~SiteScope();
};

/// `kCall`, as the program calls it; for a table, where there is a sanitizer.
template <auto kCall, class Answer, class... Arguments>
[[gnu::always_inline]] inline Answer from_program(Arguments... arguments) {
  const SiteScope scope(__builtin_frame_address(0), __builtin_return_address(0));
  return kCall(arguments...);
}

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
/// May throw std::bad_alloc, which the guard of the call turns into an errno.
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
