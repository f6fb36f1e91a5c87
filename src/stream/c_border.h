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

// What the files of the C border share: no exception crosses it, and what it refuses it says in words of the calling
// thread.

#define RINGBOLT_PUBLIC __attribute__((visibility("default")))

struct ringbolt_stream_service {
  std::shared_ptr<ringbolt::stream::Service> service;
};

struct ringbolt_stream_listener {
  std::unique_ptr<ringbolt::stream::Listener> listener;
};

struct ringbolt_stream {
  std::unique_ptr<ringbolt::stream::Stream> stream;
};

namespace ringbolt::stream::c_border {

/// The words of the calling thread's last error.
std::string& last_error();

/// Where there is no memory for the words, the number has to do.
inline int refuse(int code, std::string_view words) noexcept {
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
  } catch (const std::bad_alloc&) {
    return refuse(ENOMEM, "out of memory");
  } catch (const std::exception& error) {
    return refuse(EIO, error.what());
  } catch (...) {
    return refuse(base::caught_errno(), "an exception of no known kind");
  }
}

/// An errno of a stream, with its words.
int answer(const Stream& stream, int error);

/// Makes `call(stream)`, whose errno is the answer.
template <class Call>
int on(const ringbolt_stream* handle, Call&& call) {
  if (handle == nullptr) {
    return refuse(EINVAL, "the stream is NULL");
  }
  return guarded([&] { return answer(*handle->stream, call(*handle->stream)); });
}

/// Writes text as snprintf() does; 0 where it can't be had.
template <class Text>
size_t write_words(char* room, size_t size, Text&& text) {
  size_t length = 0;
  static_cast<void>(guarded([&] {
    const std::string words = text();
    length = words.size();
    if (room != nullptr && size > 0) {
      const size_t count = std::min(length, size - 1);
      std::memcpy(room, words.data(), count);
      room[count] = '\0';
    }
    return 0;
  }));
  return length;
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
