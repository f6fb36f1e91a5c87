#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/c_border.h"
#include "base/error.h"
#include "ringbolt/stream.h"
#include "stream/end_words.h"
#include "stream/listener.h"
#include "stream/stream.h"

// What the files of the C border share.

/// Owned by the program until ringbolt_stream_service_destroy(). Listeners and streams hold shares of the service
/// itself.
struct ringbolt_stream_service {
  std::shared_ptr<ringbolt::stream::Service> service;
};

struct ringbolt_stream_listener {
  std::unique_ptr<ringbolt::stream::Listener> listener;
};

/// Owned by the program until ringbolt_stream_destroy(); null inside only before it is given out.
struct ringbolt_stream {
  std::unique_ptr<ringbolt::stream::Stream> stream;
};

namespace ringbolt::stream::c_border {

using ringbolt::c_border::refuse;
using ringbolt::c_border::write_words;

/// What a call that may throw answers.
template <class Call>
int guarded(Call&& call) {
  return ringbolt::c_border::guarded_with_words(std::forward<Call>(call));
}

/// An errno of a stream, with its words.
int answer(const Stream& stream, int error);

/// Makes `call(stream)`, whose errno is the answer.
/// The words of a refusal are the calling thread's (ringbolt_stream_error()).
template <class Call>
int on(const ringbolt_stream* handle, Call&& call) {
  if (handle == nullptr) {
    return refuse(EINVAL, "the stream is NULL");
  }
  return guarded([&] {
    const int error = call(*handle->stream);
    return error == 0 ? 0 : answer(*handle->stream, error);
  });
}

/// A struct of options as this version knows it: what an older program does not know is 0, and of what we don't know
/// all must be 0 (as clone3(2) has it). 0 or EINVAL.
template <class Options>
int understand(const Options* given, size_t first_size, Options& known) {
  known = {};
  if (given == nullptr) {
    return 0;
  }
  if (given->struct_size < first_size) {
    return refuse(EINVAL, "struct_size must be sizeof of the options");
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  // The caller vouches that so many bytes are there.
  for (size_t i = sizeof known; i < given->struct_size; ++i) {
    if (bytes[i] != 0) {
      return refuse(EINVAL,
                    "the options ask for what this version of libringbolt-stream does not know: install a newer one");
    }
  }
  std::memcpy(&known, given, std::min(given->struct_size, sizeof known));
  return 0;
}

/// 0, or EINVAL with words.
int read_options(const ringbolt_stream_options* given, StreamSettings& settings);

inline constexpr const char* kNoPlace = "there is no place for the answer: an output is NULL";

}  // namespace ringbolt::stream::c_border
