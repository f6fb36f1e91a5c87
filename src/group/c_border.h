#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/c_border.h"
#include "base/error.h"
#include "group/failure.h"
#include "group/group.h"
#include "ringbolt/ringbolt.h"

// What the files of the C border share: no exception crosses it, and what it refuses it says in words of the calling
// thread.

#define RINGBOLT_PUBLIC __attribute__((visibility("default")))

struct ringbolt_group {
  ringbolt::group::Group group;
};

struct ringbolt_request {
  ringbolt::group::Request request;
};

namespace ringbolt::c_border {

/// The words of the calling thread's last error.
std::string& last_error();

inline int answer(Status status) {
  if (!status.is_ok()) [[unlikely]] {
    last_error() = std::move(status.text);
  }
  return status.code;
}

/// Where there is no memory for the words, the number has to do.
inline int refuse(int code, const char* words) noexcept {
  try {
    last_error() = words;
  } catch (const std::bad_alloc&) {
    last_error().clear();
  }
  return code;
}

/// What a call that may throw answers; see base/c_border.h.
template <class Call>
int guarded(Call&& call) {
  try {
    return call();
  } catch (const base::Error& error) {
    return refuse(error.errno_value() != 0 ? error.errno_value() : EIO, error.what());
  } catch (const group::JoinError& error) {
    return refuse(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return refuse(ENOMEM, "out of memory");
  } catch (const std::out_of_range& error) {
    return refuse(ERANGE, error.what());
  } catch (const std::exception& error) {
    return refuse(EIO, error.what());
  } catch (...) {
    return refuse(base::caught_errno(), "an exception of no known kind");
  }
}

/// A number that there is no value for stays one: no bits are cut off.
inline Type of(ringbolt_type type) { return static_cast<Type>(std::min<unsigned>(type, UINT8_MAX)); }
inline Reduction of(ringbolt_reduction reduction) {
  return static_cast<Reduction>(std::min<unsigned>(reduction, UINT8_MAX));
}

/// A number for every rank; none for NULL, which the call refuses then.
inline std::span<const size_t> per_rank(const group::Group& group, const size_t* counts) {
  return {counts, counts == nullptr ? 0 : group.size()};
}

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
