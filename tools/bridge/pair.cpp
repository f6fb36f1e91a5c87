#include "bridge/pair.h"

#include <cerrno>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "scrape_server.h"

namespace ringbolt::tools::bridge {
namespace {

// The listener stays readable for the rest.
constexpr int kMostAccepts = 64;            // of one turn, so that connections have theirs
constexpr uint64_t kPauseNs = 100'000'000;  // where no descriptor is left: one may come back

bool is_exhausted(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

struct TallyMetric {
  const char* name;  ///< without "ringbolt_bridge_"
  const char* type;
  const char* help;
  uint64_t (*value)(const Tally&);
};

constexpr TallyMetric kTallyMetrics[] = {
    {"connections", "gauge", "Connections that are open", [](const Tally& one) { return one.open; }},
    {"accepted_total", "counter", "Connections that were accepted", [](const Tally& one) { return one.accepted; }},
    {"to_fabric_bytes_total", "counter", "Bytes relayed from sockets to RDMA",
     [](const Tally& one) { return one.moved.to_fabric_bytes; }},
    {"to_socket_bytes_total", "counter", "Bytes relayed from RDMA to sockets",
     [](const Tally& one) { return one.moved.to_socket_bytes; }},
    {"messages_sent_total", "counter", "RDMA WRITEs that were sent",
     [](const Tally& one) { return one.fabric.messages_sent; }},
    {"messages_received_total", "counter", "RDMA WRITEs that were received",
     [](const Tally& one) { return one.fabric.messages_received; }},
    {"announcements_sent_total", "counter", "Receive buffers announced to peers",
     [](const Tally& one) { return one.fabric.announcements_sent; }},
    {"announcements_received_total", "counter", "Receive buffers that peers announced",
     [](const Tally& one) { return one.fabric.announcements_received; }},
    {"fabric_stalls_total", "counter", "Times that a peer's receive buffer was full",
     [](const Tally& one) { return one.fabric.stalls; }},
    {"fabric_stall_nanoseconds_total", "counter", "And for how long",
     [](const Tally& one) { return one.fabric.stall_ns; }},
    {"socket_stalls_total", "counter", "Times that a socket took no more",
     [](const Tally& one) { return one.moved.socket_stalls; }},
};

std::string labels_of_pair(const Tally& one) {
  return fmt::format("listen=\"{}\",connect=\"{}\"", escaped_label(one.listen), escaped_label(one.connect));
}

void add_head(std::string& text, const char* name, const char* type, const char* help) {
  text += fmt::format("# HELP ringbolt_bridge_{0} {2}\n# TYPE ringbolt_bridge_{0} {1}\n", name, type, help);
}

}  // namespace

Pair::Pair(const Place& listen, const Place& connect) : listen_(listen), connect_(connect) {
  target_.place = connect;
  if (listen.kind != Place::Kind::rdma) {
    socket_.emplace("--listen", listen);
    listen_ = socket_->place();
    stream_target_ = addresses_of(connect);
  } else if (connect.kind == Place::Kind::tcp) {
    target_.addresses = addresses_of(connect);
  }
}

Pair::~Pair() {
  watch_.reset();
  connections_.clear();
}

void Pair::start(Surroundings& around, Limits& limits) {
  around_ = &around;
  limits_ = &limits;
  allowed_.emplace(limits.allowed);
  if (!socket_) {
    stream::ListenerSettings settings;
    settings.stream = around.stream;
    settings.allowed = limits.allowed;
    settings.max_streams = static_cast<uint32_t>(limits.max_connections);
    listener_ = std::make_unique<stream::Listener>(around.service, listen_.host, listen_.port, settings);
    listen_.port = listener_->port();
  }
  watch_.emplace(around.loop, socket_ ? socket_->fd() : listener_->fd(), *this);
  watch_->want(true, false);
}

void Pair::stop_listening() {
  on_event();  // who has knocked before is let in
  watch_.reset();
  pause(0);
  count_turned_away(past_);
  socket_.reset();
  listener_.reset();
}

void Pair::stop(std::string_view reason) {
  // A copy: connections that end leave the map.
  std::vector<Connection*> all;
  for (const auto& [connection, owned] : connections_) {
    all.push_back(connection);
  }
  for (Connection* connection : all) {
    connection->stop(reason);
  }
}

bool Pair::bury(uint64_t until_ns) {
  while (!ended_.empty() && base::now_ns() < until_ns) {
    ended_.pop_back();
  }
  return ended_.empty();
}

Tally Pair::tally() const {
  Tally now = past_;
  now.listen = listen_text();
  now.connect = connect_text();
  now.open = connections_.size();
  for (const auto& [connection, owned] : connections_) {
    now.add(connection->moved(), connection->statistics());
  }
  count_turned_away(now);
  return now;
}

/// Those whom the listener has turned away before there was a stream.
void Pair::count_turned_away(Tally& tally) const {
  const stream::CloseCounts counts = listener_ ? listener_->tally().rejections.counts() : stream::CloseCounts{};
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != 0) {
      tally.closed[std::string(stream::name_of(static_cast<stream::CloseReason>(i)))] += counts[i];
    }
  }
}

void Pair::on_event() {
  if (!watch_) {
    return;
  }
  if (paused_until_ns_ != 0) {
    pause(0);
    watch_->want(true, false);
  }
  for (int i = 0; i < kMostAccepts && (socket_ ? accept_socket() : accept_stream()); ++i) {
  }
}

bool Pair::accept_socket() {
  stream::Address peer;
  auto accepted = socket_->accept(peer);
  if (!accepted) {
    const int error = accepted.error().value;
    if (is_exhausted(error)) {
      refuse("no-resources", base::reason_of(error));
      // Level-triggered: it would tell without end of who can't be accepted.
      watch_->want(false, false);
      pause(base::now_ns() + kPauseNs);
    }
    return error == ECONNABORTED || error == EINTR;
  }
  ++past_.accepted;
  if (socket_->place().kind == Place::Kind::tcp && !allowed_->allows(peer)) {
    refuse("not-allowed", fmt::format("{} is not on the list of --allow", peer.text()));
  } else if (limits_->open >= limits_->max_connections) {
    refuse("too-many", fmt::format("--max-connections {} are open", limits_->max_connections));
  } else {
    try {
      admit(stream::Stream::connect(around_->service, stream_target_, connect_text(), around_->stream),
            std::move(*accepted));
    } catch (const base::Error& error) {
      refuse("no-resources", error.what());
    } catch (const std::bad_alloc&) {
      refuse("no-resources", "out of memory");
    }
  }
  return true;
}

bool Pair::accept_stream() {
  auto accepted = listener_->accept(stream::Deadline::now());
  if (!accepted) {
    return false;
  }
  ++past_.accepted;
  if (limits_->open >= limits_->max_connections) {
    refuse("too-many", fmt::format("--max-connections {} are open", limits_->max_connections));
    return true;
  }
  try {
    admit(std::move(*accepted), base::UniqueFd());
  } catch (const base::Error& error) {
    refuse("no-resources", error.what());
  } catch (const std::bad_alloc&) {
    refuse("no-resources", "out of memory");
  }
  return true;
}

void Pair::admit(std::unique_ptr<stream::Stream> stream, base::UniqueFd socket) {
  auto made = socket.is_open() ? std::make_unique<Connection>(*around_, *this, std::move(stream), std::move(socket))
                               : std::make_unique<Connection>(*around_, *this, std::move(stream), target_);
  Connection* const connection = made.get();
  connections_.emplace(connection, std::move(made));
  ++limits_->open;
  connection->on_event();
}

void Pair::refuse(const std::string& reason, const std::string& problem) {
  ++past_.closed[reason];
  say(reason, fmt::format("{}: {}", reason, problem));
}

/// Of one kind is what has the same reason: the text may name a port of the peer's, another one each time.
void Pair::say(const std::string& reason, const std::string& text) {
  const std::string pair = fmt::format("{} -> {}: ", listen_text(), connect_text());
  limits_->say(pair + reason, pair + text);
}

void Pair::pause(uint64_t until_ns) {
  around_->deadlines.move(*this, paused_until_ns_, until_ns);
  paused_until_ns_ = until_ns;
}

void Pair::on_ended(Connection& connection, const std::string& reason, const std::string& problem) {
  past_.add(connection.moved(), connection.statistics());
  ++past_.closed[reason];
  --limits_->open;
  if (!problem.empty()) {
    say(reason, problem);
  }
  const auto found = connections_.find(&connection);
  ended_.push_back(std::move(found->second));
  connections_.erase(found);
}

void Tally::add(const Moved& of_relay, const stream::Statistics& of_stream) {
  moved.to_fabric_bytes += of_relay.to_fabric_bytes;
  moved.to_socket_bytes += of_relay.to_socket_bytes;
  moved.socket_stalls += of_relay.socket_stalls;
  fabric.messages_sent += of_stream.messages_sent;
  fabric.messages_received += of_stream.messages_received;
  fabric.announcements_sent += of_stream.announcements_sent;
  fabric.announcements_received += of_stream.announcements_received;
  fabric.stalls += of_stream.stalls;
  fabric.stall_ns += of_stream.stall_ns;
}

std::string Tally::text() const {
  const bool is_forward = !listen.starts_with("rdma:");
  const uint64_t there = is_forward ? moved.to_fabric_bytes : moved.to_socket_bytes;
  const uint64_t back = is_forward ? moved.to_socket_bytes : moved.to_fabric_bytes;
  std::string text =
      fmt::format("{} -> {}: {} connections, {} bytes there, {} back", listen, connect, accepted, there, back);
  const char* mark = "; ";
  for (const auto& [reason, count] : closed) {
    text += fmt::format("{}{} {}", mark, reason, count);
    mark = ", ";
  }
  return text;
}

std::string tallies_exposition(const std::vector<Tally>& pairs, uint64_t memory_bytes, bool is_draining) {
  std::string text = build_exposition();
  for (const TallyMetric& metric : kTallyMetrics) {
    add_head(text, metric.name, metric.type, metric.help);
    for (const Tally& one : pairs) {
      text += fmt::format("ringbolt_bridge_{}{{{}}} {}\n", metric.name, labels_of_pair(one), metric.value(one));
    }
  }
  add_head(text, "closed_total", "counter", "Connections that ended, or never came about, by reason");
  for (const Tally& one : pairs) {
    for (const auto& [reason, count] : one.closed) {
      text += fmt::format("ringbolt_bridge_closed_total{{{},reason=\"{}\"}} {}\n", labels_of_pair(one), reason, count);
    }
  }
  add_head(text, "memory_bytes", "gauge", "Memory of the budget that the buffers of streams take");
  text += fmt::format("ringbolt_bridge_memory_bytes {}\n", memory_bytes);
  add_head(text, "draining", "gauge", "1: a signal has come, and no new connections are taken");
  text += fmt::format("ringbolt_bridge_draining {}\n", is_draining ? 1 : 0);
  return text;
}

}  // namespace ringbolt::tools::bridge
