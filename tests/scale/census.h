// What this process holds, as /proc/self tells it.
#pragma once

#include <cstddef>
#include <string>

namespace ringbolt::scale {

/// True in builds whose allocator keeps freed memory: their memory figures mean nothing; under thread sanitizer not
/// even the number of mappings.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kIsThreadSanitized = true;
#else
inline constexpr bool kIsThreadSanitized = false;
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif
#else
inline constexpr bool kIsSanitized = false;
#endif

struct Census {
  size_t descriptors = 0;
  size_t threads = 0;
  size_t mappings = 0;
  size_t resident_kib = 0;

  friend bool operator==(const Census&, const Census&) = default;
};

Census take_census();

std::string describe(const Census& census);

/// Expects that descriptors and threads came back to `before`, that at most `spare_mappings` more
/// mappings and, in plain builds, at most `spare_kib` more memory are held. Threads that are just
/// ending get until a deadline.
void expect_no_growth(const Census& before, size_t spare_mappings, size_t spare_kib);

}  // namespace ringbolt::scale
