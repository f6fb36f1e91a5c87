#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bridge/loop.h"
#include "bridge/place.h"
#include "bridge/relay.h"
#include "bridge/sockets.h"
#include "stream/stream.h"

namespace ringbolt::tools::bridge {

/// What all connections of a bridge share. Outlives them.
struct Surroundings {
  Loop& loop;
  Deadlines& deadlines;
  std::shared_ptr<stream::Service> service;
  RelaySettings relay;
  stream::StreamSettings stream;
  uint64_t connect_timeout_ns = 0;
};

/// Where sockets are connected to: what a place's name stood for when the bridge began.
struct SocketTarget {
  Place place;
  std::vector<stream::Address> addresses;  ///< of TCP, one at least
};

class Connection;

/// Who has connections. Told once of each that it has ended, from within a call of it: it ends it later.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  /// `problem`: in words, where somebody should know; empty: it ended as connections do.
  virtual void on_ended(Connection& connection, const std::string& reason, const std::string& problem) = 0;
};

/// A stream as a relay's end.
class FabricOnStream : public FabricEnd {
 public:
  explicit FabricOnStream(stream::Stream& stream) : stream_(stream) {}
  std::span<std::byte> room() override { return stream_.room(); }
  int send(std::span<const std::byte> filled) override { return stream_.send(filled); }
  base::Result<Pieces> peek() override { return stream_.peek(stream::Deadline::now()); }
  void consume(size_t count) override { stream_.consume(count); }
  bool is_drained() override { return stream_.is_drained(); }
  bool is_ended() override { return stream_.reason() != stream::CloseReason::none; }

 private:
  stream::Stream& stream_;
};

/// One connection of a bridge: a stream, a socket, and the relay between them. Told of events, it never blocks. Not
/// thread-safe.
class Connection : public Listening {
 public:
  /// Of a socket that was accepted: the stream is being connected. Throws base::Error. So does the next.
  Connection(Surroundings& around, ConnectionOwner& owner, std::unique_ptr<stream::Stream> stream,
             base::UniqueFd socket);
  /// Of a stream that was accepted: connects the socket first.
  Connection(Surroundings& around, ConnectionOwner& owner, std::unique_ptr<stream::Stream> stream,
             const SocketTarget& target);
  ~Connection() override;

  /// Something may have happened: looks.
  void on_event() override;
  /// Ends it in good order, soon.
  void stop(std::string_view reason);

  Moved moved() const { return relay_ ? relay_->moved() : Moved{}; }
  stream::Statistics statistics() const { return stream_->statistics(); }

 private:
  bool open_socket();
  bool try_target();
  void begin(base::UniqueFd socket);
  void begin_relay();
  void apply(const Wants& wants);
  void end(const std::string& reason, const std::string& problem);
  void end_of_relay();
  void set_deadline(uint64_t at_ns);

  Surroundings& around_;
  ConnectionOwner& owner_;
  std::unique_ptr<stream::Stream> stream_;
  FabricOnStream fabric_;
  std::optional<SocketOnDescriptor> socket_;
  std::optional<Watch> stream_watch_, socket_watch_;  // gone before what they watch
  std::optional<Relay> relay_;                        // none while the socket is being connected
  const SocketTarget* target_ = nullptr;
  size_t next_target_ = 0;
  int connect_error_ = 0;
  uint64_t connect_until_ns_ = 0;
  uint64_t deadline_ns_ = 0;
  uint32_t events_ = stream::kReadable;  // that the stream's descriptor stands for
  bool has_ended_ = false;
};

}  // namespace ringbolt::tools::bridge
