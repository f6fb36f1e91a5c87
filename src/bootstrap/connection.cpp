#include "bootstrap/connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/assert.h"

namespace ringbolt::bootstrap {
namespace {

/// Of one call, so that all connections get their turn.
constexpr size_t kMostReceivedBytes = size_t{1} << 20;
// A handshake takes some hundred bytes; more must not cost a rank its turn.
constexpr size_t kMostStrangeBytes = size_t{64} << 10;

}  // namespace

Payload make_payload(std::vector<std::byte> bytes) {
  return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

Connection::Connection(base::UniqueFd socket, std::string peer) : socket_(std::move(socket)), peer_(std::move(peer)) {}

void Connection::authenticate(const Key& of_received, const Key& of_sent, size_t most_received_bytes) {
  reader_.authenticate(of_received, most_received_bytes);
  authenticator_.emplace(of_sent);
}

std::optional<int> Connection::receive() {
  const size_t most_bytes = authenticator_ ? kMostReceivedBytes : kMostStrangeBytes;
  for (size_t total = 0; total < most_bytes;) {
    const auto space = reader_.space();
    // Non-blocking by its socket.
    const ssize_t got = ::recv(socket_.get(), space.data(), space.size(), 0);
    if (got > 0) {
      reader_.filled(static_cast<size_t>(got));
      total += static_cast<size_t>(got);
    } else if (got == 0 || errno != EINTR) {
      return receive_error(got);
    }
  }
  return std::nullopt;
}

std::optional<int> Connection::discard() {
  reader_ = FrameReader();
  std::array<std::byte, kMostStrangeBytes> bytes;
  for (size_t total = 0; total < kMostReceivedBytes;) {
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (got > 0) {
      total += static_cast<size_t>(got);
    } else if (got == 0 || errno != EINTR) {
      return receive_error(got);
    }
  }
  return std::nullopt;
}

/// What recv() says that has taken nothing.
std::optional<int> Connection::receive_error(ssize_t got) const {
  if (got == 0) {
    // A connection that ended while we were sending has an errno of its own, which says more than the end of the
    // stream.
    return send_error_ == EPIPE ? 0 : send_error_;
  }
  return errno == EAGAIN || errno == EWOULDBLOCK ? std::nullopt : std::optional<int>(errno);
}

bool Connection::replace_older(const FrameHeader& header, const Payload& payload) {
  // One that is half sent can't be replaced any more.
  for (size_t i = has_begun_ ? 1 : 0; i < output_.size(); ++i) {
    Waiting& waiting = output_[i];
    const FrameHeader& old = waiting.header;
    if (old.type == header.type && (old.flags & kLatestOnly) != 0 && old.kind == header.kind &&
        old.rank == header.rank) {
      // Added before it is subtracted, so that the sum never goes below 0.
      queued_bytes_ += payload->size();
      queued_bytes_ -= waiting.payload->size();
      waiting = {header, payload};
      return true;
    }
  }
  return false;
}

bool Connection::queue(FrameHeader header, Payload payload) {
  header.length = static_cast<uint32_t>(payload->size());
  if (send_error_ != 0) {
    return true;  // nobody is there any more; receive() says so
  }
  if ((header.flags & kLatestOnly) != 0 && replace_older(header, payload)) {
    return true;
  }
  if (header.type == FrameType::message) {
    // No overflow: payloads are bounded by the frame's types.
    if (queued_bytes_ + kHeaderBytes + payload->size() > kMaxQueuedBytes) {
      return false;
    }
    queued_bytes_ += kHeaderBytes + payload->size();
  }
  output_.push_back({header, std::move(payload)});
  return true;
}

void Connection::begin_front() {
  // The tag counts frames, so it is made when the order is certain.
  const Waiting& front = output_.front();
  front_header_ = emit(front.header);
  front_tag_bytes_ = is_of_handshake(front.header.type) ? 0 : kTagBytes;
  if (front_tag_bytes_ != 0) {
    RINGBOLT_ASSERT(authenticator_.has_value());
    front_tag_ = authenticator_->tag(front_header_, *front.payload);
  }
  n_sent_ = 0;
  has_begun_ = true;
}

void Connection::flush() {
  while (!output_.empty()) {
    if (!has_begun_) {
      begin_front();
    }
    const Waiting& front = output_.front();
    // Sent from where they lie, in one system call.
    const std::array<std::span<const std::byte>, 3> parts{
        front_header_, *front.payload, std::span<const std::byte>(front_tag_).first(front_tag_bytes_)};
    std::array<iovec, 3> vectors{};
    size_t skipped = n_sent_;
    size_t left = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const size_t skip = std::min(skipped, parts[i].size());
      skipped -= skip;
      // sendmsg() takes no const memory, and does not write to it.
      vectors[i] = {const_cast<std::byte*>(parts[i].data()) + skip, parts[i].size() - skip};
      left += parts[i].size() - skip;
    }
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = vectors.size();
    const ssize_t put = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0) {
      if (errno == EINTR) {
        continue;
      }
      // Nothing can be sent any more; what the peer said before is still read.
      if (errno != EAGAIN && errno != EWOULDBLOCK) {
        send_error_ = errno;
        output_.clear();
        queued_bytes_ = 0;
        has_begun_ = false;
      }
      return;
    }
    n_sent_ += static_cast<size_t>(put);
    if (static_cast<size_t>(put) == left) {
      if (front.header.type == FrameType::message) {
        queued_bytes_ -= kHeaderBytes + front.payload->size();
      }
      output_.pop_front();
      has_begun_ = false;
    }
  }
}

void Connection::shut_output() { ::shutdown(socket_.get(), SHUT_WR); }

}  // namespace ringbolt::bootstrap
