#include "bringup/survey.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/overlay_device.h"
#include "base/unique_fd.h"
#include "verbs/codes.h"
#include "verbs/errand.h"
#include "verbs/refusal.h"

namespace ringbolt::bringup {
namespace {

GidType type_of(uint32_t type) {
  switch (type) {
    case IBV_GID_TYPE_IB:
      return GidType::kInfiniBand;
    case IBV_GID_TYPE_ROCE_V1:
      return GidType::kRoceV1;
    case IBV_GID_TYPE_ROCE_V2:
      return GidType::kRoceV2;
    default:
      return GidType::kUnknown;
  }
}

// By any socket: the interface is named in the request (netdevice(7)).
std::optional<bool> is_up(const std::array<char, IF_NAMESIZE>& interface) {
  const base::UniqueFd socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  static_assert(sizeof request.ifr_name == IF_NAMESIZE);
  std::memcpy(request.ifr_name, interface.data(), interface.size());
  if (!socket.is_open() || ::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) {
    return std::nullopt;
  }
  return (request.ifr_flags & IFF_UP) != 0;
}

/// Its type and interface, where the library tells.
void learn_more(const verbs::Context& context, uint8_t port, GidEntry& entry) {
  ibv_gid_entry more{};
  const auto query = context.calls().query_gid_ex;
  if (query == nullptr || query(context.get(), port, entry.index, &more, 0, sizeof more) != 0) {
    return;
  }
  entry.type = type_of(more.gid_type);
  std::array<char, IF_NAMESIZE> name{};
  if (more.ndev_ifindex != 0 && ::if_indextoname(more.ndev_ifindex, name.data()) != nullptr) {
    entry.interface = name.data();
    entry.is_interface_up = is_up(name);
  }
}

std::string state_of(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "down";
    case IBV_PORT_INIT:
      return "up, but no subnet manager has set it up";
    case IBV_PORT_ARMED:
      return "armed, and not yet active";
    default:
      return "not active";
  }
}

/// One device while it is looked at.
class Look {
 public:
  Look(const verbs::Library& library, const std::string& device, Survey& survey)
      : context_(library, device), survey_(survey) {}

  void run() {
    const auto device = context_.query_device();
    // Libraries that can't be asked have devices of one port.
    const unsigned n_ports = device ? device->phys_port_cnt : 1;
    for (unsigned port = 1; port <= n_ports; ++port) {
      try {
        look_at(static_cast<uint8_t>(port));
      } catch (const base::Error& error) {
        // Those that were found usable before it stay so.
        refuse(static_cast<uint8_t>(port), error.what());
      }
    }
  }

 private:
  void refuse(uint8_t port, std::string reason) {
    survey_.unusable.push_back({context_.device(), port, std::move(reason)});
  }

  void look_at(uint8_t port) {
    const auto attributes = context_.query_port(port);
    if (!attributes) {
      refuse(port, fmt::format("ibv_query_port: {}", base::reason_of(attributes.error().value)));
      return;
    }
    if (attributes->state != IBV_PORT_ACTIVE) {
      refuse(port,
             fmt::format("it is {}: is its cable in, and RDMA enabled at the other end?", state_of(attributes->state)));
      return;
    }
    // May throw base::Error, as may what follows: run() turns it into a reason.
    const std::vector<GidEntry> table = read_gid_table(context_, port);
    const GidChoice choice = choose_gid(table);
    if (!choice.chosen) {
      refuse(port, choice.text());
      return;
    }
    PortCard card;
    card.device = context_.device();
    card.port = port;
    card.lid = attributes->lid;
    // An MTU that is not known is taken for the least. 256 is the least MTU of InfiniBand, and so of RoCE.
    card.mtu_bytes = std::max(256U, verbs::mtu_bytes(attributes->active_mtu));
    card.rate_mbps = static_cast<uint32_t>(verbs::rate_gbps(attributes->active_width, attributes->active_speed) * 1000);
    card.gid_index = choice.chosen->index;
    card.gids = card_gids(table, card.gid_index);
    // Of this port's look alone: devices have few. Given back before the next port is looked at.
    const verbs::ProtectionDomain pd(context_);
    const verbs::CompletionQueue cq(context_, 1);
    card.capabilities = probe(pd, cq, port);
    if (!card.capabilities.can_connect()) {
      refuse(port, "it has neither RC nor UC queue pairs");
      return;
    }
    survey_.usable.push_back({std::move(card), choice.text()});
  }

  verbs::Context context_;
  Survey& survey_;
};

}  // namespace

std::vector<GidEntry> read_gid_table(const verbs::Context& context, uint8_t port) {
  const auto attributes = context.query_port(port);
  if (!attributes) {
    verbs::refuse(verbs::Step::kQueryPort, attributes.error().value, fmt::format("{} port {}", context.device(), port));
  }
  std::vector<GidEntry> table;
  // An index has 8 bits in the address vector (sgid_index).
  for (int index = 0; index < std::min(attributes->gid_tbl_len, 256); ++index) {
    const auto gid = context.query_gid(port, index);
    if (!gid) {
      continue;  // a slot that can't be read can't be used
    }
    GidEntry& entry = table.emplace_back();
    entry.index = static_cast<uint8_t>(index);
    entry.gid = gid_of(*gid);
    if (!is_empty(entry.gid)) {
      learn_more(context, port, entry);
    }
  }
  guess_types(table);
  return table;
}

std::vector<CardGid> card_gids(std::span<const GidEntry> table, uint8_t chosen) {
  std::vector<CardGid> gids;
  for (const GidEntry& entry : table) {
    // A place is kept for the chosen one until it has come.
    const bool is_room_left = gids.size() + (entry.index < chosen ? 1 : 0) < kMostCardGids;
    if (can_be_used(entry) && (entry.index == chosen || is_room_left)) {
      gids.push_back({entry.index, entry.gid, entry.type});
    }
  }
  return gids;
}

std::vector<PortCard> Survey::cards() const {
  std::vector<PortCard> cards;
  for (const SurveyedPort& one : usable) {
    cards.push_back(one.card);
  }
  return cards;
}

Survey survey_device(const verbs::Library& library, const std::string& device, uint64_t deadline_ns) {
  // By value: the thread may outlive this call.
  const auto look = [library, device](verbs::Whereabouts&) {
    Survey of_device;
    Look(library, device, of_device).run();
    return of_device;
  };
  Survey survey;
  try {
    // The look runs in a thread of its own, which is left behind if the driver holds it (verbs::Stuck).
    return verbs::within<Survey>(deadline_ns, look);
  } catch (const base::Error& error) {
    survey.unusable.push_back({device, 0, error.what()});
  } catch (const verbs::Stuck& stuck) {
    survey.unusable.push_back({device, 0, stuck.what(), true});
  }
  return survey;
}

Survey survey(const verbs::Library& library, uint64_t deadline_ns) {
  auto devices = verbs::within<std::vector<std::string>>(
      deadline_ns, [library](verbs::Whereabouts&) { return verbs::device_names(library); });
  std::erase(devices, base::kOverlayDevice);  // its traffic goes over the cables
  std::sort(devices.begin(), devices.end());
  Survey survey;
  for (size_t i = 0; i < devices.size(); ++i) {
    const uint64_t now_ns = base::now_ns();
    // What earlier ones did not need is shared among those that follow.
    const uint64_t share_ns = (std::max(deadline_ns, now_ns) - now_ns) / (devices.size() - i);
    const Survey seen = survey_device(library, devices[i], now_ns + std::min(share_ns, kMostLookMs * 1'000'000));
    survey.usable.insert(survey.usable.end(), seen.usable.begin(), seen.usable.end());
    survey.unusable.insert(survey.unusable.end(), seen.unusable.begin(), seen.unusable.end());
  }
  return survey;
}

}  // namespace ringbolt::bringup
