// Hot path.
#include "link/stream_session.h"

#include <algorithm>

#include "base/assert.h"
#include "wire/bytes.h"
#include "wire/stream_hello.h"

namespace ringbolt::link {
namespace {

constexpr size_t kLengthAt = 16;  // of the payload's length in a header
constexpr size_t kLongestFrames = (kMaxStreamMessageBytes + wire::kStreamPayloadBytes - 1) / wire::kStreamPayloadBytes;

size_t frames_of(size_t message_bytes) {
  return std::max<size_t>(1, (message_bytes + wire::kStreamPayloadBytes - 1) / wire::kStreamPayloadBytes);
}

}  // namespace

StreamSession::StreamSession(const Options& options)
    : options_(options),
      input_(kInputBytes),
      output_(options.output_bytes),
      assembly_(std::make_unique_for_overwrite<std::byte[]>(kMaxStreamMessageBytes)),
      in_flight_(kMaxInFlight) {
  RINGBOLT_ASSERT(options.window_frames >= kLongestFrames && options.hello.size() <= wire::kMaxStreamHelloBytes);
  RINGBOLT_ASSERT(options.output_bytes >= 2 * kLongestFrames * wire::kStreamFrameBytes + kControlBytes);
}

void StreamSession::open(uint32_t epoch, uint64_t now_ns) {
  input_.consume(input_.size());
  output_.truncate(0);
  partial_bytes_ = 0;
  begin(epoch, now_ns);
}

void StreamSession::restart(uint32_t epoch, uint64_t now_ns) {
  output_.truncate(partial_bytes_);
  begin(epoch, now_ns);
}

void StreamSession::begin(uint32_t epoch, uint64_t now_ns) {
  RINGBOLT_ASSERT(epoch != 0 && state_ == State::closed && first_in_flight_ == end_in_flight_);
  state_ = State::hunting;
  end_ = End::none;
  epoch_ = epoch;
  peer_epoch_ = 0;
  is_acknowledged_ = false;
  next_sequence_ = acknowledged_ = credit_ = 0;
  expected_ = granted_ = told_expected_ = 0;
  assembled_bytes_ = 0;
  last_heard_ns_ = now_ns;
  acknowledge_due_ns_ = UINT64_MAX;
  put(wire::StreamType::hello, options_.hello, false, now_ns);
  next_hello_ns_ = now_ns + options_.timing.hello_ns;
}

void StreamSession::end(End why) {
  if (state_ != State::closed) {
    state_ = State::closed;
    end_ = why;
  }
}

void StreamSession::leave(uint64_t now_ns) {
  if (state_ == State::ready) {
    put(wire::StreamType::bye, {}, false, now_ns);
  }
  end(End::none);
}

bool StreamSession::put(wire::StreamType type, std::span<const std::byte> payload, bool is_last, uint64_t now_ns) {
  const auto room = output_.room();
  if (room.size() < wire::kStreamHeaderBytes + payload.size()) {
    return false;
  }
  wire::StreamHeader header;
  header.type = type;
  header.is_last = is_last;
  header.epoch = epoch_;
  header.sequence = next_sequence_;
  header.expected = told_expected_ = expected_;
  header.credit = granted_ = expected_ + options_.window_frames;
  output_.append(wire::emit(header, payload, room));
  last_sent_ns_ = now_ns;
  acknowledge_due_ns_ = UINT64_MAX;
  return true;
}

uint32_t StreamSession::credits() const {
  const auto granted = static_cast<int32_t>(credit_ - next_sequence_);
  const uint32_t kept = kMaxInFlight - (next_sequence_ - acknowledged_);
  return state_ != State::ready || granted <= 0 ? 0 : std::min(static_cast<uint32_t>(granted), kept);
}

bool StreamSession::can_send(size_t message_bytes) const {
  const size_t frames = frames_of(message_bytes);
  // Twice: what has left makes room only once it is as much as what is held.
  const size_t held = 2 * output_.size();
  return credits() >= frames &&
         held + message_bytes + frames * wire::kStreamHeaderBytes + kControlBytes <= options_.output_bytes;
}

void StreamSession::send(uint64_t tag, std::span<const std::byte> message, uint64_t now_ns) {
  RINGBOLT_ASSERT(message.size() <= kMaxStreamMessageBytes && can_send(message.size()));
  do {
    const auto fragment = message.first(std::min(message.size(), wire::kStreamPayloadBytes));
    message = message.subspan(fragment.size());
    const bool is_put = put(wire::StreamType::data, fragment, message.empty(), now_ns);
    RINGBOLT_ASSERT(is_put);
    ++next_sequence_;
  } while (!message.empty());
  in_flight_[end_in_flight_++ % kMaxInFlight] = {tag, next_sequence_ - 1};
}

std::optional<uint64_t> StreamSession::take_acknowledged() {
  if (first_in_flight_ == end_in_flight_) {
    return std::nullopt;
  }
  const InFlight& oldest = in_flight_[first_in_flight_ % kMaxInFlight];
  if (static_cast<int32_t>(acknowledged_ - oldest.last_sequence) <= 0) {
    return std::nullopt;
  }
  ++first_in_flight_;
  return oldest.tag;
}

std::optional<uint64_t> StreamSession::take_unacknowledged() {
  RINGBOLT_ASSERT(state_ == State::closed);
  if (first_in_flight_ == end_in_flight_) {
    return std::nullopt;
  }
  return in_flight_[first_in_flight_++ % kMaxInFlight].tag;
}

size_t StreamSession::output_frame_bytes() const {
  if (partial_bytes_ != 0 || output_.is_empty()) {
    return partial_bytes_;
  }
  return wire::kStreamHeaderBytes + wire::get_le<uint32_t>(output_.bytes(), kLengthAt);
}

void StreamSession::written(size_t bytes) {
  while (bytes != 0) {
    const size_t frame = output_frame_bytes();
    const size_t part = std::min(bytes, frame);
    output_.consume(part);
    partial_bytes_ = frame - part;
    bytes -= part;
  }
}

bool StreamSession::tick(uint64_t now_ns) {
  if (state_ == State::closed) {
    return false;
  }
  if (state_ != State::ready) {
    // Only into an empty output: who does not read shall not find a pile of greetings.
    if (now_ns >= next_hello_ns_) {
      if (output_.is_empty()) {
        put(wire::StreamType::hello, options_.hello, false, now_ns);
        if (is_acknowledged_) {
          put(wire::StreamType::ready, {}, false, now_ns);
        }
      }
      next_hello_ns_ = now_ns + options_.timing.hello_ns;
    }
    return false;
  }
  if (now_ns >= last_heard_ns_ + options_.timing.silence_ns) {
    over(End::silence);
    return true;
  }
  if (now_ns >= acknowledge_due_ns_) {
    if (!put(wire::StreamType::credit, {}, false, now_ns)) {
      acknowledge_due_ns_ = now_ns + options_.timing.acknowledge_ns;
    }
  }
  if (now_ns >= last_sent_ns_ + options_.timing.ping_ns) {
    if (output_.is_empty()) {
      put(wire::StreamType::ping, {}, false, now_ns);
    }
    last_sent_ns_ = now_ns;
  }
  return false;
}

uint64_t StreamSession::next_deadline_ns() const {
  switch (state_) {
    case State::closed:
      return UINT64_MAX;
    case State::hunting:
    case State::hello:
      return next_hello_ns_;
    default:
      return std::min(
          {last_heard_ns_ + options_.timing.silence_ns, acknowledge_due_ns_, last_sent_ns_ + options_.timing.ping_ns});
  }
}

const char* reason_of(StreamSession::End end) {
  switch (end) {
    case StreamSession::End::none:
      return "nothing happened";
    case StreamSession::End::bad_frame:
      return "a damaged frame";
    case StreamSession::End::gap:
      return "frames are missing";
    case StreamSession::End::overrun:
      return "more frames than were granted";
    case StreamSession::End::restarted:
      return "the other end began anew";
    case StreamSession::End::silence:
      return "nothing came for too long";
    case StreamSession::End::said_bye:
      return "the other end has left";
    case StreamSession::End::stream_ended:
      return "the stream ended";
    case StreamSession::End::refused:
      return "the other end is not the one of the other rails";
    case StreamSession::End::no_memory:
      return "no memory for a packet that came early";
  }
  return "unknown";
}

}  // namespace ringbolt::link
