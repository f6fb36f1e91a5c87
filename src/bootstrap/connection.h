#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/parsed.h"
#include "base/unique_fd.h"
#include "bootstrap/frame.h"

namespace ringbolt::bootstrap {

using Payload = std::shared_ptr<const std::vector<std::byte>>;
Payload make_payload(std::vector<std::byte> bytes);

/// How much of messages may wait for one rank that does not read.
inline constexpr size_t kMaxQueuedBytes = size_t{4} << 20;

/// One TCP connection, without blocking: frames that came, frames that wait to leave. Not thread-safe. Owns the
/// socket, which is non-blocking. Move-only by its parts: what waits to be sent moves along.
class Connection {
 public:
  Connection() = default;
  /// `peer`: the other end in words, for messages.
  Connection(base::UniqueFd socket, std::string peer);

  bool is_open() const { return socket_.is_open(); }
  int fd() const { return socket_.get(); }
  const std::string& peer() const { return peer_; }

  /// From here on frames carry tags. Handshake frames that wait still leave without one. `most_received_bytes`: of a
  /// payload.
  void authenticate(const Key& of_received, const Key& of_sent, size_t most_received_bytes);

  /// Takes what has arrived, 1 MiB at most; of one that has not been authenticated 64 KiB, since it may be a
  /// stranger's. Nothing: the connection lives; 0: the other end closed it; else an errno. Frames that came before an
  /// end can still be taken by next().
  std::optional<int> receive();
  /// As receive(), but throws away what has arrived, 1 MiB at most, and what was taken before: from one who is refused.
  std::optional<int> discard();
  /// The next whole frame of what was taken.
  base::Parsed<std::optional<Frame>> next() { return reader_.next(); }

  /// Puts a frame behind those that wait. A message for which there is no room is not queued: false. Frames of other
  /// types than messages always find room: there are few of them. `header.length` is filled in.
  bool queue(FrameHeader header, Payload payload);
  /// Sends what can be sent now. What can't be sent because the connection has ended is dropped; receive() tells of
  /// it. May be called at any time; keeps the order.
  void flush();
  bool has_output() const { return !output_.empty(); }

  /// Sends no more: the other end reads the end of the stream. What waits is not sent any more: flush() first.
  void shut_output();

 private:
  struct Waiting {
    FrameHeader header;
    Payload payload;
  };
  std::optional<int> receive_error(ssize_t got) const;
  bool replace_older(const FrameHeader& header, const Payload& payload);
  void begin_front();

  base::UniqueFd socket_;
  std::string peer_;
  FrameReader reader_;
  std::optional<Authenticator> authenticator_;
  // The payload is shared among connections that get the same frame.
  std::deque<Waiting> output_;
  size_t queued_bytes_ = 0;  ///< of messages
  // The frame at the front, once its first byte may have been sent.
  bool has_begun_ = false;
  size_t n_sent_ = 0;
  std::array<std::byte, kHeaderBytes> front_header_{};
  std::array<std::byte, kTagBytes> front_tag_{};
  size_t front_tag_bytes_ = 0;
  int send_error_ = 0;
};

}  // namespace ringbolt::bootstrap
