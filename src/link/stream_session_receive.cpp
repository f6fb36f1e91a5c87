// What comes in. Hot path.
#include <algorithm>
#include <array>

#include "base/assert.h"
#include "base/copy.h"
#include "link/stream_session.h"
#include "wire/bytes.h"
#include "wire/stream_hello.h"

namespace ringbolt::link {

using wire::StreamType;

StreamSession::Event StreamSession::next(uint64_t now_ns) {
  while (state_ != State::closed) {
    if (state_ == State::hunting && !hunt()) {
      return {};
    }
    const auto bytes = input_.bytes();
    if (bytes.size() < wire::kStreamHeaderBytes) {
      return {};
    }
    const auto header = wire::parse_stream_header(bytes);
    if (header && bytes.size() < wire::kStreamHeaderBytes + header->length) {
      return {};
    }
    Event event;
    if (!header || !wire::is_intact(*header, bytes.subspan(wire::kStreamHeaderBytes, header->length))) {
      event = lose_track(End::bad_frame);
    } else {
      event = take(*header, bytes.subspan(wire::kStreamHeaderBytes, header->length), now_ns);
    }
    if (event.kind != Event::Kind::nothing) {
      return event;
    }
  }
  return {};
}

/// Puts a HELLO in front of the input. False: there is none yet.
bool StreamSession::hunt() {
  while (true) {
    const wire::StreamHunt found = wire::hunt_for_hello(input_.bytes());
    input_.consume(found.useless);
    if (!found.hello) {
      return false;
    }
    // A header alone says nothing: to wait for more than a HELLO can have would be to sleep through the next one.
    if (wire::parse_stream_header(input_.bytes())->length <= wire::kMaxStreamHelloBytes) {
      return true;
    }
    input_.consume(1);
  }
}

/// What stands in front of the input is no frame that may be there.
StreamSession::Event StreamSession::lose_track(End why) {
  input_.consume(1);
  if (is_acknowledged_) {
    return over(why);  // the other end may be ready, and would not greet us again
  }
  state_ = State::hunting;
  peer_epoch_ = 0;
  return {};
}

StreamSession::Event StreamSession::over(End why) {
  end(why);
  return {Event::Kind::over, {}};
}

StreamSession::Event StreamSession::take(const wire::StreamHeader& header, std::span<const std::byte> payload,
                                         uint64_t now_ns) {
  if (header.type == StreamType::hello) {
    return take_hello(header, payload, now_ns);
  }
  const size_t frame = wire::kStreamHeaderBytes + payload.size();
  if (header.epoch != peer_epoch_) {
    input_.consume(frame);  // of an epoch that is over
    return {};
  }
  if (state_ == State::ready) {
    last_heard_ns_ = now_ns;
    return take_when_ready(header, payload, now_ns);
  }
  return take_before_ready(header, payload, now_ns);
}

StreamSession::Event StreamSession::take_hello(const wire::StreamHeader& header, std::span<const std::byte> payload,
                                               uint64_t now_ns) {
  if (state_ == State::ready && header.epoch != peer_epoch_) {
    return over(End::restarted);  // the HELLO stays where it is, for the hunt of the next epoch
  }
  input_.consume(wire::kStreamHeaderBytes + payload.size());
  if (header.epoch == peer_epoch_) {
    // It does not know yet that it was heard.
    std::array<std::byte, wire::kStreamHelloAckBytes> echo;
    wire::put_le(std::span<std::byte>(echo), 0, peer_epoch_);
    put(StreamType::hello_ack, echo, false, now_ns);
    return {};
  }
  offered_epoch_ = header.epoch;
  offered_credit_ = header.credit;
  return {Event::Kind::greeted, payload};
}

void StreamSession::accept_peer(uint64_t now_ns) {
  RINGBOLT_ASSERT(offered_epoch_ != 0 && (state_ == State::hunting || state_ == State::hello));
  state_ = State::hello;
  peer_epoch_ = offered_epoch_;
  credit_ = offered_credit_;
  is_acknowledged_ = false;
  expected_ = 0;
  std::array<std::byte, wire::kStreamHelloAckBytes> echo;
  wire::put_le(std::span<std::byte>(echo), 0, peer_epoch_);
  put(StreamType::hello_ack, echo, false, now_ns);
}

StreamSession::Event StreamSession::take_before_ready(const wire::StreamHeader& header,
                                                      std::span<const std::byte> payload, uint64_t now_ns) {
  if (header.type == StreamType::hello_ack) {
    input_.consume(wire::kStreamHeaderBytes + payload.size());
    if (payload.size() == wire::kStreamHelloAckBytes && wire::get_le<uint32_t>(payload, 0) == epoch_ &&
        !is_acknowledged_) {
      is_acknowledged_ = true;
      put(StreamType::ready, {}, false, now_ns);
      next_hello_ns_ = now_ns + options_.timing.hello_ns;
    }
    return {};
  }
  if (!is_acknowledged_) {
    input_.consume(wire::kStreamHeaderBytes + payload.size());  // meant for an epoch of ours that is over
    return {};
  }
  // Whatever else it sends now, it sends because it is ready. The frame itself is looked at in the next call.
  state_ = State::ready;
  last_heard_ns_ = now_ns;
  return {Event::Kind::ready, {}};
}

/// Why no sender of this epoch may send this frame now.
StreamSession::End StreamSession::check(const wire::StreamHeader& header) const {
  if (header.sequence != expected_) {
    return End::gap;
  }
  if (header.expected - acknowledged_ > next_sequence_ - acknowledged_) {
    return End::bad_frame;  // acknowledges what was never sent, or takes an acknowledgement back
  }
  if (static_cast<int32_t>(header.credit - credit_) < 0) {
    return End::bad_frame;  // takes a grant back
  }
  return header.type == StreamType::data && header.sequence == granted_ ? End::overrun : End::none;
}

StreamSession::Event StreamSession::take_when_ready(const wire::StreamHeader& header,
                                                    std::span<const std::byte> payload, uint64_t now_ns) {
  if (const End wrong = check(header); wrong != End::none) {
    return lose_track(wrong);
  }
  acknowledged_ = header.expected;
  credit_ = header.credit;
  switch (header.type) {
    case StreamType::data:
      return take_data(header, payload, now_ns);
    case StreamType::bye:
      input_.consume(wire::kStreamHeaderBytes + payload.size());
      return over(End::said_bye);
    case StreamType::ready:
      put(StreamType::ping, {}, false, now_ns);  // it may not have heard that we are
      break;
    default:
      break;
  }
  input_.consume(wire::kStreamHeaderBytes + payload.size());
  return {};
}

StreamSession::Event StreamSession::take_data(const wire::StreamHeader& header, std::span<const std::byte> payload,
                                              uint64_t now_ns) {
  if (assembled_bytes_ + payload.size() > kMaxStreamMessageBytes || (payload.empty() && !header.is_last)) {
    return lose_track(End::bad_frame);
  }
  input_.consume(wire::kStreamHeaderBytes + payload.size());
  ++expected_;
  const bool is_urgent = expected_ - told_expected_ >= std::max(options_.window_frames / 4, 1U);
  if (!(is_urgent && put(StreamType::credit, {}, false, now_ns)) && acknowledge_due_ns_ == UINT64_MAX) {
    acknowledge_due_ns_ = now_ns + options_.timing.acknowledge_ns;
  }
  if (header.is_last && assembled_bytes_ == 0) {
    return {Event::Kind::message, payload};
  }
  base::copy(assembly_.get() + assembled_bytes_, payload.data(), payload.size());
  assembled_bytes_ += payload.size();
  if (!header.is_last) {
    return {};
  }
  const std::span<const std::byte> message(assembly_.get(), assembled_bytes_);
  assembled_bytes_ = 0;
  return {Event::Kind::message, message};
}

}  // namespace ringbolt::link
