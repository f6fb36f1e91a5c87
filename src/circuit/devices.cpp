#include "circuit/devices.h"

#include <algorithm>
#include <tuple>

#include "base/clock.h"
#include "base/error.h"
#include "bringup/trial.h"

namespace ringbolt::circuit {
namespace {

// The endpoint's thread waits so long for a device that hangs, once; then the device is stuck, and left alone.
constexpr uint64_t kMostLookNs = 1'000'000'000;
// For one candidate, and for all of a port's.
constexpr uint32_t kTrialMs = 500;
constexpr uint64_t kTrialsNs = 4'000'000'000;

}  // namespace

Devices::Devices(const verbs::Library& library, const bringup::Survey& survey) : library_(library) {
  struct Found {
    Place place;
    bringup::PortCard card = {};
  };
  std::vector<Found> found;
  for (const bringup::SurveyedPort& one : survey.usable) {
    found.push_back({{one.card.device, one.card.port}, one.card});
  }
  for (const bringup::UnusablePort& one : survey.unusable) {
    // Of a device that said nothing at all the first port has a number nevertheless.
    found.push_back({{one.device, std::max<uint8_t>(one.port, 1), nullptr, one.is_stuck}});
  }
  // By name and port: so all processes of a node number the ports alike, which hops of paths rely on.
  std::ranges::sort(found, {}, [](const Found& one) { return std::tuple(one.place.name, one.place.port); });
  // The announcement has room for so many.
  found.resize(std::min(found.size(), bringup::kMostCards));
  for (const Found& one : found) {
    if (one.card.capabilities.can_connect()) {
      (void)open(one.place.name);  // numbered first: memory is registered with a few devices alone
    }
  }
  for (Found& one : found) {
    cards_.push_back(std::move(one.card));
    add(std::move(one.place));
  }
}

Devices::Devices(const verbs::Library& library, std::vector<bringup::PortCard> cards)
    : library_(library), cards_(std::move(cards)) {
  for (const bringup::PortCard& card : cards_) {
    add({card.device, card.port});
  }
}

const Device* Devices::open(const std::string& name) {
  // One context a device: several ports share its protection domain, and with it registrations.
  const auto same = std::ranges::find_if(devices_, [&](const auto& one) { return one->context.device() == name; });
  return same != devices_.end()
             ? same->get()
             : devices_.emplace_back(std::make_unique<Device>(library_, name, devices_.size())).get();
}

void Devices::add(Place place) {
  if (!place.is_stuck) {
    try {
      place.device = open(place.name);
    } catch (const base::Error&) {
      // A port that could carry circuits a moment ago and whose device does not open is an error; any other is a port
      // that is down.
      if (cards_[places_.size()].capabilities.can_connect()) {
        throw;
      }
    }
  }
  places_.push_back(std::move(place));
}

uint16_t Devices::first_port() const {
  const auto first = std::ranges::find_if(cards_, [](const auto& card) { return card.capabilities.can_connect(); });
  return static_cast<uint16_t>(first == cards_.end() ? 0 : first - cards_.begin());
}

bool Devices::is_active(uint16_t port) const {
  const Place& place = places_[port];
  if (place.device == nullptr || place.is_stuck) {
    return false;
  }
  const auto asked = place.device->context.query_port(place.port);
  return asked && asked->state == IBV_PORT_ACTIVE;
}

bool Devices::look_again(uint16_t port) {
  Place& place = places_[port];
  const bringup::Survey seen = bringup::survey_device(library_, place.name, base::now_ns() + kMostLookNs);
  for (const bringup::SurveyedPort& one : seen.usable) {
    if (one.card.port == place.port) {
      cards_[port] = one.card;
      return true;
    }
  }
  place.is_stuck = std::ranges::any_of(seen.unusable, &bringup::UnusablePort::is_stuck);
  return false;
}

std::vector<int> Devices::try_candidates(uint16_t port, std::span<const bringup::TrialCandidate> there) {
  const bringup::PortCard& card = cards_[port];
  verbs::Path path;
  path.port = card.port;
  path.gid_index = card.gid_index;
  const ibv_qp_type type = card.capabilities.has_rc ? IBV_QPT_RC : IBV_QPT_UC;
  return bringup::try_candidates(library_, card.device, type, path, there, kTrialMs, base::now_ns() + kTrialsNs);
}

}  // namespace ringbolt::circuit
