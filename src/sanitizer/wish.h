#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Finds misuse of the verbs that the specification forbids and that usually works. See docs/sanitizer.md.
namespace ringbolt::sanitizer {

/// What findings are of: each can be asked for by its name.
/// By their place in kKindNames.
enum class Kind : uint8_t { buffers, early, queues, objects, portable, races };
inline constexpr std::array<std::string_view, 6> kKindNames{"buffers", "early",    "queues",
                                                            "objects", "portable", "races"};
constexpr std::string_view name_of(Kind kind) { return kKindNames[static_cast<size_t>(kind)]; }

/// Which of them somebody wants to hear of.
struct Wish {
  uint32_t kinds = 0;        ///< a bit for each
  std::string unknown = "";  ///< words that are no kind

  bool has(Kind kind) const { return (kinds >> static_cast<uint32_t>(kind) & 1U) != 0; }
  friend bool operator==(const Wish&, const Wish&) = default;
};

/// Of RINGBOLT_SANITIZE: "on" is all kinds but `portable`, which judges by cards that the program may never meet;
/// "all"; kinds, separated by commas; "off" or nothing. Pure. Thread-safe.
Wish parse_wish(std::string_view text);

}  // namespace ringbolt::sanitizer
