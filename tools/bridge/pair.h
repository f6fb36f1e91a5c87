#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "bridge/connection.h"
#include "bridge/relay.h"
#include "stream/listener.h"
#include "stream/statistics.h"

namespace ringbolt::tools::bridge {

/// What the connections of a pair have done, those that are open included. A value.
/// Bytes, nanoseconds and numbers as counted since the start.
struct Tally {
  std::string listen;
  std::string connect;
  uint64_t open = 0;
  uint64_t accepted = 0;
  Moved moved;
  stream::Statistics fabric;
  std::map<std::string, uint64_t> closed;  ///< by reason; connections that were never made, too

  /// Adds what one connection has done.
  void add(const Moved& of_relay, const stream::Statistics& of_stream);
  /// "tcp:127.0.0.1:6379 -> rdma:10.0.0.2:6379: 12 connections, 1034 bytes there, 88 back; socket-closed 12".
  std::string text() const;
};

/// What Prometheus reads. `memory_bytes`: of the budget, that the buffers of all streams take. Pure.
std::string tallies_exposition(const std::vector<Tally>& pairs, uint64_t memory_bytes, bool is_draining);

/// What all pairs of a bridge are limited by, and their words. Outlives them.
struct Limits {
  uint64_t max_connections = 0;
  std::vector<std::string> allowed;  ///< who may connect; empty: everybody who can
  uint64_t open = 0;                 ///< connections of all pairs now
  /// Says `text` on standard error, unless it has just said something of that `kind` (Remarks).
  std::function<void(const std::string& kind, const std::string& text)> say;
};

/// One place where a bridge listens, the place that it joins to it, and the connections between them. Not thread-safe.
/// Owns its listener and its connections. Between start() and its end it refers to what it was started with.
class Pair : public Listening, public ConnectionOwner {
 public:
  /// One of the two places is RDMA's. Listens at once if it listens on a socket. Throws UsageError, base::Error.
  Pair(const Place& listen, const Place& connect);
  ~Pair() override;

  /// Takes connections from now on; listens on RDMA. Throws base::Error.
  void start(Surroundings& around, Limits& limits);
  /// Takes no more.
  void stop_listening();
  /// Ends all connections in good order.
  void stop(std::string_view reason);
  /// Frees connections that have ended, until then: each takes the device a while. False: some are left.
  bool bury(uint64_t until_ns);

  /// With the ports that it got.
  std::string listen_text() const { return listen_.text(); }
  std::string connect_text() const { return connect_.text(); }
  Tally tally() const;

  void on_event() override;
  /// Keeps it until bury(): it is called from within the connection.
  void on_ended(Connection& connection, const std::string& reason, const std::string& problem) override;

 private:
  /// Whether there may be another one to accept.
  bool accept_socket();
  bool accept_stream();
  void admit(std::unique_ptr<stream::Stream> stream, base::UniqueFd socket);
  void refuse(const std::string& reason, const std::string& problem);
  void say(const std::string& reason, const std::string& text);
  void pause(uint64_t until_ns);
  void count_turned_away(Tally& tally) const;

  Place listen_;
  Place connect_;
  SocketTarget target_;                         // of a stream that was accepted
  std::vector<stream::Address> stream_target_;  // of a socket that was accepted
  std::optional<ListeningSocket> socket_;
  std::unique_ptr<stream::Listener> listener_;
  std::optional<Watch> watch_;  // gone before what it watches
  Surroundings* around_ = nullptr;
  Limits* limits_ = nullptr;
  std::optional<stream::AllowList> allowed_;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  // Freed by bury(), some milliseconds' worth at a time.
  std::vector<std::unique_ptr<Connection>> ended_;
  Tally past_;
  uint64_t paused_until_ns_ = 0;
};

}  // namespace ringbolt::tools::bridge
