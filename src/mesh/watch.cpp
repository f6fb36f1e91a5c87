// Who is alive: heartbeats through cables and the side channel, and what else is heard.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "fabric/cable_news.h"
#include "fabric/heartbeat.h"
#include "mesh/mesh.h"
#include "mesh/word.h"

namespace ringbolt::mesh {
namespace {

/// Whatever is due: the side channel is looked at so often.
constexpr uint64_t kMostWatchNs = 20'000'000;
/// Ports that have lost their cable are looked at so often.
constexpr uint64_t kPortLookNs = 100'000'000;

static_assert(engine::kReportBytes + fabric::kMaxHeartbeatBytes + 4 * fabric::kMostNews <= engine::kSmallPayloadBytes);

}  // namespace

void Mesh::on_beat(uint32_t cable, std::span<const std::byte> bytes) { hear_beat(bytes, cable); }

void Mesh::hear_beat(std::span<const std::byte> bytes, std::optional<uint32_t> cable) {
  const size_t length = fabric::heartbeat_bytes(n_ranks());
  // What is cut off or of no known form is dropped without a word: the next beat comes soon.
  if (!liveness_ || bytes.size() < length) {
    return;
  }
  const auto heartbeat = fabric::parse_heartbeat(bytes.first(length));
  const auto news = fabric::parse_news(bytes.subspan(length));
  if (!heartbeat || !news) {
    return;
  }
  if (cable) {
    liveness_->heard_through(*cable, *heartbeat, now_ns_);
  } else {
    liveness_->heard(*heartbeat, now_ns_);
  }
  next_watch_ns_ = std::min(next_watch_ns_, liveness_->next_heartbeat_ns());
  for (const fabric::CableNews& one : *news) {
    // Versions wrap at 16 bits: the sign of the difference tells which one is newer (RFC 1982).
    if (one.cable >= cable_versions_.size() || static_cast<int16_t>(one.version - cable_versions_[one.cable]) <= 0) {
      continue;
    }
    cable_versions_[one.cable] = one.version;
    hurry();  // news travel on at once
    if (one.works() && !agrees_that_works(one.cable)) {
      // This end contradicts, with a newer version, which travels on as all news do.
      ++cable_versions_[one.cable];
      continue;
    }
    set_cable(one.cable, one.works(), fmt::format("rank {} says that it is down", heartbeat->rank));
  }
}

/// A cable works when both of its ends say so: one end alone does not know whether what it sends arrives.
bool Mesh::agrees_that_works(uint32_t fabric_cable) {
  for (uint32_t cable = 0; cable < made_.station->n_cables(); ++cable) {
    if (made_.station->fabric_cable(cable) == fabric_cable) {
      return made_.station->cable(cable).is_alive() && liveness_->confirm_up(cable, now_ns_);
    }
  }
  return true;  // it is between others
}

/// By the thread, and by callers that wait long, whoever comes first when it is due; sets when it is due again.
void Mesh::watch(uint64_t now_ns) {
  now_ns = now_ns_ = std::max(now_ns, now_ns_);
  hear_side_channel(now_ns);
  if (!liveness_) {
    next_watch_ns_ = now_ns + kMostWatchNs;
    return;
  }
  hear_cables(now_ns);
  hear_ports(now_ns);
  if (now_ns >= next_beat_ns_ || now_ns >= liveness_->next_heartbeat_ns()) {
    beat(now_ns);
  }
  std::vector<fabric::LivenessChange> changes = liveness_->check(now_ns);
  std::stable_partition(changes.begin(), changes.end(), [](const fabric::LivenessChange& change) {
    return change.kind == fabric::LivenessChange::Kind::cable_up;  // nobody is out of reach to whom it leads
  });
  for (const fabric::LivenessChange& change : changes) {
    apply(change);
  }
  mend(now_ns);
  next_watch_ns_ =
      std::min({now_ns + kMostWatchNs, next_beat_ns_, liveness_->next_heartbeat_ns(), liveness_->next_deadline_ns()});
}

std::vector<std::byte> Mesh::beat_bytes(uint64_t now_ns) {
  const fabric::Heartbeat heartbeat = liveness_->heartbeat(0, incarnation_, ++turn_, now_ns);
  std::vector<std::byte> bytes(fabric::heartbeat_bytes(n_ranks()));
  fabric::emit(heartbeat, bytes);
  const std::vector<std::byte> news = fabric::emit_news(cable_versions_, turn_);
  bytes.insert(bytes.end(), news.begin(), news.end());
  return bytes;
}

void Mesh::beat(uint64_t now_ns) {
  hear_hosts(now_ns);
  const std::vector<std::byte> bytes = beat_bytes(now_ns);
  for (uint32_t cable = 0; cable < made_.station->n_cables(); ++cable) {
    (void)engine()->send_beat(cable, bytes);  // without credit the peer is behind: it will miss beats
  }
  // Through the side channel at an interval, through cables also whenever liveness wants it.
  if (now_ns >= next_beat_ns_) {
    next_beat_ns_ = now_ns + knobs_.interval_ns;
    (void)side_channel_.send(bootstrap::kEveryone, kHeartbeatMessage, bytes, true);
  }
}

/// Chunks are as good as heartbeats.
void Mesh::hear_cables(uint64_t now_ns) {
  for (uint32_t cable = 0; cable < received_bytes_.size(); ++cable) {
    const uint64_t received = made_.station->cable(cable).received_bytes;
    if (received != received_bytes_[cable]) {
      received_bytes_[cable] = received;
      liveness_->heard_data(cable, now_ns);
    }
  }
}

/// A port that says it has lost its cable is believed at once if there are other ways. If not, silence decides: it may
/// soon be back, and nothing else would do.
void Mesh::hear_ports(uint64_t now_ns) {
  for (const uint32_t cable : made_.station->take_lost_ports()) {
    if (engine()->paths().can_spare(made_.station->fabric_cable(cable))) {
      has_lost_port_[cable] = true;
      liveness_->cable_error(cable, made_.station->cable(cable).plan().name + ": the port says that it is down",
                             now_ns);
    }
  }
  if (now_ns < next_port_look_ns_) {
    return;
  }
  next_port_look_ns_ = now_ns + kPortLookNs;
  for (uint32_t cable = 0; cable < has_lost_port_.size(); ++cable) {
    if (has_lost_port_[cable] && made_.station->is_port_active(cable)) {
      has_lost_port_[cable] = false;
      if (made_.station->cable(cable).is_alive()) {  // else when it has been connected anew
        liveness_->cable_mended(cable, now_ns);
      }
    }
  }
}

/// A host whose kernel still acknowledges has not lost its power or its network: its rank may be stopped, but not
/// gone.
void Mesh::hear_hosts(uint64_t now_ns) {
  const uint64_t answering =
      side_channel_.hosts_answering(static_cast<uint32_t>((knobs_.interval_ns + knobs_.interval_ns / 2) / 1'000'000));
  for (uint32_t other = 0; other < std::min(n_ranks(), fabric::kMaxWatchedRanks); ++other) {
    // Bit by rank: kMaxWatchedRanks is 64.
    if ((answering >> other & 1) != 0) {
      liveness_->host_answered(other, now_ns);
    }
  }
}

/// `event.rank` is told by the side channel, as whose message it was; the bytes are a peer's and are parsed with
/// care.
void Mesh::hear_message(const bootstrap::Event& event) {
  switch (event.message_kind) {
    case kHeartbeatMessage:
      hear_beat(event.bytes, std::nullopt);
      break;
    case kMendingMessage:
      hear_mending(event.rank, event.bytes);
      break;
    case kGivenUpMessage: {
      // Through the codec and back, which makes foreign text short and printable.
      const auto word = parse_word(emit(Word{
          WordKind::failed, 0, std::string(reinterpret_cast<const char*>(event.bytes.data()), event.bytes.size())}));
      fail_rank(event.rank,
                {ECONNRESET, fmt::format("rank {} has given up this rank, {}: {}", event.rank, rank(), word->text)},
                false);
      break;
    }
    case kLeavingMessage:
      is_leaving_[event.rank] = true;
      break;
    default:
      clients_.each([&](Client& client) { client.on_message(event.rank, event.message_kind, event.bytes); });
      break;
  }
}

/// A connection that ends says less than it seems to: liveness decides, unless there is none.
void Mesh::hear_end(const bootstrap::Event& event, uint64_t now_ns) {
  const bool has_left = event.kind == bootstrap::Event::Kind::left;
  if (liveness_ && event.rank == 0) {
    liveness_->hosts_unknown();  // all other connections were rank 0's
  }
  if (liveness_ && has_left) {
    liveness_->left(event.rank, now_ns);
  } else if (liveness_) {
    liveness_->side_channel_closed(event.rank, event.errno_value, now_ns);
  } else {
    fail_rank(event.rank,
              {ECONNRESET, has_left ? fmt::format("rank {} has left", event.rank)
                                    : fmt::format("rank {} is lost: its process has ended", event.rank)},
              true);
  }
}

void Mesh::hear_side_channel(uint64_t now_ns) {
  for (const bootstrap::Event& event : side_channel_.poll()) {
    if (event.kind == bootstrap::Event::Kind::message) {
      hear_message(event);
    } else {
      hear_end(event, now_ns);
    }
  }
}

}  // namespace ringbolt::mesh
