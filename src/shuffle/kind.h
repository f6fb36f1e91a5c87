#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// What the specification allows and cards rarely do, decided from a seed: pure decisions, without clock or I/O.
/// docs/shuffle.md is the page for users.
namespace ringbolt::shuffle {

/// The order is part of what a seed means (Shuffle): new ones go to the end.
enum class Kind : uint8_t {
  late,     ///< completions are seen late, several at once
  events,   ///< an event comes, and the completion queue is empty
  order,    ///< bytes of WRITEs, READs and receives appear in any order before the completion
  pairs,    ///< queue pairs get on independently of each other
  buffers,  ///< the memory of a send is read long after it was posted
  fence,    ///< sends pass READs and atomics that no fence holds them behind
  acks,     ///< sends complete long after their peer has what they carry
  rnr,      ///< a SEND meets the receives as they are when it arrives
  async,    ///< asynchronous events come late
};
inline constexpr size_t kKinds = 9;

struct KindText {
  std::string_view name;
  std::string_view meaning;
};

/// By kind, as help and messages have them.
inline constexpr std::array<KindText, kKinds> kKindTexts{{
    {"late", "completions are seen late, several at once"},
    {"events", "an event comes although the completion queue is empty"},
    {"order", "bytes appear in any order before their completion"},
    {"pairs", "queue pairs get on independently of each other"},
    {"buffers", "the memory of a send is read late"},
    {"fence", "sends pass READs and atomics, where no fence holds them back"},
    {"acks", "sends complete long after their peer has what they carry"},
    {"rnr", "a SEND meets the receives that are posted when it arrives"},
    {"async", "asynchronous events come late"},
}};

/// Pure. Of one of the kinds alone: no other value is looked at.
constexpr std::string_view name_of(Kind kind) { return kKindTexts[static_cast<size_t>(kind)].name; }

}  // namespace ringbolt::shuffle
