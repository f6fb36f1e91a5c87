#include "mesh/watch.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "fabric/cable_news.h"
#include "fabric/heartbeat.h"
#include "mesh/word.h"

namespace ringbolt::mesh {
namespace {

/// Whatever is due: the side channel is looked at so often.
constexpr uint64_t kMostWatchNs = 20'000'000;
/// Ports that have lost their cable are looked at so often.
constexpr uint64_t kPortLookNs = 100'000'000;

static_assert(engine::kReportBytes + fabric::kMaxHeartbeatBytes + 4 * fabric::kMostNews <= engine::kSmallPayloadBytes);

std::vector<fabric::WatchedCable> watched(const BroughtUp& made) {
  std::vector<fabric::WatchedCable> cables;
  for (uint32_t i = 0; i < made.station->n_cables(); ++i) {
    const CableWords& words = made.cables[made.station->fabric_cable(i)];
    const uint32_t peer = made.station->cable(i).plan().peer;
    cables.push_back({peer, peer == words.b ? words.device_a : words.device_b});
  }
  return cables;
}

}  // namespace

Watch::Watch(Surroundings& around, const BroughtUp& made, uint32_t rank, uint32_t n_ranks,
             const fabric::LivenessKnobs& knobs, uint64_t incarnation, uint64_t now_ns)
    : around_(around),
      made_(made),
      rank_(rank),
      n_ranks_(n_ranks),
      knobs_(knobs),
      ranks_(n_ranks),
      cables_(made.cables.size()),
      mender_(made.station, *this),
      received_bytes_(n_local_cables()),
      has_lost_port_(n_local_cables()),
      incarnation_(incarnation) {
  if (made.station && n_ranks <= fabric::kMaxWatchedRanks) {
    liveness_.emplace(rank, n_ranks, watched(made), knobs, now_ns);
  }
}

void Watch::hear_beat(std::span<const std::byte> bytes, std::optional<uint32_t> cable, uint64_t now_ns) {
  const size_t length = fabric::heartbeat_bytes(n_ranks_);
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
    liveness_->heard_through(*cable, *heartbeat, now_ns);
  } else {
    liveness_->heard(*heartbeat, now_ns);
  }
  next_ns_ = std::min(next_ns_, liveness_->next_heartbeat_ns());
  for (const fabric::CableNews& one : *news) {
    if (!cables_.hear(one)) {
      continue;
    }
    hurry();  // news travel on at once
    if (one.works() && !agrees_that_works(one.cable, now_ns)) {
      // This end's own news travel on as all do.
      cables_.contradict(one.cable);
      continue;
    }
    set_cable(one.cable, one.works(), fmt::format("rank {} says that it is down", heartbeat->rank));
  }
}

/// A cable works when both of its ends say so: one end alone does not know whether what it sends arrives.
bool Watch::agrees_that_works(uint32_t fabric_cable, uint64_t now_ns) {
  for (uint32_t cable = 0; cable < made_.station->n_cables(); ++cable) {
    if (made_.station->fabric_cable(cable) == fabric_cable) {
      return made_.station->cable(cable).is_alive() && liveness_->confirm_up(cable, now_ns);
    }
  }
  return true;  // it is between others
}

/// By the thread, and by callers that wait long, whoever comes first when it is due; sets when it is due again.
void Watch::progress(uint64_t now_ns) {
  if (!liveness_) {
    next_ns_ = now_ns + kMostWatchNs;
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
  mender_.progress(now_ns);
  next_ns_ =
      std::min({now_ns + kMostWatchNs, next_beat_ns_, liveness_->next_heartbeat_ns(), liveness_->next_deadline_ns()});
}

std::vector<std::byte> Watch::beat_bytes(uint64_t now_ns) {
  const fabric::Heartbeat heartbeat = liveness_->heartbeat(0, incarnation_, ++turn_, now_ns);
  std::vector<std::byte> bytes(fabric::heartbeat_bytes(n_ranks_));
  fabric::emit(heartbeat, bytes);
  const std::vector<std::byte> news = fabric::emit_news(cables_.versions(), turn_);
  bytes.insert(bytes.end(), news.begin(), news.end());
  return bytes;
}

void Watch::beat(uint64_t now_ns) {
  hear_hosts(now_ns);
  const std::vector<std::byte> bytes = beat_bytes(now_ns);
  for (uint32_t cable = 0; cable < made_.station->n_cables(); ++cable) {
    (void)engine().send_beat(cable, bytes);  // without credit the peer is behind: it will miss beats
  }
  // Through the side channel at an interval, through cables also whenever liveness wants it.
  if (now_ns >= next_beat_ns_) {
    next_beat_ns_ = now_ns + knobs_.interval_ns;
    (void)around_.send(bootstrap::kEveryone, kHeartbeatMessage, bytes, true);
  }
}

/// Chunks are as good as heartbeats.
void Watch::hear_cables(uint64_t now_ns) {
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
void Watch::hear_ports(uint64_t now_ns) {
  for (const uint32_t cable : made_.station->take_lost_ports()) {
    if (engine().paths().can_spare(made_.station->fabric_cable(cable))) {
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
void Watch::hear_hosts(uint64_t now_ns) {
  const uint64_t answering =
      around_.hosts_answering(static_cast<uint32_t>((knobs_.interval_ns + knobs_.interval_ns / 2) / 1'000'000));
  for (uint32_t other = 0; other < std::min(n_ranks_, fabric::kMaxWatchedRanks); ++other) {
    // Bit by rank: kMaxWatchedRanks is 64.
    if ((answering >> other & 1) != 0) {
      liveness_->host_answered(other, now_ns);
    }
  }
}

/// `event.rank` is told by the side channel, as whose message it was; the bytes are a peer's and are parsed with
/// care.
void Watch::hear_message(const bootstrap::Event& event, uint64_t now_ns) {
  switch (event.message_kind) {
    case kHeartbeatMessage:
      hear_beat(event.bytes, std::nullopt, now_ns);
      break;
    case kMendingMessage:
      hear_mending(event.rank, event.bytes);
      break;
    case kGivenUpMessage: {
      // Through the codec and back, which makes foreign text short and printable.
      const auto word = parse_word(emit(Word{
          WordKind::failed, 0, std::string(reinterpret_cast<const char*>(event.bytes.data()), event.bytes.size())}));
      fail_rank(event.rank,
                {ECONNRESET, fmt::format("rank {} has given up this rank, {}: {}", event.rank, rank_, word->text)},
                false);
      break;
    }
    case kLeavingMessage:
      ranks_.note_leaving(event.rank);
      break;
    default:
      around_.on_message(event.rank, event.message_kind, event.bytes);
      break;
  }
}

/// A connection that ends says less than it seems to: liveness decides, unless there is none.
void Watch::hear_end(const bootstrap::Event& event, uint64_t now_ns) {
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

void Watch::hear(const bootstrap::Event& event, uint64_t now_ns) {
  if (event.kind == bootstrap::Event::Kind::message) {
    hear_message(event, now_ns);
  } else {
    hear_end(event, now_ns);
  }
}

void Watch::hear_mending(uint32_t from, std::span<const std::byte> bytes) {
  if (mender_.hear(from, bytes)) {
    look_soon();
  }
}

bool Watch::send_mending(uint32_t to, std::span<const std::byte> word) {
  return around_.send(to, kMendingMessage, word, false);
}

void Watch::on_mended(uint32_t cable, uint64_t now_ns) {
  if (liveness_) {
    liveness_->cable_mended(cable, now_ns);
  }
}

}  // namespace ringbolt::mesh
