// The C border: what is done with a stream.
#include <array>
#include <climits>
#include <cstddef>

#include <fmt/format.h>

#include "stream/c_border.h"

namespace {

using namespace ringbolt::stream;
using namespace ringbolt::stream::c_border;

static_assert(sizeof(ringbolt_stream_statistics) == 112);
static_assert(offsetof(ringbolt_stream_statistics, stalls) == 56);
static_assert(uint32_t{RINGBOLT_STREAM_READABLE} == uint32_t{kReadable});
static_assert(uint32_t{RINGBOLT_STREAM_WRITABLE} == uint32_t{kWritable});
static_assert(uint32_t{RINGBOLT_STREAM_ENDED} == uint32_t{kEnded});
static_assert(uint32_t{RINGBOLT_STREAM_CONNECTED} == uint32_t{kConnected});

constexpr const char* kNoMemory = "the memory is NULL";
constexpr int kMostPieces = 1024;  // as writev(2)
constexpr uint32_t kAllEvents =
    RINGBOLT_STREAM_READABLE | RINGBOLT_STREAM_WRITABLE | RINGBOLT_STREAM_ENDED | RINGBOLT_STREAM_CONNECTED;

bool is_lacking(const void* memory, size_t size) { return memory == nullptr && size != 0; }

bool are_lacking(std::span<const iovec> pieces) {
  return std::ranges::any_of(pieces, [](const iovec& piece) { return is_lacking(piece.iov_base, piece.iov_len); });
}

/// Says with an error of close() how much it is about.
int lost(const Stream& stream, int error) {
  const std::string why = ringbolt::c_border::last_error();
  const Statistics seen = stream.statistics();
  return refuse(error, fmt::format("{}; of {} bytes that were written {} are not known to have arrived", why,
                                   seen.bytes_sent, seen.bytes_sent - seen.bytes_arrived));
}

/// Gives `result` to *n, or its errno back.
int counted(const ringbolt::base::Result<size_t>& result, size_t* n) {
  if (!result) {
    return result.error().value;
  }
  *n = *result;
  return 0;
}

}  // namespace

extern "C" {

RINGBOLT_PUBLIC int ringbolt_stream_close(ringbolt_stream* stream, uint64_t timeout_ms) {
  int error = 0;
  // A stream that is NULL, or a call that throws, leaves `error` 0.
  const int said = on(stream, [&](Stream& s) { return error = s.close(Deadline::in_ms(timeout_ms)); });
  return error == 0 ? said : guarded([&] { return lost(*stream->stream, error); });
}

RINGBOLT_PUBLIC void ringbolt_stream_destroy(ringbolt_stream* stream) {
  guarded([&] {
    delete stream;
    return 0;
  });
}

RINGBOLT_PUBLIC int ringbolt_stream_read(ringbolt_stream* stream, void* data, size_t size, uint64_t timeout_ms,
                                         size_t* n) {
  if (is_lacking(data, size) || n == nullptr) {
    return refuse(EINVAL, n == nullptr ? kNoPlace : kNoMemory);
  }
  return on(stream, [&](Stream& s) {
    return counted(s.read({static_cast<std::byte*>(data), size}, Deadline::in_ms(timeout_ms)), n);
  });
}

RINGBOLT_PUBLIC int ringbolt_stream_peek(ringbolt_stream* stream, uint64_t timeout_ms, struct iovec pieces[2]) {
  if (pieces == nullptr) {
    return refuse(EINVAL, kNoPlace);
  }
  return on(stream, [&](Stream& s) {
    const auto there = s.peek(Deadline::in_ms(timeout_ms));
    if (!there) {
      return there.error().value;
    }
    for (size_t i = 0; i < there->size(); ++i) {
      pieces[i] = {const_cast<std::byte*>((*there)[i].data()), (*there)[i].size()};
    }
    return 0;
  });
}

RINGBOLT_PUBLIC int ringbolt_stream_consume(ringbolt_stream* stream, size_t count) {
  return on(stream, [&](Stream& s) { return s.consume(count); });
}

RINGBOLT_PUBLIC int ringbolt_stream_write(ringbolt_stream* stream, const void* data, size_t size, uint64_t timeout_ms,
                                          size_t* n) {
  if (is_lacking(data, size) || n == nullptr) {
    return refuse(EINVAL, n == nullptr ? kNoPlace : kNoMemory);
  }
  return on(stream, [&](Stream& s) {
    const iovec piece{const_cast<void*>(data), size};
    return counted(s.write({&piece, 1}, Deadline::in_ms(timeout_ms)), n);
  });
}

RINGBOLT_PUBLIC int ringbolt_stream_writev(ringbolt_stream* stream, const struct iovec* pieces, int n_pieces,
                                           uint64_t timeout_ms, size_t* n) {
  if (n_pieces < 0 || n_pieces > kMostPieces) {
    return refuse(EINVAL, "take 0 to 1024 pieces");
  }
  const std::span<const iovec> all(pieces, pieces == nullptr ? 0 : static_cast<size_t>(n_pieces));
  if ((pieces == nullptr && n_pieces != 0) || n == nullptr || are_lacking(all)) {
    return refuse(EINVAL, n == nullptr ? kNoPlace : kNoMemory);
  }
  return on(stream, [&](Stream& s) { return counted(s.write(all, Deadline::in_ms(timeout_ms)), n); });
}

RINGBOLT_PUBLIC int ringbolt_stream_register(ringbolt_stream* stream, void* memory, size_t size) {
  if (memory == nullptr || size == 0) {
    return refuse(EINVAL, "there is no memory to register: it is NULL, or of no bytes");
  }
  return on(stream, [&](Stream& s) { return s.register_memory({static_cast<std::byte*>(memory), size}); });
}

RINGBOLT_PUBLIC int ringbolt_stream_unregister(ringbolt_stream* stream, void* memory) {
  if (memory == nullptr) {
    return refuse(EINVAL, kNoMemory);
  }
  return on(stream, [&](Stream& s) { return s.unregister_memory(static_cast<std::byte*>(memory)); });
}

RINGBOLT_PUBLIC int ringbolt_stream_write_registered(ringbolt_stream* stream, const void* data, size_t size,
                                                     uint64_t timeout_ms, size_t* n) {
  if (is_lacking(data, size) || n == nullptr) {
    return refuse(EINVAL, n == nullptr ? kNoPlace : kNoMemory);
  }
  return on(stream, [&](Stream& s) {
    return counted(s.write_registered({static_cast<const std::byte*>(data), size}, Deadline::in_ms(timeout_ms)), n);
  });
}

RINGBOLT_PUBLIC int ringbolt_stream_wait_sent(ringbolt_stream* stream, uint64_t timeout_ms) {
  return on(stream, [&](Stream& s) { return s.await_sent(Deadline::in_ms(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_stream_fd(ringbolt_stream* stream, int* fd) {
  if (fd == nullptr) {
    return refuse(EINVAL, kNoPlace);
  }
  return on(stream, [&](Stream& s) {
    *fd = s.fd();
    return 0;
  });
}

RINGBOLT_PUBLIC int ringbolt_stream_want(ringbolt_stream* stream, uint32_t events) {
  if ((events & ~kAllEvents) != 0) {
    return refuse(EINVAL, "there are events that this version of libringbolt-stream does not know");
  }
  return on(stream, [&](Stream& s) {
    s.want(events);
    return 0;
  });
}

RINGBOLT_PUBLIC int ringbolt_stream_wait(ringbolt_stream* stream, uint32_t events, uint64_t timeout_ms, uint32_t* now) {
  if (now == nullptr || (events & ~kAllEvents) != 0) {
    return refuse(EINVAL,
                  now == nullptr ? kNoPlace : "there are events that this version of libringbolt-stream does not know");
  }
  return on(stream, [&](Stream& s) {
    const auto there = s.await(events, Deadline::in_ms(timeout_ms));
    if (!there) {
      return there.error().value;
    }
    *now = *there;
    return 0;
  });
}

RINGBOLT_PUBLIC int ringbolt_stream_ended(const ringbolt_stream* stream, ringbolt_stream_reason* reason) {
  if (reason == nullptr) {
    return refuse(EINVAL, kNoPlace);
  }
  return on(stream, [&](const Stream& s) {
    *reason = static_cast<ringbolt_stream_reason>(s.reason());
    return 0;
  });
}

RINGBOLT_PUBLIC size_t ringbolt_stream_words(const ringbolt_stream* stream, char* text, size_t size) {
  return write_words(text, size, [&] { return stream == nullptr ? std::string() : stream->stream->words(); });
}

RINGBOLT_PUBLIC size_t ringbolt_stream_device(const ringbolt_stream* stream, char* text, size_t size) {
  return write_words(text, size, [&] { return stream == nullptr ? std::string() : stream->stream->device(); });
}

RINGBOLT_PUBLIC size_t ringbolt_stream_peer(const ringbolt_stream* stream, char* text, size_t size) {
  return write_words(text, size, [&] { return stream == nullptr ? std::string() : stream->stream->peer().text(); });
}

RINGBOLT_PUBLIC int ringbolt_stream_get_statistics(const ringbolt_stream* stream,
                                                   ringbolt_stream_statistics* statistics) {
  // Of the first version: it ended before bytes_arrived.
  constexpr size_t kFirstSize = 104;
  if (statistics == nullptr || statistics->struct_size < kFirstSize) {
    return refuse(EINVAL, statistics == nullptr ? kNoPlace : "struct_size must be sizeof(ringbolt_stream_statistics)");
  }
  return on(stream, [&](const Stream& s) {
    const Statistics seen = s.statistics();
    const size_t size = statistics->struct_size;
    const ringbolt_stream_statistics known{size,
                                           seen.bytes_sent,
                                           seen.bytes_received,
                                           seen.messages_sent,
                                           seen.messages_received,
                                           seen.announcements_sent,
                                           seen.announcements_received,
                                           seen.stalls,
                                           seen.stall_ns,
                                           seen.keepalives_sent,
                                           seen.keepalives_skipped,
                                           seen.keepalives_received,
                                           seen.receives_reposted,
                                           seen.bytes_arrived};
    std::memset(statistics, 0, size);  // what a newer program knows and we don't
    std::memcpy(statistics, &known, std::min(size, sizeof known));
    return 0;
  });
}

}  // extern "C"
