#include "bootstrap/circle.h"

#include <utility>

#include "base/clock.h"
#include "bootstrap/authenticator.h"
#include "bootstrap/calling.h"
#include "bootstrap/reception.h"
#include "bootstrap/star.h"

namespace ringbolt::bootstrap {

Circle Circle::join(const Config& config) {
  check(config);
  prepare_cryptography();
  const Key key = key_of(config.secret);
  const uint64_t deadline_ns = base::now_ns() + config.timeout_ms * 1'000'000;
  std::vector<Connection> connections(config.n_ranks);
  if (config.n_ranks > 1 && config.rank == 0) {
    connections = Reception(config, key, deadline_ns).run(deadline_ns);
  } else if (config.n_ranks > 1) {
    connections[0] = call_root(config, key, deadline_ns);
  }
  return Circle(std::make_unique<Star>(config.rank, config.n_ranks, std::move(connections)));
}

Circle::Circle(std::unique_ptr<Star> star) : star_(std::move(star)) {}
Circle::Circle(Circle&& other) noexcept = default;
Circle& Circle::operator=(Circle&& other) noexcept = default;
Circle::~Circle() = default;

uint32_t Circle::rank() const { return star_->rank(); }
uint32_t Circle::n_ranks() const { return star_->n_ranks(); }
int Circle::fd() const { return star_->fd(); }

Outcome<std::vector<std::vector<std::byte>>> Circle::all_gather(std::span<const std::byte> mine, uint64_t deadline_ns) {
  return star_->exchange(Exchange::all_gather, mine, deadline_ns);
}

Outcome<void> Circle::barrier(uint64_t deadline_ns) {
  if (const auto done = star_->exchange(Exchange::barrier, {}, deadline_ns); !done) {
    return tl::unexpected(done.error());
  }
  return {};
}

base::Result<void> Circle::send(uint32_t to, uint16_t kind, std::span<const std::byte> bytes, bool is_latest_only) {
  return star_->send(to, kind, bytes, is_latest_only);
}

uint64_t Circle::hosts_answering(uint32_t within_ms) const { return star_->hosts_answering(within_ms); }

std::vector<Event> Circle::poll() { return star_->poll(); }

}  // namespace ringbolt::bootstrap
