#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ringbolt::tools::agent {

/// Agents that meet, or are called to. A value.
struct Meeting {
  uint32_t number = 0;               ///< later ones have greater numbers
  uint16_t port = 0;                 ///< at which the first node's agent waits for the others
  std::vector<uint32_t> nodes = {};  ///< ascending; the place of a node is its agent's rank
  friend bool operator==(const Meeting&, const Meeting&) = default;
};

/// What is in the file: the number of the last meeting, and those that no later one has a node of.
struct MeetingsText {
  uint32_t last = 0;
  std::vector<Meeting> meetings = {};
  friend bool operator==(const MeetingsText&, const MeetingsText&) = default;
};
std::string emit(const MeetingsText& text);
/// Nothing for a text that emit() would not write.
std::optional<MeetingsText> parse_meetings(const std::string& text);

/// Who meets, as a cluster's agents agree upon it in a file: docs/formats/overlay.md. Thread-safe.
class Meetings {
 public:
  explicit Meetings(std::string path) : path_(std::move(path)) {}

  /// The number of the last one; 0: there was none.
  uint32_t last() const;
  /// The last one that `node` was called to.
  std::optional<Meeting> of(uint32_t node) const;
  /// Calls `nodes`, one of which is `node`, to meet. If somebody has called `node` to another one than number `known`
  /// meanwhile, that is the one that it returns. Throws base::Error.
  Meeting call(uint32_t node, const std::vector<uint32_t>& nodes, uint32_t known) const;

 private:
  std::string path_;
};

}  // namespace ringbolt::tools::agent
