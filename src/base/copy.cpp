#include "base/copy.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace ringbolt::base {
namespace {

constexpr size_t kLine = 64;  // x86's; lines of 128 bytes are two of them

#if defined(__x86_64__)
// The least length from which glibc uses rep movsb (x86_rep_movsb_threshold); shorter ones go by vectors anyway.
constexpr size_t kLeastForLines = 2048;
// Below this the four prefetchers don't get going; with more streams than four they are too few (bench/micro).
constexpr size_t kLeastForStreams = 128U << 10U;
constexpr size_t kStreams = 4;

__attribute__((target("avx2"))) void copy_line(std::byte* target, const std::byte* source) {
  const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
  const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + 32));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(target), low);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(target + 32), high);
}

__attribute__((target("avx2"))) void copy_in_lines(std::byte* target, const std::byte* source, size_t length) {
  // Stores are aligned rather than loads: one that crosses a line costs two.
  const size_t head = (kLine - reinterpret_cast<uintptr_t>(target) % kLine) % kLine;
  std::memcpy(target, source, head);
  size_t at = head;
  for (; at + 2 * kLine <= length; at += 2 * kLine) {
    copy_line(target + at, source + at);
    copy_line(target + at + kLine, source + at + kLine);
  }
  std::memcpy(target + at, source + at, length - at);
}

__attribute__((target("avx2"))) void copy_in_streams(std::byte* target, const std::byte* source, size_t length) {
  // A multiple of a line; the up to kStreams lines that this leaves over are copied at the end.
  const size_t stream = length / kStreams & ~(kLine - 1);
  for (size_t at = 0; at < stream; at += kLine) {
    copy_line(target + at, source + at);
    copy_line(target + stream + at, source + stream + at);
    copy_line(target + 2 * stream + at, source + 2 * stream + at);
    copy_line(target + 3 * stream + at, source + 3 * stream + at);
  }
  std::memcpy(target + kStreams * stream, source + kStreams * stream, length - kStreams * stream);
}

/// Where rep movsb is slow: the target lies a little further in its page, and not by whole registers.
bool is_little_ahead(const std::byte* target, const std::byte* source) {
  constexpr uintptr_t kPage = 4096;  // of x86: the bits of an address in which a core compares loads with stores
  constexpr uintptr_t kRegister = 32;
  constexpr uintptr_t kLittle = 512;
  const uintptr_t ahead = (reinterpret_cast<uintptr_t>(target) - reinterpret_cast<uintptr_t>(source)) % kPage;
  return ahead < kLittle && ahead % kRegister != 0;
}

bool has_avx2() {
  // A function's static: copies happen before this file's own globals are certain to be set.
  static const bool known = __builtin_cpu_supports("avx2") != 0;
  return known;
}

/// 64 bytes to an aligned place, past the caches.
// Only the target has to be aligned.
void stream_line(std::byte* target, const std::byte* source) {
  for (size_t part = 0; part < kLine; part += sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(target + part),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + part)));
  }
}

/// A later store that says that they are there could be seen before them.
// Non-temporal stores are weakly ordered (Intel SDM volume 1, 10.4.6.2).
void settle_streams() { _mm_sfence(); }

#elif defined(__aarch64__)

/// 64 bytes in two pairs of registers that ask to be kept out of the caches.
void stream_line(std::byte* target, const std::byte* source) {
  const uint8x16x4_t line = vld1q_u8_x4(reinterpret_cast<const uint8_t*>(source));
  asm volatile(
      "stnp %q[a], %q[b], [%[to]]\n\t"
      "stnp %q[c], %q[d], [%[to], #32]"
      :
      : [a] "w"(line.val[0]), [b] "w"(line.val[1]), [c] "w"(line.val[2]), [d] "w"(line.val[3]), [to] "r"(target)
      : "memory");
}

/// Here they are stores like others to whoever releases what they wrote: the store that says so is a release.
void settle_streams() {}

#else

void stream_line(std::byte* target, const std::byte* source) { std::memcpy(target, source, kLine); }
void settle_streams() {}

#endif

}  // namespace

void copy(void* target, const void* source, size_t length_bytes) {
  if (length_bytes < kLeastCalled) {
    // No recursion: copy_short() calls back from kLeastCalled on only.
    return copy_short(target, source, length_bytes);
  }
#if defined(__x86_64__)
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  if (length_bytes < kLeastForLines || !has_avx2()) {
    std::memcpy(to, from, length_bytes);
  } else if (length_bytes >= kLeastForStreams) {
    copy_in_streams(to, from, length_bytes);
  } else if (is_little_ahead(to, from)) {
    copy_in_lines(to, from, length_bytes);
  } else {
    std::memcpy(to, from, length_bytes);
  }
#else
  std::memcpy(target, source, length_bytes);
#endif
}

void copy_past_caches(void* target, const void* source, size_t length_bytes) {
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  const size_t head = std::min(length_bytes, (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from, head);
  size_t at = head;
  for (; at + kLine <= length_bytes; at += kLine) {
    stream_line(to + at, from + at);
  }
  std::memcpy(to + at, from + at, length_bytes - at);
  settle_streams();
}

}  // namespace ringbolt::base
