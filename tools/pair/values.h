#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "json_text.h"
#include "pair/peer.h"

// What ends tell each other as structs that nlohmann's macros describe. A struct that not every value of its members
// makes sense for says so by makes_sense().
namespace ringbolt::tools::pair {

/// The value in such a text; nullopt: it is none that an end of ours would tell. Any bytes are safe to pass.
/// Thread-safe.
template <class T>
std::optional<T> value_in(std::string_view text) {
  std::optional<T> value = from_line<T>(text);
  if constexpr (requires { value->makes_sense(); }) {
    return value && value->makes_sense() ? std::move(value) : std::nullopt;
  }
  return value;
}

/// Both throw ProbeFailure as Peer does.
template <class T>
void tell_value(Peer& peer, std::string_view kind, const T& value) {
  peer.tell(kind, to_line(value));
}

/// `what`: the awaited, a noun, for messages.
template <class T>
T await_value(Peer& peer, std::string_view kind, std::string_view what) {
  std::optional<T> value = value_in<T>(peer.await(kind, what));
  if (!value) {
    peer.fail("what the other end tells of {} makes no sense", what);
  }
  return std::move(*value);
}

/// Each end tells the other one's.
template <class T>
T exchange(Peer& peer, std::string_view kind, const T& mine, std::string_view what) {
  tell_value(peer, kind, mine);
  return await_value<T>(peer, kind, what);
}

}  // namespace ringbolt::tools::pair
