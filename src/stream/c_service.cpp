// The C border: services, listeners, and how streams are made.
#include <array>
#include <cstddef>

#include <fmt/format.h>

#include "stream/c_border.h"

namespace {

using namespace ringbolt::stream;
using namespace ringbolt::stream::c_border;

// Programs have these offsets in them. A new member goes to the end, and its 0 means what was done before it came.
static_assert(sizeof(ringbolt_stream_service_options) == 32);
static_assert(offsetof(ringbolt_stream_service_options, verbs) == 8);
static_assert(offsetof(ringbolt_stream_service_options, memory_budget_bytes) == 16);
static_assert(offsetof(ringbolt_stream_service_options, service_interval_ms) == 24);
static_assert(sizeof(ringbolt_stream_options) == 56 && offsetof(ringbolt_stream_options, receive_bytes) == 8);
static_assert(offsetof(ringbolt_stream_options, flags) == 32);
static_assert(offsetof(ringbolt_stream_options, receive_memory) == 40);
static_assert(sizeof(ringbolt_stream_listener_options) == 32);
static_assert(offsetof(ringbolt_stream_listener_options, stream) == 8);
static_assert(offsetof(ringbolt_stream_listener_options, max_streams) == 24);
static_assert(RINGBOLT_STREAM_NO_RESOURCES == static_cast<int>(CloseReason::no_resources));
static_assert(RINGBOLT_STREAM_PEER_LOST == static_cast<int>(CloseReason::peer_lost));

constexpr size_t kFirstServiceSize = 32;
constexpr size_t kFirstListenerSize = 32;

constexpr const char* kNoService = "the service is NULL";
constexpr const char* kNoListener = "the listener is NULL";
constexpr const char* kNoReason = "there is no such reason";

template <class Number>
Number said_or(Number said, Number otherwise) {
  return said == 0 ? otherwise : said;
}

int read_listener(const ringbolt_stream_listener_options* given, ListenerSettings& settings) {
  ringbolt_stream_listener_options known;
  if (const int error = understand(given, kFirstListenerSize, known)) {
    return error;
  }
  if (const int error = read_options(known.stream, settings.stream)) {
    return error;
  }
  for (const char* const* one = known.allowed; one != nullptr && *one != nullptr; ++one) {
    settings.allowed.emplace_back(*one);
  }
  // Fits an int by far; the connection manager cuts it to what it has.
  constexpr uint32_t kMostBacklog = 65535;
  settings.max_streams = said_or(known.max_streams, settings.max_streams);
  settings.backlog = static_cast<int>(std::min(known.backlog, kMostBacklog));
  return 0;
}

bool is_reason(ringbolt_stream_reason reason) { return static_cast<size_t>(reason) < kCloseReasons; }

/// What of `connect` is left when the stream can be seen by the program.
/// Blocks until `deadline` at most, with a timeout of 0 not at all; where it fails the stream is gone.
int connected(std::unique_ptr<Stream> made, uint64_t timeout_ms, const Deadline& deadline, ringbolt_stream** stream) {
  auto handle = std::make_unique<ringbolt_stream>(ringbolt_stream{std::move(made)});
  if (timeout_ms != 0) {
    const int error = handle->stream->await_connected(deadline);
    if (error == ETIMEDOUT && handle->stream->reason() == CloseReason::none) {
      return refuse(error, fmt::format("{}: not connected within {} ms: is the listener's program busy or stopped?",
                                       handle->stream->peer().text(), timeout_ms));
    }
    if (error != 0) {
      return answer(*handle->stream, error);
    }
  }
  *stream = handle.release();
  return 0;
}

}  // namespace

namespace ringbolt::stream::c_border {

int answer(const Stream& stream, int error) {
  switch (error) {
    case 0:
      return 0;
    case EAGAIN:
      return refuse(error, "it would have to wait");
    case EBUSY:
      return refuse(error, "the memory is still being sent: call ringbolt_stream_wait_sent() first");
    case EINVAL:
      return refuse(error, "an argument makes no sense: memory that is not registered, or more bytes than are there");
    default:
      break;
  }
  const std::string words = stream.words();
  return refuse(error, words.empty() ? fmt::format("{}: {}", stream.peer().text(), base::reason_of(error)) : words);
}

int read_options(const ringbolt_stream_options* given, StreamSettings& settings) {
  constexpr size_t kFirstSize = 56;
  ringbolt_stream_options known;
  if (const int error = understand(given, kFirstSize, known)) {
    return error;
  }
  if ((known.flags & ~uint32_t{RINGBOLT_STREAM_NO_KEEPALIVE}) != 0 || known.reserved != 0) {
    return refuse(EINVAL, "the options have flags that this version of libringbolt-stream does not know");
  }
  if (known.receive_memory == nullptr && known.receive_memory_bytes != 0) {
    return refuse(EINVAL, "receive_memory is NULL, and receive_memory_bytes is not 0");
  }
  settings.receive_bytes = said_or(known.receive_bytes, settings.receive_bytes);
  settings.receive_buffers = said_or(known.receive_buffers, settings.receive_buffers);
  settings.max_send_bytes = said_or(known.max_send_bytes, settings.max_send_bytes);
  settings.spin_us = known.spin_us;
  settings.keepalive_ms = said_or(known.keepalive_ms, settings.keepalive_ms);
  if ((known.flags & uint32_t{RINGBOLT_STREAM_NO_KEEPALIVE}) != 0) {
    settings.keepalive_ms = 0;
  }
  settings.connect_timeout_ms = said_or(known.connect_timeout_ms, settings.connect_timeout_ms);
  if (known.receive_memory != nullptr) {
    settings.receive_memory = {static_cast<std::byte*>(known.receive_memory), known.receive_memory_bytes};
    if (settings.receive_memory.empty()) {
      return refuse(EINVAL, "receive_memory_bytes is 0, and receive_memory is not NULL");
    }
  }
  return 0;
}

}  // namespace ringbolt::stream::c_border

extern "C" {

RINGBOLT_PUBLIC uint32_t ringbolt_stream_version(void) { return RINGBOLT_PROJECT_VERSION; }

RINGBOLT_PUBLIC const char* ringbolt_stream_error(void) { return ringbolt::c_border::last_error().c_str(); }

RINGBOLT_PUBLIC const char* ringbolt_stream_reason_name(ringbolt_stream_reason reason) {
  return name_of(static_cast<CloseReason>(is_reason(reason) ? reason : UINT8_MAX)).data();
}

RINGBOLT_PUBLIC const char* ringbolt_stream_reason_words(ringbolt_stream_reason reason) {
  return words_of(static_cast<CloseReason>(is_reason(reason) ? reason : UINT8_MAX)).data();
}

RINGBOLT_PUBLIC int ringbolt_stream_service_create(const ringbolt_stream_service_options* options,
                                                   ringbolt_stream_service** service) {
  if (service == nullptr) {
    return refuse(EINVAL, kNoPlace);
  }
  return guarded([&] {
    ringbolt_stream_service_options known;
    if (const int error = understand(options, kFirstServiceSize, known)) {
      return error;
    }
    ServiceSettings settings;
    settings.verbs = known.verbs == nullptr ? "" : known.verbs;
    settings.memory_budget_bytes = said_or(known.memory_budget_bytes, settings.memory_budget_bytes);
    settings.service_interval_ms = said_or(known.service_interval_ms, settings.service_interval_ms);
    auto made = std::make_unique<ringbolt_stream_service>();
    made->service = std::make_shared<Service>(settings);
    *service = made.release();
    return 0;
  });
}

RINGBOLT_PUBLIC void ringbolt_stream_service_destroy(ringbolt_stream_service* service) {
  guarded([&] {
    delete service;
    return 0;
  });
}

RINGBOLT_PUBLIC int ringbolt_stream_service_ended(const ringbolt_stream_service* service, ringbolt_stream_reason reason,
                                                  uint64_t* count) {
  if (service == nullptr || count == nullptr || !is_reason(reason)) {
    return refuse(EINVAL, service == nullptr ? kNoService : count == nullptr ? kNoPlace : kNoReason);
  }
  return guarded([&] {
    *count = service->service->tally().counts()[reason];
    return 0;
  });
}

RINGBOLT_PUBLIC int ringbolt_stream_connect(ringbolt_stream_service* service, const char* host, uint16_t port,
                                            const ringbolt_stream_options* options, uint64_t timeout_ms,
                                            ringbolt_stream** stream) {
  if (service == nullptr || host == nullptr || stream == nullptr) {
    return refuse(EINVAL, service == nullptr ? kNoService : host == nullptr ? "the host is NULL" : kNoPlace);
  }
  return guarded([&] {
    StreamSettings settings;
    if (const int error = read_options(options, settings)) {
      return error;
    }
    if (timeout_ms != 0 && (options == nullptr || options->connect_timeout_ms == 0)) {
      settings.connect_timeout_ms = static_cast<uint32_t>(std::min<uint64_t>(timeout_ms, UINT32_MAX));
    }
    const std::string name = fmt::format("{}:{}", host, port);
    const auto deadline = Deadline::in_ms(timeout_ms == 0 ? settings.connect_timeout_ms : timeout_ms);
    auto targets = addresses_of(host, port, deadline);
    return connected(Stream::connect(service->service, std::move(targets), name, settings), timeout_ms, deadline,
                     stream);
  });
}

RINGBOLT_PUBLIC int ringbolt_stream_listen(ringbolt_stream_service* service, const char* host, uint16_t port,
                                           const ringbolt_stream_listener_options* options,
                                           ringbolt_stream_listener** listener) {
  if (service == nullptr || listener == nullptr) {
    return refuse(EINVAL, service == nullptr ? kNoService : kNoPlace);
  }
  return guarded([&] {
    ListenerSettings settings;
    if (const int error = read_listener(options, settings)) {
      return error;
    }
    auto made = std::make_unique<ringbolt_stream_listener>();
    made->listener = std::make_unique<Listener>(service->service, host == nullptr ? "" : host, port, settings);
    *listener = made.release();
    return 0;
  });
}

RINGBOLT_PUBLIC void ringbolt_stream_listener_destroy(ringbolt_stream_listener* listener) {
  guarded([&] {
    delete listener;
    return 0;
  });
}

RINGBOLT_PUBLIC int ringbolt_stream_listener_port(const ringbolt_stream_listener* listener, uint16_t* port) {
  if (listener == nullptr || port == nullptr) {
    return refuse(EINVAL, listener == nullptr ? kNoListener : kNoPlace);
  }
  *port = listener->listener->port();
  return 0;
}

RINGBOLT_PUBLIC int ringbolt_stream_listener_fd(const ringbolt_stream_listener* listener, int* fd) {
  if (listener == nullptr || fd == nullptr) {
    return refuse(EINVAL, listener == nullptr ? kNoListener : kNoPlace);
  }
  *fd = listener->listener->fd();
  return 0;
}

RINGBOLT_PUBLIC int ringbolt_stream_listener_ended(const ringbolt_stream_listener* listener,
                                                   ringbolt_stream_reason reason, uint64_t* count) {
  if (listener == nullptr || count == nullptr || !is_reason(reason)) {
    return refuse(EINVAL, listener == nullptr ? kNoListener : count == nullptr ? kNoPlace : kNoReason);
  }
  return guarded([&] {
    const ListenerTally& tally = listener->listener->tally();
    *count = reason == RINGBOLT_STREAM_OPEN ? tally.streams.load() : tally.closes.counts()[reason];
    return 0;
  });
}

RINGBOLT_PUBLIC int ringbolt_stream_accept(ringbolt_stream_listener* listener, uint64_t timeout_ms,
                                           ringbolt_stream** stream) {
  if (listener == nullptr || stream == nullptr) {
    return refuse(EINVAL, listener == nullptr ? kNoListener : kNoPlace);
  }
  return guarded([&] {
    auto handle = std::make_unique<ringbolt_stream>();
    auto made = listener->listener->accept(Deadline::in_ms(timeout_ms));
    if (!made) {
      return refuse(made.error().value, "no request for a connection has come");
    }
    handle->stream = std::move(*made);
    *stream = handle.release();
    return 0;
  });
}

}  // extern "C"
