// Hot path: no allocation, no lock; system calls only in flush().
#include "link/udp_batch.h"

#include <cerrno>

#include "base/assert.h"
#include "link/udp_datagram.h"
#include "link/udp_endpoint.h"
#include "wire/icrc.h"

namespace ringbolt::link {
namespace {

constexpr size_t kBthBytes = 12;
constexpr int kSendFlags = MSG_DONTWAIT | MSG_NOSIGNAL;

// ENOBUFS, ENOMEM: the interface's queue or the kernel's memory, which no descriptor tells of.
bool is_full(int error) { return error == EAGAIN || error == ENOBUFS || error == ENOMEM; }

bool is_unreachable(int error) {
  return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == ENETDOWN ||
         error == EHOSTDOWN || error == EADDRNOTAVAIL || error == ENODEV;
}

/// One message: as MessageVector::send(), in a call that has less to copy and to count. 1, or minus errno.
int send_one(int socket, UdpMessageHeader& header, std::byte* bytes, size_t length) {
  iovec part{bytes, length};
  msghdr message;
  header.attach(message, part);
  for (;;) {
    if (sendmsg(socket, &message, kSendFlags) >= 0) {
      return 1;
    }
    if (errno != EINTR) {
      return -errno;
    }
  }
}

size_t family_of(const UdpMessage& message) { return wire::is_ipv4(message.path.destination) ? 0 : 1; }

/// As the kernel is to be told: 0 for a single packet.
uint16_t segment_bytes_of(const UdpMessage& message) {
  return static_cast<uint16_t>(message.packet_count > 1 ? message.segment_bytes : 0);
}

wire::Flow flow_of(const UdpPath& path, uint16_t port) { return {path.source, path.destination, port, port}; }

/// What goes into one sendmmsg().
struct MessageVector {
  static constexpr size_t kMost = 64;
  std::array<mmsghdr, kMost> messages;
  std::array<iovec, kMost> parts;
  size_t count = 0;
  void add(UdpMessageHeader& header, std::byte* bytes, size_t length) {
    parts[count] = {bytes, length};
    header.attach(messages[count].msg_hdr, parts[count]);
    ++count;
  }
  /// How many were taken, at least one; or minus errno for the first.
  int send(int socket) {
    for (;;) {
      const int taken = sendmmsg(socket, messages.data(), static_cast<unsigned>(count), kSendFlags);
      if (taken > 0) {
        return taken;
      }
      if (taken == 0 || errno != EINTR) {
        return taken == 0 ? -EAGAIN : -errno;
      }
    }
  }
};

}  // namespace

UdpBatch::UdpBatch(UdpEndpoint& endpoint)
    : endpoint_(endpoint), arena_(std::make_unique_for_overwrite<std::byte[]>(kArenaBytes)) {}

UdpBatch::~UdpBatch() { wait_for({}); }

bool UdpBatch::joins(const UdpMessage& message, const UdpPath& path, size_t bytes, uint32_t slot) const {
  return !message.is_closed && bytes <= message.segment_bytes && message.packet_count < kMaxSegments &&
         message.bytes + bytes <= kMaxMessageBytes && message.slot_bits == slot && message.path == path;
}

void UdpBatch::commit(const UdpPath& path, size_t bytes) {
  RINGBOLT_ASSERT(bytes >= kBthBytes && bytes <= reserved_bytes_ && bytes % 4 == 0);
  if (UdpFaults* faults = endpoint_.faults(); faults != nullptr) [[unlikely]] {
    append_through(*faults, path, bytes);
    return;
  }
  append(path, bytes);
  reserved_bytes_ = 0;
}

void UdpBatch::append(const UdpPath& path, size_t bytes) {
  const size_t length = bytes + kIcrcBytes;
  const std::span<std::byte> packet(arena_.get() + used_bytes_, length);
  const uint32_t slot = dest_qp(packet) >> endpoint_.options_.slot_shift;
  if (message_count_ == first_message_ || !joins(messages_[message_count_ - 1], path, length, slot)) {
    UdpMessage& fresh = messages_[message_count_++];
    fresh = {};
    fresh.path = path;
    fresh.offset = used_bytes_;
    fresh.segment_bytes = length;
    fresh.slot_bits = slot;
    fresh.is_segmented = !endpoint_.segmentation_.is_refused(path);
  }
  UdpMessage& message = messages_[message_count_ - 1];
  const uint16_t id = message.is_segmented ? message.packet_count : uint16_t{0};
  wire::put_icrc(flow_of(path, endpoint_.options_.port), id, packet);
  message.is_closed = length < message.segment_bytes;
  message.bytes += length;
  ++message.packet_count;
  used_bytes_ += length;
  ++packet_count_;
}

UdpBatch::Flushed UdpBatch::flush() {
  Flushed flushed;
  send_all(flushed);
  if (UdpFaults* faults = endpoint_.faults(); faults != nullptr) [[unlikely]] {
    // Ends: each round has sent all that was there, and what is held back is bounded (fault::Shelf).
    while (packet_count_ == 0 && append_late(*faults)) {
      send_all(flushed);
    }
  }
  if (flushed.sent > 0) {
    count(endpoint_.tally_.sent_packets, flushed.sent);
  }
  return flushed;
}

void UdpBatch::send_all(Flushed& flushed) {
  while (first_message_ < message_count_) {
    const UdpMessage& first = messages_[first_message_];
    if (!(first.packet_count > 1 && !first.is_segmented ? send_singly(flushed) : send_some(flushed))) {
      break;
    }
  }
  flushed.left = packet_count_;
  if (first_message_ == message_count_) {
    RINGBOLT_ASSERT(packet_count_ == 0);
    clear();
  } else {
    // With any other error the socket may have room and the interface none: nothing tells when that changes.
    wait_for(flushed.error == EAGAIN ? std::optional(family_of(messages_[first_message_])) : std::nullopt);
  }
}

void UdpBatch::clear() {
  first_message_ = message_count_ = used_bytes_ = reserved_bytes_ = packet_count_ = 0;
  wait_for({});
}

bool UdpBatch::send_some(Flushed& flushed) {
  const size_t family = family_of(messages_[first_message_]);
  if (!endpoint_.sockets_[family].is_open()) {
    return handle_refusal(EAFNOSUPPORT, flushed);
  }
  if (first_message_ + 1 == message_count_) [[likely]] {
    const UdpMessage& only = messages_[first_message_];
    UdpMessageHeader header;
    header.set(only.path, endpoint_.options_.port, segment_bytes_of(only));
    const int taken = send_one(endpoint_.sockets_[family].get(), header, arena_.get() + only.offset, only.bytes);
    if (taken < 0) [[unlikely]] {
      return handle_refusal(-taken, flushed);
    }
    account(messages_[first_message_++], flushed);
    return true;
  }
  MessageVector vector;
  std::array<UdpMessageHeader, kMaxMessages> headers;
  for (size_t i = first_message_; i < message_count_; ++i) {
    const UdpMessage& message = messages_[i];
    if (family_of(message) != family || (message.packet_count > 1 && !message.is_segmented)) {
      break;
    }
    headers[vector.count].set(message.path, endpoint_.options_.port, segment_bytes_of(message));
    vector.add(headers[vector.count], arena_.get() + message.offset, message.bytes);
  }
  const int taken = vector.send(endpoint_.sockets_[family].get());
  if (taken < 0) {
    return handle_refusal(-taken, flushed);
  }
  for (int i = 0; i < taken; ++i) {
    account(messages_[first_message_++], flushed);
  }
  return true;
}

void UdpBatch::account(const UdpMessage& message, Flushed& flushed) {
  flushed.sent += message.packet_count;
  packet_count_ -= message.packet_count;
  count(endpoint_.tally_.sent_messages);
  count(endpoint_.tally_.sent_bytes, message.bytes);
}

bool UdpBatch::handle_refusal(int error, Flushed& flushed) {
  UdpMessage& first = messages_[first_message_];
  flushed.error = error;
  if (is_full(error)) {
    count(endpoint_.tally_.send_full);
    return false;
  }
  // EIO: the interface can't compute the checksums of segments. EINVAL: a segment is longer than the MTU allows, or
  // the source address is not ours; single packets tell which.
  if (first.packet_count > 1 && first.is_segmented && (error == EIO || error == EINVAL || error == EMSGSIZE)) {
    count(endpoint_.tally_.segmentation_refused);
    first.is_segmented = false;
    const wire::Flow flow = flow_of(first.path, endpoint_.options_.port);
    for (size_t at = 0; at < first.bytes; at += first.segment_bytes) {
      wire::put_icrc(flow, 0, {arena_.get() + first.offset + at, std::min(first.segment_bytes, first.bytes - at)});
    }
    const size_t sent_before = flushed.sent;
    const bool goes_on = send_singly(flushed);
    if (flushed.sent > sent_before) {
      endpoint_.segmentation_.refuse(messages_[goes_on ? first_message_ - 1 : first_message_].path);
    }
    return goes_on;
  }
  if (is_unreachable(error)) {
    count(endpoint_.tally_.unreachable);
  }
  flushed.too_long += error == EMSGSIZE ? first.packet_count : 0U;
  drop_first_message(flushed);
  return true;
}

void UdpBatch::drop_first_message(Flushed& flushed) {
  const UdpMessage& first = messages_[first_message_++];
  flushed.refused += first.packet_count;
  packet_count_ -= first.packet_count;
  count(endpoint_.tally_.send_refused, first.packet_count);
}

bool UdpBatch::send_singly(Flushed& flushed) {
  UdpMessage& message = messages_[first_message_];
  const int socket = endpoint_.sockets_[family_of(message)].get();
  UdpMessageHeader header;
  header.set(message.path, endpoint_.options_.port, 0);
  while (message.packet_count > 0) {
    MessageVector vector;
    for (size_t at = 0; at < message.bytes && vector.count < MessageVector::kMost; at += message.segment_bytes) {
      vector.add(header, arena_.get() + message.offset + at, std::min(message.segment_bytes, message.bytes - at));
    }
    const int taken = vector.send(socket);
    if (taken < 0 && is_full(-taken)) {
      flushed.error = -taken;
      count(endpoint_.tally_.send_full);
      return false;
    }
    if (taken < 0) {
      return handle_refusal(-taken, flushed);
    }
    const auto packets = static_cast<uint16_t>(taken);
    const size_t bytes = std::min(message.bytes, packets * message.segment_bytes);
    message.offset += bytes;
    message.bytes -= bytes;
    message.packet_count = static_cast<uint16_t>(message.packet_count - packets);
    packet_count_ -= packets;
    flushed.sent += packets;
    count(endpoint_.tally_.sent_messages, packets);
    count(endpoint_.tally_.sent_bytes, bytes);
  }
  ++first_message_;
  return true;
}

/// Counted by the endpoint, whose descriptor tells of room as long as somebody waits for it.
void UdpBatch::wait_for(std::optional<size_t> family) {
  if (family == awaited_family_) {
    return;
  }
  if (awaited_family_) {
    endpoint_.remove_waiting_batch(*awaited_family_);
  }
  awaited_family_ = family;
  if (family) {
    endpoint_.add_waiting_batch(*family);
  }
}

}  // namespace ringbolt::link
