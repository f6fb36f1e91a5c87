#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pair/peer.h"

namespace ringbolt::tools::pair {

/// One thing that both ends must have been asked for alike.
struct HelloEntry {
  std::string name;   ///< "queue-pairs"
  std::string flag;   ///< "-q"
  std::string value;  ///< one line
};

/// The first text that the ends send each other: "ringbolt COMMAND 1" and a line "name value" for each entry.
std::string emit_hello(std::string_view command, const std::vector<HelloEntry>& mine);

/// Why an end with `mine` can't work with one that said `theirs`: in words, with both values and the flag. Empty: it
/// can. Any bytes are safe to pass. Thread-safe.
std::string hello_objection(std::string_view command, const std::vector<HelloEntry>& mine, std::string_view theirs);

/// Tells `peer` what this end was asked for, and compares. Throws ProbeFailure, and UsageError with the objection: the
/// peer finds out by itself.
void agree(std::string_view command, const std::vector<HelloEntry>& mine, Peer& peer);

}  // namespace ringbolt::tools::pair
