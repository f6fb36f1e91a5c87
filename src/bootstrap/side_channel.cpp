#include "bootstrap/side_channel.h"

#include <utility>

#include "base/clock.h"
#include "bootstrap/authenticator.h"
#include "bootstrap/calling.h"
#include "bootstrap/connections.h"
#include "bootstrap/reception.h"

namespace ringbolt::bootstrap {

SideChannel SideChannel::join(const Config& config) {
  check(config);
  prepare_cryptography();
  const Key key = key_of(config.secret);
  // One deadline for all of it, name service included.
  const uint64_t deadline_ns = base::now_ns() + config.timeout_ms * 1'000'000;
  std::vector<Connection> connections(config.n_ranks);
  if (config.n_ranks > 1 && config.rank == 0) {
    connections = Reception(config, key, deadline_ns).run(deadline_ns);
  } else if (config.n_ranks > 1) {
    connections[0] = call_root(config, key, deadline_ns);
  }
  return SideChannel(std::make_unique<Connections>(config, std::move(connections)));
}

SideChannel::SideChannel(std::unique_ptr<Connections> connections) : connections_(std::move(connections)) {}
SideChannel::SideChannel(SideChannel&& other) noexcept = default;
SideChannel& SideChannel::operator=(SideChannel&& other) noexcept = default;
SideChannel::~SideChannel() = default;

uint32_t SideChannel::rank() const { return connections_->rank(); }
uint32_t SideChannel::n_ranks() const { return connections_->n_ranks(); }
int SideChannel::fd() const { return connections_->fd(); }

Outcome<std::vector<std::vector<std::byte>>> SideChannel::all_gather(std::span<const std::byte> mine,
                                                                     uint64_t deadline_ns) {
  return connections_->exchange(Exchange::all_gather, mine, deadline_ns);
}

Outcome<void> SideChannel::barrier(uint64_t deadline_ns) {
  if (const auto done = connections_->exchange(Exchange::barrier, {}, deadline_ns); !done) {
    return tl::unexpected(done.error());
  }
  return {};
}

base::Result<void> SideChannel::send(uint32_t to, uint16_t kind, std::span<const std::byte> bytes,
                                     bool is_latest_only) {
  return connections_->send(to, kind, bytes, is_latest_only);
}

uint64_t SideChannel::hosts_answering(uint32_t within_ms) const { return connections_->hosts_answering(within_ms); }

std::vector<Event> SideChannel::poll() { return connections_->poll(); }

}  // namespace ringbolt::bootstrap
