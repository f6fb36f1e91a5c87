#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>
#include <utility>

#include "base/c_border.h"
#include "group/failure.h"
#include "group/group.h"
#include "ringbolt/ringbolt.h"

// What the files of the C border share.

/// Owned by the program from the call that made it to ringbolt_leave().
struct ringbolt_group {
  ringbolt::group::Group group;
};

/// Owned by the program until ringbolt_wait(), which gives it back.
struct ringbolt_request {
  ringbolt::group::Request request;
};

namespace ringbolt::c_border {

/// 0 or an errno. The words stay for the calling thread: ringbolt_error().
inline int answer(Status status) {
  if (!status.is_ok()) [[unlikely]] {
    last_error() = std::move(status.text);
  }
  return status.code;
}

/// What a call that may throw answers; see base/c_border.h.
/// Nothing is thrown through the border: `call` has written no output if it throws.
template <class Call>
int guarded(Call&& call) {
  return guarded_with_words([&] {
    try {
      return call();
    } catch (const group::JoinError& error) {
      return refuse(error.code(), error.what());
    }
  });
}

/// A number that there is no value for stays one: no bits are cut off.
/// Cut to a byte, 256 would be 0, which is a type.
inline Type of(ringbolt_type type) { return static_cast<Type>(std::min<unsigned>(type, UINT8_MAX)); }
inline Reduction of(ringbolt_reduction reduction) {
  return static_cast<Reduction>(std::min<unsigned>(reduction, UINT8_MAX));
}

/// A number for every rank; none for NULL, which the call refuses then.
inline std::span<const size_t> per_rank(const group::Group& group, const size_t* counts) {
  return {counts, counts == nullptr ? 0 : group.size()};
}

/// 0: the group's own timeout.
inline CallOptions within(uint64_t timeout_ms) {
  CallOptions options;
  options.timeout_ms = timeout_ms;
  return options;
}

inline constexpr const char* kNoGroup = "the group is NULL: nothing was joined, or its color was negative";

/// Makes `call(group)`, whose Status is the answer.
template <class Call>
int on(ringbolt_group* group, Call&& call) {
  if (group == nullptr) {
    return refuse(EINVAL, kNoGroup);
  }
  return guarded([&] { return answer(call(group->group)); });
}

/// Makes `call(group)`, whose Request is the caller's from now on.
template <class Call>
int begin(ringbolt_group* group, ringbolt_request** request, Call&& call) {
  if (group == nullptr || request == nullptr) {
    return refuse(EINVAL, group == nullptr ? kNoGroup : "there is no place for the request");
  }
  return guarded([&] {
    *request = new ringbolt_request{call(group->group)};
    return answer({});
  });
}

}  // namespace ringbolt::c_border
