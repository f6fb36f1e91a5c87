#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ringbolt/stream.h"

// Byte streams over RDMA for programs in C++: classes over the functions of ringbolt/stream.h, defined in this header
// alone. So no type of the standard library crosses the border of libringbolt-stream.so. What each call does, and which
// errors there are, stands there.
namespace ringbolt {

/// Why something could not be made, or a stream has failed, in words that name the peer and what to do.
class StreamError : public std::runtime_error {
 public:
  StreamError(int code, const std::string& text) : std::runtime_error(text), code_(code) {}
  /// An errno.
  int code() const { return code_; }

 private:
  int code_;
};

namespace detail {

struct DestroyStream {
  void operator()(ringbolt_stream* stream) const { ringbolt_stream_destroy(stream); }
  void operator()(ringbolt_stream_listener* listener) const { ringbolt_stream_listener_destroy(listener); }
  void operator()(ringbolt_stream_service* service) const { ringbolt_stream_service_destroy(service); }
};

inline void check_stream(int code) {
  if (code != 0) {
    throw StreamError(code, ringbolt_stream_error());
  }
}

/// What came in time; nothing if it would have had to wait longer.
inline std::optional<size_t> in_time(int code, size_t count) {
  if (code == EAGAIN || code == ETIMEDOUT) {
    return std::nullopt;
  }
  check_stream(code);
  return count;
}

/// What `write(text, size)` says, which may grow between two questions.
template <class Write>
std::string text_of(Write write) {
  std::string words;
  size_t length = write(nullptr, 0);
  do {
    words.resize(length);
    length = write(words.data(), words.size() + 1);
  } while (length > words.size());
  words.resize(length);
  return words;
}

}  // namespace detail

/// One stream. Move-only. Thread-safe, but for its end: one thread may read and another write.
class ByteStream {
 public:
  explicit ByteStream(ringbolt_stream* stream) : stream_(stream) {}

  /// Up to `size` bytes, 0 at the end; nothing if none came in time. Throws StreamError if the stream has failed.
  std::optional<size_t> read(void* data, size_t size, uint64_t timeout_ms) {
    size_t n = 0;
    const int code = ringbolt_stream_read(get(), data, size, timeout_ms, &n);
    return detail::in_time(code, n);
  }
  /// How much of it found room in time. Throws StreamError. So do the next two.
  size_t write(const void* data, size_t size, uint64_t timeout_ms) {
    size_t n = 0;
    const int code = ringbolt_stream_write(get(), data, size, timeout_ms, &n);
    return detail::in_time(code, n).value_or(0);
  }
  size_t write(const std::vector<iovec>& pieces, uint64_t timeout_ms) {
    size_t n = 0;
    const int code = ringbolt_stream_writev(get(), pieces.data(), static_cast<int>(pieces.size()), timeout_ms, &n);
    return detail::in_time(code, n).value_or(0);
  }
  size_t write_registered(const void* data, size_t size, uint64_t timeout_ms) {
    size_t n = 0;
    const int code = ringbolt_stream_write_registered(get(), data, size, timeout_ms, &n);
    return detail::in_time(code, n).value_or(0);
  }
  /// The unread bytes where they lie; false if there are none in time. Throws StreamError.
  bool peek(iovec (&pieces)[2], uint64_t timeout_ms) {
    return detail::in_time(ringbolt_stream_peek(get(), timeout_ms, pieces), 0).has_value();
  }
  void consume(size_t count) { detail::check_stream(ringbolt_stream_consume(get(), count)); }

  void register_memory(void* memory, size_t size) {
    detail::check_stream(ringbolt_stream_register(get(), memory, size));
  }
  void unregister_memory(void* memory) { detail::check_stream(ringbolt_stream_unregister(get(), memory)); }
  /// Whether the device has done with registered memory in time. Throws StreamError.
  bool wait_sent(uint64_t timeout_ms) {
    return detail::in_time(ringbolt_stream_wait_sent(get(), timeout_ms), 0).has_value();
  }

  int fd() {
    int fd = -1;
    detail::check_stream(ringbolt_stream_fd(get(), &fd));
    return fd;
  }
  void want(uint32_t events) { detail::check_stream(ringbolt_stream_want(get(), events)); }
  /// RINGBOLT_STREAM_READABLE and so on; 0 if none of the events is there in time.
  uint32_t wait(uint32_t events, uint64_t timeout_ms) {
    uint32_t now = 0;
    const int code = ringbolt_stream_wait(get(), events, timeout_ms, &now);
    return detail::in_time(code, 0) ? now : 0;
  }
  /// Throws StreamError if something is not known to have reached the peer's memory, and says how much.
  void close(uint64_t timeout_ms) { detail::check_stream(ringbolt_stream_close(get(), timeout_ms)); }

  ringbolt_stream_reason ended() const {
    ringbolt_stream_reason reason = RINGBOLT_STREAM_OPEN;
    detail::check_stream(ringbolt_stream_ended(get(), &reason));
    return reason;
  }
  std::string words() const {
    return detail::text_of([&](char* text, size_t size) { return ringbolt_stream_words(get(), text, size); });
  }
  std::string device() const {
    return detail::text_of([&](char* text, size_t size) { return ringbolt_stream_device(get(), text, size); });
  }
  std::string peer() const {
    return detail::text_of([&](char* text, size_t size) { return ringbolt_stream_peer(get(), text, size); });
  }
  ringbolt_stream_statistics statistics() const {
    ringbolt_stream_statistics seen{};
    seen.struct_size = sizeof seen;
    detail::check_stream(ringbolt_stream_get_statistics(get(), &seen));
    return seen;
  }
  ringbolt_stream* get() const { return stream_.get(); }

 private:
  std::unique_ptr<ringbolt_stream, detail::DestroyStream> stream_;
};

/// Waits for streams at one port. Move-only. Thread-safe, but for its end.
class StreamListener {
 public:
  explicit StreamListener(ringbolt_stream_listener* listener) : listener_(listener) {}

  /// Nothing if no request came in time. Throws StreamError.
  std::optional<ByteStream> accept(uint64_t timeout_ms) {
    ringbolt_stream* made = nullptr;
    const int code = ringbolt_stream_accept(listener_.get(), timeout_ms, &made);
    return detail::in_time(code, 0) ? std::optional<ByteStream>(made) : std::nullopt;
  }
  uint16_t port() const {
    uint16_t port = 0;
    detail::check_stream(ringbolt_stream_listener_port(listener_.get(), &port));
    return port;
  }
  int fd() const {
    int fd = -1;
    detail::check_stream(ringbolt_stream_listener_fd(listener_.get(), &fd));
    return fd;
  }
  uint64_t ended(ringbolt_stream_reason reason) const {
    uint64_t count = 0;
    detail::check_stream(ringbolt_stream_listener_ended(listener_.get(), reason, &count));
    return count;
  }
  ringbolt_stream_listener* get() const { return listener_.get(); }

 private:
  std::unique_ptr<ringbolt_stream_listener, detail::DestroyStream> listener_;
};

/// What streams share. Its streams and listeners live on without it. Move-only. Thread-safe.
class StreamService {
 public:
  /// `verbs`: "auto", "system", "soft" or a path; empty: RINGBOLT_VERBS, else "auto". Throws StreamError.
  explicit StreamService(const std::string& verbs = {}) {
    ringbolt_stream_service_options options{};
    options.struct_size = sizeof options;
    options.verbs = verbs.empty() ? nullptr : verbs.c_str();
    create(options);
  }
  explicit StreamService(const ringbolt_stream_service_options& options) { create(options); }

  static ringbolt_stream_options stream_options() {
    ringbolt_stream_options options{};
    options.struct_size = sizeof options;
    return options;
  }
  static ringbolt_stream_listener_options listener_options() {
    ringbolt_stream_listener_options options{};
    options.struct_size = sizeof options;
    return options;
  }

  /// Throws StreamError.
  ByteStream connect(const std::string& host, uint16_t port, uint64_t timeout_ms,
                     const ringbolt_stream_options& options = stream_options()) {
    ringbolt_stream* made = nullptr;
    detail::check_stream(ringbolt_stream_connect(service_.get(), host.c_str(), port, &options, timeout_ms, &made));
    return ByteStream(made);
  }
  /// `host` empty: all addresses; port 0: a free one. Throws StreamError.
  StreamListener listen(const std::string& host, uint16_t port,
                        const ringbolt_stream_listener_options& options = listener_options()) {
    ringbolt_stream_listener* made = nullptr;
    detail::check_stream(ringbolt_stream_listen(service_.get(), host.c_str(), port, &options, &made));
    return StreamListener(made);
  }
  ringbolt_stream_service* get() const { return service_.get(); }

 private:
  void create(const ringbolt_stream_service_options& options) {
    ringbolt_stream_service* made = nullptr;
    detail::check_stream(ringbolt_stream_service_create(&options, &made));
    service_.reset(made);
  }
  std::unique_ptr<ringbolt_stream_service, detail::DestroyStream> service_;
};

}  // namespace ringbolt
