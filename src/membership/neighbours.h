#pragma once

#include <poll.h>

#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/connection.h"
#include "bootstrap/handshake.h"
#include "bootstrap/sockets.h"
#include "membership/announcement.h"

namespace ringbolt::membership {

/// What a frame between two members is (FrameHeader::kind). docs/formats/membership.md.
enum class FrameKind : uint16_t {
  introduction = 1,  ///< who this is
  announcement = 2,  ///< of any member; passed on
  beat = 3,          ///< likewise
  gone = 4,          ///< likewise
  message = 5,       ///< from one member to another one, by way of others
};

/// The members to which this one has a connection of its own: listens, calls, proves to have the secret and has it
/// proven (the handshake of docs/formats/bootstrap.md), and moves frames. Nothing blocks; no stranger delays anybody.
/// Not thread-safe. Two members that call each other at the same moment have two connections; both stay, and the one
/// that was heard last is used.
class Neighbours {
 public:
  /// Owns its payload.
  struct Event {
    enum class What : uint8_t { opened, frame, closed, failed };
    What what = What::frame;
    MemberId member = 0;  ///< failed: who was to be called
    FrameKind kind = FrameKind::introduction;
    std::vector<std::byte> payload = {};
    int error = 0;  ///< closed: an errno, 0 if the other end has closed it; failed: an errno
  };

  /// Listens. `group`: members of different groups refuse each other. `secret`: empty: whoever reaches the port may
  /// join. Throws base::Error.
  Neighbours(MemberId self, const std::string& group, const std::string& secret);

  uint16_t port() const { return listening_.port; }

  /// Begins to call somebody. `target`: who it should be; 0 if that is not known. A call that can't even begin is as
  /// good as none: there is no event.
  void dial(MemberId target, const bootstrap::Address& at);
  bool is_dialling(MemberId target) const;
  /// Puts a frame behind those that wait. One that is `latest_of` something (not 0) takes the place of an older one.
  /// False: there is no connection, or no room. The payload is shared among connections, and not copied.
  bool send(MemberId to, FrameKind kind, const bootstrap::Payload& payload, uint32_t latest_of = 0);
  /// Ends all connections with it.
  void close(MemberId member);

  /// Those with an open connection over which something has come within the last `ticks`.
  std::set<MemberId> heard_within(uint32_t ticks) const;
  bool is_open(MemberId member) const;
  /// Sends what can be sent now.
  void flush();
  /// Whether anything waits to be sent.
  bool has_output() const;

  /// Adds what to wait for to `fds`. Good for one poll(): the next serve() may close descriptors.
  void watch(std::vector<pollfd>& fds) const;
  /// What has happened by now. Calls nobody back: events are for the caller to work off after it.
  std::vector<Event> serve();
  /// Time passes: who does not come to an end with the handshake is dropped.
  void tick();

 private:
  // Three seconds of the membership's ticks.
  static constexpr uint32_t kMostHandshakeTicks = 60;
  // Who has not proven to know the secret, at a time.
  static constexpr size_t kMostStrangers = 64;

  // In the order of their stages. dialling: TCP connects; calling, answering: handshake; introduced: our introduction
  // is sent, theirs awaited.
  struct Link {
    enum class Stage : uint8_t { dialling, calling, answering, introduced, open, closed };
    bootstrap::Connection connection;
    Stage stage = Stage::dialling;
    std::optional<bootstrap::CallingHandshake> calling = std::nullopt;
    std::optional<bootstrap::AnsweringHandshake> answering = std::nullopt;
    MemberId target = 0;  ///< whom we call
    MemberId member = 0;  ///< who has introduced itself
    uint32_t silent = 0;  ///< ticks
  };

  void accept_all();
  void serve(Link& link, std::vector<Event>& events);
  void take(Link& link, bootstrap::Frame& frame, std::vector<Event>& events);
  void take_of_handshake(Link& link, const bootstrap::Frame& frame);
  void introduce(Link& link);
  void drop(Link& link, int error, std::vector<Event>& events);
  size_t n_strangers() const;

  const MemberId self_;
  bootstrap::Config config_;  ///< what handshakes are about
  bootstrap::Key key_;
  bootstrap::Listening listening_;
  // A list, so that references stay good while others come and go.
  std::list<Link> links_;
  bool is_short_ = false;  ///< of descriptors: nobody is let in until the next tick
};

}  // namespace ringbolt::membership
