#include "membership/neighbours.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/byte_writer.h"

namespace ringbolt::membership {
namespace {

using bootstrap::Frame;
using bootstrap::FrameType;

/// The handshake is that of ranks with rank 0: whoever calls is "rank 1".
// No host and port: listening and dialling are done here, only the handshake is bootstrap's.
bootstrap::Config config_of(const std::string& group, const std::string& secret) {
  bootstrap::Config config;
  config.rank = 1;
  config.n_ranks = 2;
  config.group = group;
  config.secret = secret;
  return config;
}

bootstrap::Key prepared_key(const std::string& secret) {
  bootstrap::prepare_cryptography();
  return bootstrap::key_of(secret);
}

}  // namespace

Neighbours::Neighbours(MemberId self, const std::string& group, const std::string& secret)
    : self_(self),
      config_(config_of(group, secret)),
      key_(prepared_key(secret)),
      // Throws base::Error when this process can't listen at any port.
      listening_(bootstrap::Listening::everywhere()) {}

// Never blocks. What fails at once is not told.
void Neighbours::dial(MemberId target, const bootstrap::Address& at) {
  bootstrap::Begun begun = bootstrap::begin_dialling(at);
  if (begun.error == 0) {
    Link& link = links_.emplace_back();
    link.connection = bootstrap::Connection(std::move(begun.socket), begun.peer);
    link.target = target;
  }
}

// `<`: see Stage.
bool Neighbours::is_dialling(MemberId target) const {
  return std::ranges::any_of(links_,
                             [&](const Link& link) { return link.target == target && link.stage < Link::Stage::open; });
}

bool Neighbours::is_open(MemberId member) const {
  return std::ranges::any_of(
      links_, [&](const Link& link) { return link.member == member && link.stage == Link::Stage::open; });
}

bool Neighbours::send(MemberId to, FrameKind kind, const bootstrap::Payload& payload, uint32_t latest_of) {
  // Of several connections the one that was heard last: an older one may lead over a cable that is gone.
  Link* best = nullptr;
  for (Link& link : links_) {
    if (link.member == to && link.stage == Link::Stage::open && (best == nullptr || link.silent < best->silent)) {
      best = &link;
    }
  }
  if (best == nullptr) {
    return false;
  }
  bootstrap::FrameHeader header;
  header.type = FrameType::message;
  header.kind = static_cast<uint16_t>(kind);
  // The field is free here: frames of members have no rank.
  header.rank = latest_of;
  header.flags = latest_of != 0 ? bootstrap::kLatestOnly : uint8_t{0};
  return best->connection.queue(header, payload);
}

void Neighbours::close(MemberId member) {
  // Who has introduced itself counts, not whom we meant to call: a port may be another process's by now.
  std::erase_if(links_, [&](const Link& link) { return (link.member != 0 ? link.member : link.target) == member; });
}

std::set<MemberId> Neighbours::heard_within(uint32_t ticks) const {
  std::set<MemberId> heard;
  for (const Link& link : links_) {
    if (link.stage == Link::Stage::open && link.silent < ticks) {
      heard.insert(link.member);
    }
  }
  return heard;
}

void Neighbours::flush() {
  for (Link& link : links_) {
    if (link.stage != Link::Stage::dialling) {
      link.connection.flush();
    }
  }
}

bool Neighbours::has_output() const {
  return std::ranges::any_of(
      links_, [](const Link& link) { return link.stage == Link::Stage::open && link.connection.has_output(); });
}

void Neighbours::watch(std::vector<pollfd>& fds) const {
  for (const base::UniqueFd& socket : listening_.sockets) {
    // Without a descriptor to spare a caller would make each poll() return at once.
    fds.push_back({socket.get(), static_cast<short>(is_short_ ? 0 : POLLIN), 0});
  }
  for (const Link& link : links_) {
    const bool is_dialling = link.stage == Link::Stage::dialling;
    const bool wants_output = is_dialling || link.connection.has_output();
    fds.push_back(
        {link.connection.fd(), static_cast<short>((is_dialling ? 0 : POLLIN) | (wants_output ? POLLOUT : 0)), 0});
  }
}

std::vector<Neighbours::Event> Neighbours::serve() {
  std::vector<Event> events;
  accept_all();
  for (Link& link : links_) {
    serve(link, events);
  }
  // Only here, so that nothing within the loop removes what it stands on.
  std::erase_if(links_, [](const Link& link) { return link.stage == Link::Stage::closed; });
  flush();
  return events;
}

void Neighbours::tick() {
  is_short_ = false;
  for (Link& link : links_) {
    ++link.silent;
  }
  std::erase_if(links_,
                [](const Link& link) { return link.stage != Link::Stage::open && link.silent > kMostHandshakeTicks; });
}

size_t Neighbours::n_strangers() const {
  return static_cast<size_t>(
      std::ranges::count_if(links_, [](const Link& link) { return link.stage == Link::Stage::answering; }));
}

void Neighbours::accept_all() {
  for (const base::UniqueFd& socket : listening_.sockets) {
    // Who finds no room waits in the kernel's queue until others have proven themselves or are dropped.
    while (n_strangers() < kMostStrangers) {
      bootstrap::Accepted accepted = bootstrap::accept_from(socket.get());
      if (!accepted.socket.is_open()) {
        is_short_ = accepted.error == EMFILE || accepted.error == ENFILE;
        break;
      }
      Link& link = links_.emplace_back();
      link.connection = bootstrap::Connection(std::move(accepted.socket), accepted.peer);
      link.stage = Link::Stage::answering;
      link.answering.emplace(config_, key_);
    }
  }
}

void Neighbours::serve(Link& link, std::vector<Event>& events) {
  if (link.stage == Link::Stage::dialling) {
    pollfd ready{link.connection.fd(), POLLOUT, 0};
    // Asked again, for not all links were among those of watch(), and connect() is done when it can be written to
    // (connect(2)).
    if (::poll(&ready, 1, 0) <= 0) {
      return;
    }
    if (const int error = bootstrap::end_dialling(link.connection.fd()); error != 0) {
      return drop(link, error, events);
    }
    link.stage = Link::Stage::calling;
    link.calling.emplace(config_, key_, self_);
    link.calling->begin(link.connection);
  }
  // What came before the end is worked off first.
  const std::optional<int> ended = link.connection.receive();
  while (link.stage != Link::Stage::closed) {
    auto frame = link.connection.next();
    if (!frame) {
      return drop(link, EBADMSG, events);
    }
    if (!*frame) {
      break;
    }
    take(link, **frame, events);
  }
  if (ended && link.stage != Link::Stage::closed) {
    drop(link, *ended, events);
  }
}

void Neighbours::take(Link& link, Frame& frame, std::vector<Event>& events) {
  // Any frame counts, of the handshake as well.
  link.silent = 0;
  if (link.stage < Link::Stage::introduced) {
    return take_of_handshake(link, frame);
  }
  if (frame.header.type != FrameType::message) {
    return drop(link, EBADMSG, events);
  }
  const auto kind = static_cast<FrameKind>(frame.header.kind);
  if (link.stage == Link::Stage::introduced) {
    base::ByteReader reader(frame.payload);
    link.member = reader.take<uint64_t>();
    // A connection to oneself too: an address that several machines have may lead back here.
    if (kind != FrameKind::introduction || !reader.is_sound() || link.member == 0 || link.member == self_) {
      link.member = 0;
      return drop(link, EBADMSG, events);
    }
    link.stage = Link::Stage::open;
    events.push_back({Event::What::opened, link.member});
    // Somebody else has its port by now.
    if (link.target != 0 && link.target != link.member) {
      events.push_back({Event::What::failed, link.target, FrameKind::introduction, {}, ECONNREFUSED});
    }
    return;
  }
  events.push_back({Event::What::frame, link.member, kind, std::move(frame.payload)});
}

/// What is wrong with a stranger is nobody's business here: it is refused, and told why.
void Neighbours::take_of_handshake(Link& link, const Frame& frame) {
  if (link.calling) {
    switch (link.calling->take(frame, link.connection)) {
      case bootstrap::CallingHandshake::Outcome::going_on:
        break;
      case bootstrap::CallingHandshake::Outcome::done:
        introduce(link);
        break;
      case bootstrap::CallingHandshake::Outcome::refused:
      case bootstrap::CallingHandshake::Outcome::strange:
        link.stage = Link::Stage::closed;
        break;
    }
    return;
  }
  if (const auto problem = link.answering->take(frame, link.connection)) {
    link.connection.queue({.type = FrameType::refused}, bootstrap::make_payload(bootstrap::as_payload(*problem)));
    // Whether the words still get out is not waited for.
    link.connection.flush();
    link.stage = Link::Stage::closed;
  } else if (link.answering->is_proven()) {
    link.answering->welcome(link.connection);
    introduce(link);
  }
}

void Neighbours::introduce(Link& link) {
  link.stage = Link::Stage::introduced;
  base::ByteWriter writer;
  writer.put(self_);
  bootstrap::FrameHeader header;
  header.type = FrameType::message;
  header.kind = static_cast<uint16_t>(FrameKind::introduction);
  // Small, and the first of ours after the handshake: it has room.
  link.connection.queue(header, bootstrap::make_payload(std::move(writer).bytes()));
}

void Neighbours::drop(Link& link, int error, std::vector<Event>& events) {
  const Link::Stage before = std::exchange(link.stage, Link::Stage::closed);
  // Refused in the handshake: no news of the one that was called.
  if (before == Link::Stage::dialling && link.target != 0) {
    events.push_back({Event::What::failed, link.target, FrameKind::introduction, {}, error});
  }
  // With a second connection still open nothing has ended.
  if (before == Link::Stage::open && !is_open(link.member)) {
    events.push_back({Event::What::closed, link.member, FrameKind::introduction, {}, error});
  }
}

}  // namespace ringbolt::membership
