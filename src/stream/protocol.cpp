// Hot path.
#include "stream/protocol.h"

#include "base/assert.h"

namespace ringbolt::stream {
namespace {

// What a peer may send unasked. Stock servers send a keepalive every 3 s, nobody sends empty messages or asks twice for
// features.
// What fits the receives of an endpoint: a peer that has waited for long may send all of it at once.
constexpr uint32_t kCommandBurst = 1024;
constexpr uint32_t kCommandsPerSecond = 4096;
constexpr uint32_t kEmptyBurst = 256;
constexpr uint32_t kEmptyPerSecond = 256;

static_assert(Protocol::kCommandSlots <= 64, "a bit each in keepalive_slots_");

}  // namespace

Protocol::Protocol(const ProtocolSettings& settings)
    : settings_(settings),
      rx_(settings.rx_length, settings.rx_buffers),
      commands_gauge_(kCommandBurst, kCommandsPerSecond),
      empty_gauge_(kEmptyBurst, kEmptyPerSecond) {
  RINGBOLT_ASSERT(settings.rx_length > 0 && settings.rx_buffers > 0);
  RINGBOLT_ASSERT(uint64_t{settings.rx_length} * settings.rx_buffers <= UINT32_MAX);
}

void Protocol::established(uint64_t now_ns) {
  if (is_established_ || !is_alive()) {
    return;
  }
  is_established_ = true;
  announce();
  if (settings_.role == Role::server && settings_.keepalive_ns != 0) {
    next_keepalive_ns_ = now_ns + settings_.keepalive_ns;
  }
}

void Protocol::take_command(std::span<const std::byte> bytes, uint64_t now_ns) {
  if (!is_alive()) {
    return;
  }
  if (bytes.size() != kControlBytes) {
    end(CloseReason::bad_command_length);
    return;
  }
  const auto message = ControlMessage::parse(bytes);
  if (!message) {
    end(CloseReason::bad_opcode);
    return;
  }
  switch (message->opcode) {
    case Opcode::get_server_feature:
    case Opcode::set_client_feature:
      take_feature_command(*message, now_ns);
      break;
    case Opcode::keepalive:
      ++statistics_.keepalives_received;
      if (!commands_gauge_.admit(now_ns)) {
        end(CloseReason::command_flood);
      }
      break;
    case Opcode::register_xfer_memory:
      take_registration(*message, now_ns);
      break;
  }
}

/// A server answers the question with the same selection, and says nothing to the choice. A client is told only what it
/// asked for (section 1.5).
void Protocol::take_feature_command(const ControlMessage& message, uint64_t now_ns) {
  const bool is_question = message.opcode == Opcode::get_server_feature;
  if (settings_.role == Role::client) {
    if (!is_question || !has_asked_features_) {
      end(CloseReason::bad_opcode);
      return;
    }
    has_asked_features_ = false;
    features_ = message.features;
    return;
  }
  if (!commands_gauge_.admit(now_ns)) {
    end(CloseReason::command_flood);
  } else if (is_question) {
    send({.opcode = Opcode::get_server_feature, .select = message.select, .features = settings_.offered_features});
  } else if ((message.features & ~settings_.offered_features) != 0) {
    end(CloseReason::feature);
  }
}

CloseReason Protocol::objection_to(const ControlMessage& registration) const {
  if (tx_.is_open() && registration.length != tx_.length()) {
    return CloseReason::rx_length_changed;
  }
  // An address of the peer is never followed here, but offsets are added to it.
  const bool wraps = registration.address > UINT64_MAX - registration.length;
  if (registration.length == 0 || registration.length > settings_.max_tx_length || wraps) {
    return CloseReason::bad_rx_length;
  }
  return CloseReason::none;
}

void Protocol::take_registration(const ControlMessage& message, uint64_t now_ns) {
  if (const CloseReason objection = objection_to(message); objection != CloseReason::none) {
    end(objection);
    return;
  }
  ++statistics_.announcements_received;
  if (tx_.is_open() && !tx_.is_spent()) {
    ++statistics_.early_announcements;
    if (!commands_gauge_.admit(now_ns)) {
      end(CloseReason::command_flood);
      return;
    }
  }
  const uint32_t left = tx_.open(message.address, message.length, message.key);
  if (left > 0) {
    move_ = Move{tx_.moved_from(), left};
  }
  if (stalled_since_ns_ != 0) {
    statistics_.stall_ns += now_ns - stalled_since_ns_;
    stalled_since_ns_ = 0;
  }
}

void Protocol::take_data(uint32_t immediate, uint32_t write_bytes, uint64_t now_ns) {
  if (!is_alive()) {
    return;
  }
  if (const CloseReason objection = rx_.take(immediate, write_bytes); objection != CloseReason::none) {
    end(objection);
    return;
  }
  ++statistics_.messages_received;
  statistics_.bytes_received += immediate;
  if (immediate == 0) [[unlikely]] {
    ++statistics_.empty_messages;
    if (!empty_gauge_.admit(now_ns)) {
      end(CloseReason::imm_flood);
    }
  } else if (rx_.wants_announcement()) {
    announce();  // another buffer is free: the peer need not wait for the program
  }
}

void Protocol::finish_command() {
  RINGBOLT_ASSERT(under_way_ > 0);
  const uint64_t bit = uint64_t{1} << first_;
  if ((keepalive_slots_ & bit) != 0) {
    keepalive_slots_ &= ~bit;
    --keepalives_;
  }
  first_ = (first_ + 1) % kCommandSlots;
  --under_way_;
}

void Protocol::tick(uint64_t now_ns) {
  if (now_ns < next_keepalive_ns_ || !is_alive()) {
    return;
  }
  next_keepalive_ns_ = now_ns + settings_.keepalive_ns;
  // The last slots are for what matters more.
  // A peer that takes nothing would be ended for the lack of slots by our own keepalives.
  if (keepalives_ >= kMostKeepalives || under_way_ + queued_ + kCommandSlots / 4 >= kCommandSlots) {
    ++statistics_.keepalives_skipped;
    return;
  }
  ++statistics_.keepalives_sent;
  keepalive_slots_ |= uint64_t{1} << ((first_ + under_way_ + queued_) % kCommandSlots);
  ++keepalives_;
  send({.opcode = Opcode::keepalive});
}

void Protocol::end(CloseReason reason) {
  if (is_alive()) {
    reason_ = reason;
    next_keepalive_ns_ = UINT64_MAX;
    queued_ = 0;
  }
}

void Protocol::note_stall(uint64_t now_ns) {
  if (stalled_since_ns_ == 0 && can_send_ && is_alive() && tx_.room() == 0) {
    stalled_since_ns_ = now_ns;
    ++statistics_.stalls;
  }
}

std::optional<Protocol::Move> Protocol::take_move() {
  const auto taken = move_;
  move_.reset();
  return taken;
}

void Protocol::consume(uint32_t count) {
  rx_.consume(count);
  if (rx_.wants_announcement() && is_alive()) {
    announce();
  }
}

void Protocol::ask_features() {
  RINGBOLT_ASSERT(settings_.role == Role::client);
  has_asked_features_ = true;
  send({.opcode = Opcode::get_server_feature});
}

std::optional<OutgoingCommand> Protocol::next_command() {
  if (queued_ == 0) {
    return std::nullopt;
  }
  const uint32_t slot = (first_ + under_way_) % kCommandSlots;
  --queued_;
  ++under_way_;
  return OutgoingCommand{slot, commands_[slot]};
}

void Protocol::send(const ControlMessage& message) {
  if (!is_alive()) {
    return;
  }
  if (under_way_ + queued_ == kCommandSlots) {
    end(CloseReason::out_of_send_slots);
    return;
  }
  commands_[(first_ + under_way_ + queued_) % kCommandSlots] = message.emit();
  ++queued_;
}

void Protocol::announce() {
  const uint32_t begin = rx_.announce();
  ++statistics_.announcements_sent;
  send({.opcode = Opcode::register_xfer_memory,
        .address = settings_.rx_address + begin,
        .length = settings_.rx_length,
        .key = settings_.rx_key});
}

std::optional<Write> Protocol::count(std::optional<Write> write) {
  if (write) {
    ++statistics_.messages_sent;
    statistics_.bytes_sent += write->length;
  }
  return write;
}

}  // namespace ringbolt::stream
