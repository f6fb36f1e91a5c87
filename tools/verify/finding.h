#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace ringbolt::tools::verify {

/// What can be wrong. docs/verify.md has a line for each.
/// Its numbers go between ends, and choose the words in finding.cpp.
enum class Kind : uint8_t {
  kLost,       ///< never came
  kDoubled,    ///< came twice
  kOrder,      ///< came after a later one
  kDamaged,    ///< some bytes are others
  kLength,     ///< came longer or shorter
  kOutside,    ///< memory beside it was written
  kLate,       ///< completed first, and its data came a moment later
  kNoData,     ///< completed, and its data never came
  kStale,      ///< holds data of an earlier one
  kForeign,    ///< of another queue pair, or of one that is gone
  kUnasked,    ///< a completion that nothing was posted for, or of another kind
  kStatus,     ///< a completion with an error
  kNowhere,    ///< a WRITE completed, and its target stayed as it was
  kBackwards,  ///< a READ saw less than one before it
  kAccount,    ///< the sum of atomics is wrong
  kLeak,       ///< objects do not come back
  kStall,      ///< nothing moved for too long
  kPeer,       ///< the other end is gone
  kCount,
};

/// "lost", "doubled"... Thread-safe.
const char* text_of(Kind kind);
/// What a kind of finding most likely means; empty: it speaks for itself. Thread-safe.
const char* hint_of(Kind kind);

struct Finding {
  Kind kind = Kind::kLost;
  std::string text;  ///< names queue pair, message and numbers
  friend bool operator==(const Finding&, const Finding&) = default;
};

/// Everything that an end has found, and the words for the first of each kind. Not thread-safe.
/// Sums saturate, since another end may tell any number.
class Tally {
 public:
  /// Of each kind so many texts are kept; all are counted, up to the largest number.
  static constexpr size_t kMostTexts = 5;
  using Counts = std::array<uint64_t, static_cast<size_t>(Kind::kCount)>;

  Tally() = default;
  /// What counts() and findings() of another one were; of findings as many as it would keep.
  Tally(const Counts& counts, std::vector<Finding> findings);

  /// `kind` below kCount. Of 0 times nothing is kept.
  void add(Kind kind, std::string text, uint64_t times = 1);
  /// One, in words.
  template <class... Args>
  void note(Kind kind, fmt::format_string<Args...> text, Args&&... args) {
    add(kind, fmt::format(text, std::forward<Args>(args)...));
  }
  /// What another end or an earlier step has found.
  void add(const Tally& other);
  uint64_t total() const { return total_; }
  uint64_t count(Kind kind) const { return counts_[static_cast<size_t>(kind)]; }
  const Counts& counts() const { return counts_; }
  const std::vector<Finding>& findings() const { return findings_; }

 private:
  bool has_room(Kind kind) const;

  Counts counts_{};
  uint64_t total_ = 0;
  std::vector<Finding> findings_;
};

}  // namespace ringbolt::tools::verify
