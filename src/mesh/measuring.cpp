#include "mesh/measuring.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/assert.h"
#include "base/clock.h"
#include "engine/slots.h"

namespace ringbolt::mesh {
namespace {

constexpr uint32_t kChunkBytes = engine::kLargePayloadBytes;
/// The first burst is short: of a slow cable it must do.
constexpr uint32_t kFirstBurst = 2;
/// In chunks of 64 KiB: enough that the word which answers counts little.
constexpr uint32_t kBurst = 8;
/// A burst that took so long has said enough.
constexpr uint64_t kLongNs = 2'000'000;

/// Not measured: a relay takes a chunk in, checks it and passes it on, 64 KiB in some 16 us, whatever its cables carry.
constexpr double kRelayBytesPerUs = 4000;
/// Nor this: numbers that the cables have brought are added up at the speed of memory, not of the cache.
constexpr double kAddBytesPerUs = 20'000;

uint32_t burst_of(uint32_t number) { return number == 0 ? kFirstBurst : kBurst; }

/// Whatever a rank claims: beyond any cable, and far from where numbers wrap.
constexpr uint64_t kMostFigure = 1'000'000'000'000;

/// Powers of two and one and a half times those: the nearest.
uint64_t coarse(uint64_t value) {
  uint64_t power = 1;
  while (power <= value / 2) {
    power *= 2;
  }
  return value < power + power / 4 ? power : value < power + power * 3 / 4 ? power + power / 2 : 2 * power;
}

/// Of at least one value; of an even number the upper one.
uint64_t median(std::vector<uint64_t> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

Measuring::Measuring(engine::Engine& engine, uint32_t rank, const std::vector<uint32_t>& neighbours)
    : engine_(engine), rank_(rank) {
  for (const uint32_t neighbour : neighbours) {
    peers_.emplace_back().rank = neighbour;
  }
  // Until another receiver is set the engine has a pointer to this: it must not progress once this is gone.
  engine_.set_receiver(*this);
}

/// All neighbours at the same time, as collectives load the cables.
void Measuring::start() {
  for (Peer& peer : peers_) {
    peer.begin_ns = base::now_ns();
    say(peer, Say::ping);
  }
}

bool Measuring::progress(uint64_t now_ns) {
  const bool has_done = engine_.progress(now_ns);
  for (Peer& peer : peers_) {
    send_chunks(peer);
  }
  return has_done;
}

bool Measuring::is_done() const {
  return std::ranges::all_of(peers_, [](const Peer& peer) { return peer.is_done && peer.is_peer_done; });
}

std::vector<LinkFigures> Measuring::figures() const {
  std::vector<LinkFigures> figures;
  for (const Peer& peer : peers_) {
    LinkFigures& one = figures.emplace_back();
    one.a = std::min(rank_, peer.rank);
    one.b = std::max(rank_, peer.rank);
    // At least 1, since 0 says that nothing was measured.
    one.latency_ns = peer.n_pongs > 0 ? std::max<uint64_t>(peer.least_round_ns / 2, 1) : 0;
    one.bytes_per_ms = peer.bytes_per_ms;
  }
  return figures;
}

Measuring::Peer* Measuring::find(uint32_t rank) {
  const auto found = std::ranges::find(peers_, rank, &Peer::rank);
  return found == peers_.end() ? nullptr : &*found;
}

void Measuring::say(const Peer& peer, Say what) {
  const std::array<std::byte, 2> bytes = {kWordKind, static_cast<std::byte>(what)};
  engine::Address address;
  address.destination = peer.rank;
  address.group = kGroup;
  engine_.send_word(bytes, address);
}

void Measuring::begin_burst(Peer& peer) {
  peer.n_to_send = burst_of(peer.n_bursts);
  peer.begin_ns = base::now_ns();
  send_chunks(peer);
}

void Measuring::send_chunks(Peer& peer) {
  for (; peer.n_to_send > 0; --peer.n_to_send) {
    const auto slot = engine_.take_slot(kChunkBytes);
    // progress() goes on with it when the engine has memory again.
    if (!slot) {
      return;
    }
    engine::Address address;
    address.destination = peer.rank;
    address.group = kGroup;
    engine_.send(slot->id, kChunkBytes, address);
  }
}

void Measuring::on_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt) {
  // What a chunk holds nobody looks at: only its arrival counts.
  engine_.release(receipt.id);
  Peer* peer = find(header.source);
  if (peer == nullptr) {
    return;
  }
  // Bursts follow one another: the next one begins when this one has been heard of.
  ++peer->n_received;
  uint32_t whole = 0;
  for (uint32_t burst = 0; burst < kBursts; ++burst) {
    whole += burst_of(burst);
    if (peer->n_received == whole) {
      say(*peer, Say::got);
    }
  }
}

void Measuring::on_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes) {
  Peer* peer = find(header.source);
  if (peer == nullptr || bytes.size() != 2 || bytes[0] != kWordKind) {
    return;
  }
  switch (static_cast<Say>(bytes[1])) {
    case Say::ping:
      say(*peer, Say::pong);
      break;
    case Say::pong:
      hear_pong(*peer);
      break;
    case Say::got:
      hear_got(*peer);
      break;
    case Say::done:
      peer->is_peer_done = true;
      break;
  }
}

void Measuring::hear_pong(Peer& peer) {
  const uint64_t now_ns = base::now_ns();
  const uint64_t round_ns = now_ns - peer.begin_ns;
  peer.least_round_ns = std::min(peer.least_round_ns, round_ns);
  if (++peer.n_pongs < kPings && round_ns < kLongNs) {
    peer.begin_ns = now_ns;
    say(peer, Say::ping);
    // A late pong must not begin the burst anew that is under way: n_bursts counts those that are over.
  } else if (!peer.is_done && peer.n_bursts == 0) {
    begin_burst(peer);
  }
}

void Measuring::hear_got(Peer& peer) {
  if (peer.is_done) {
    return;
  }
  const uint64_t elapsed_ns = base::now_ns() - peer.begin_ns;
  const uint64_t bytes = uint64_t{burst_of(peer.n_bursts)} * kChunkBytes;
  // The word that says so was on its way, too.
  const uint64_t sending_ns = std::max<uint64_t>(elapsed_ns - std::min(peer.least_round_ns, elapsed_ns * 3 / 4), 1);
  // The best burst: others were held up by whoever else had the processor.
  peer.bytes_per_ms = std::max(peer.bytes_per_ms, bytes * 1'000'000 / sending_ns);
  if (++peer.n_bursts < kBursts && elapsed_ns < kLongNs) {
    begin_burst(peer);
  } else {
    peer.is_done = true;
    say(peer, Say::done);
  }
}

/// Figures are ranks' claims: kMostFigure keeps sums of two within 64 bits. A link of ranks that are no neighbours is
/// left alone later (model_of()).
std::vector<LinkFigures> merged(const std::vector<std::vector<LinkFigures>>& of_ranks) {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<LinkFigures>> links;
  for (const auto& of_rank : of_ranks) {
    for (const LinkFigures& one : of_rank) {
      links[{one.a, one.b}].push_back(one);
    }
  }
  std::vector<LinkFigures> all;
  for (const auto& [ends, both] : links) {
    LinkFigures& link = all.emplace_back();
    link.a = ends.first;
    link.b = ends.second;
    uint64_t n_rates = 0;
    for (const LinkFigures& one : both) {
      const bool is_shorter = one.latency_ns > 0 && (link.latency_ns == 0 || one.latency_ns < link.latency_ns);
      link.latency_ns = is_shorter ? std::min(one.latency_ns, kMostFigure) : link.latency_ns;
      link.bytes_per_ms += std::min(one.bytes_per_ms, kMostFigure);
      n_rates += one.bytes_per_ms > 0 ? 1 : 0;
    }
    link.bytes_per_ms /= std::max<uint64_t>(n_rates, 1);
  }
  return all;
}

MeasuredModel model_of(const std::vector<LinkFigures>& links, const fabric::Graph& graph) {
  MeasuredModel made;
  made.thinner.assign(graph.cables.size(), 1);
  // In thousandths, so that a link of half a capacity is still a number.
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> capacities;
  for (const fabric::Cable& cable : graph.cables) {
    capacities[{cable.a, cable.b}] +=
        static_cast<uint64_t>(std::max<int64_t>(1, cable.capacity.numerator() * 1000 / cable.capacity.denominator()));
  }
  std::vector<uint64_t> latencies;
  std::vector<uint64_t> rates;  // of capacity 1
  for (const LinkFigures& link : links) {
    const auto capacity = capacities.find({link.a, link.b});
    if (capacity != capacities.end() && link.latency_ns > 0 && link.bytes_per_ms > 0) {
      latencies.push_back(link.latency_ns);
      rates.push_back(std::max<uint64_t>(link.bytes_per_ms * 1000 / capacity->second, 1));
    }
  }
  made.n_links = static_cast<uint32_t>(rates.size());
  if (rates.empty()) {
    return made;
  }
  const uint64_t rate = median(rates);
  made.model.latency_us = static_cast<double>(coarse(median(latencies))) / 1000;
  made.model.bytes_per_us = static_cast<double>(coarse(rate)) / 1000;
  made.model.relay_bytes_per_us = kRelayBytesPerUs;
  made.model.add_bytes_per_us = kAddBytesPerUs;
  for (const LinkFigures& link : links) {
    for (size_t i = 0; i < graph.cables.size(); ++i) {
      if (graph.cables[i].a == link.a && graph.cables[i].b == link.b && link.bytes_per_ms > 0) {
        const uint64_t expected = rate * capacities[{link.a, link.b}] / 1000;
        const uint64_t factor = expected / link.bytes_per_ms;
        constexpr uint64_t kMostFactor = 64;
        // Beyond that a schedule avoids the cable anyhow, and fractions stay small.
        made.thinner[i] = factor < kOddFactor ? 1 : static_cast<uint32_t>(std::min(coarse(factor), kMostFactor));
      }
    }
  }
  return made;
}

}  // namespace ringbolt::mesh
