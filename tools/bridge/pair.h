#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "bridge/connection.h"
#include "bridge/tally.h"
#include "stream/listener.h"

namespace ringbolt::tools::bridge {

/// What all pairs of a bridge are limited by, and their words. Outlives them.
struct Limits {
  uint64_t max_connections = 0;
  std::vector<std::string> allowed;  ///< who may connect; empty: everybody who can
  uint64_t open = 0;                 ///< connections of all pairs now
  std::function<void(const std::string&)> say;
};

/// One place where a bridge listens, the place that it joins to it, and the connections between them. Not thread-safe.
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
  void on_ended(Connection& connection, const std::string& reason, const std::string& problem) override;

 private:
  /// Whether there may be another one to accept.
  bool accept_socket();
  bool accept_stream();
  void admit(std::unique_ptr<stream::Stream> stream, base::UniqueFd socket);
  void refuse(const std::string& reason, const std::string& problem);
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
  std::vector<std::unique_ptr<Connection>> ended_;
  Tally past_;
  uint64_t paused_until_ns_ = 0;
};

}  // namespace ringbolt::tools::bridge
