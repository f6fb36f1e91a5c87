#include "bringup/gid_choice.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace ringbolt::bringup {
namespace {

// Compared with as text: empty slots are counted and not listed.
constexpr const char* kEmptySlot = "the slot is empty";

/// How good an entry is: the greater tuple is taken.
// For a link that routers may be part of; of a cable all would do.
struct Rank {
  bool is_in_subnet = false;
  bool is_v2 = false;
  int family = 0;  ///< 3 IPv4, 2 IPv6 that routers know, 1 link-local
};

bool is_better(const Rank& a, const Rank& b) {
  // RoCE v1 cannot be spoken with a peer that speaks v2, whatever its address; so the type goes before the family.
  return std::tie(a.is_in_subnet, a.is_v2, a.family) > std::tie(b.is_in_subnet, b.is_v2, b.family);
}

/// Why an entry can't be used at all; empty if it can.
std::string flaw_of(const GidEntry& entry) {
  if (is_empty(entry.gid)) {
    return kEmptySlot;
  }
  // Not known is no objection.
  if (entry.is_interface_up.has_value() && !*entry.is_interface_up) {
    return fmt::format("{} is of {}, which is down", text_of(entry.gid), entry.interface);
  }
  // Multicast, the unspecified address and the like (RFC 4291, section 2.4).
  if (!is_routable(entry.gid) && !is_link_local(entry.gid) && !is_loopback(entry.gid)) {
    return fmt::format("{} is no address of one machine", text_of(entry.gid));
  }
  return {};
}

int family_of(const Gid& gid) { return is_ipv4(gid) ? 3 : is_routable(gid) ? 2 : 1; }

const char* name_of_family(int family) {
  return family == 3 ? "an IPv4 address" : family == 2 ? "an IPv6 address that routers know" : "link-local IPv6";
}

Rank rank_of(const GidEntry& entry, const std::optional<Subnet>& peers) {
  return {.is_in_subnet = peers.has_value() && peers->contains(entry.gid),
          // Unknown types count as v2: libraries that tell none are of devices that have nothing else.
          .is_v2 = entry.type != GidType::kRoceV1,
          .family = family_of(entry.gid)};
}

/// Why `entry` came after `chosen`.
std::string disadvantage(const GidEntry& entry, const Rank& rank, const GidEntry& chosen, const Rank& best) {
  const std::string what = text_of(entry.gid);
  // In the order of is_better(): the first difference is what decided.
  if (best.is_in_subnet && !rank.is_in_subnet) {
    return fmt::format("{} is not in the peer's subnet", what);
  }
  if (best.is_v2 && !rank.is_v2) {
    return fmt::format("{} is of RoCE v1, and there is one of v2", what);
  }
  if (best.family != rank.family) {
    return fmt::format("{} is {}, and there is {}", what, name_of_family(rank.family), name_of_family(best.family));
  }
  return fmt::format("{} is as good as {} and comes later", what, chosen.index);
}

std::string advantage(const Rank& best, const std::optional<Subnet>& peers) {
  std::string text = name_of_family(best.family);
  if (!best.is_v2) {
    text += " (RoCE v1 alone)";
  }
  if (peers.has_value()) {
    text += best.is_in_subnet ? " in the peer's subnet"
                              : fmt::format(", although none is in the peer's subnet {}", text_of(peers->network));
  }
  return text;
}

}  // namespace

void guess_types(std::vector<GidEntry>& table) {
  // It does tell: what it left open is really unknown.
  if (std::ranges::any_of(table, [](const GidEntry& one) { return one.type != GidType::kUnknown; })) {
    return;
  }
  std::map<Gid, std::vector<GidEntry*>> by_gid;
  for (GidEntry& entry : table) {
    if (!is_empty(entry.gid)) {
      by_gid[entry.gid].push_back(&entry);
    }
  }
  for (const auto& [gid, entries] : by_gid) {
    // In the order of the table, which is that of indices. Devices with both versions list each address twice, v1
    // first; once: the only version that there is.
    if (entries.size() == 2) {
      entries[0]->type = GidType::kRoceV1;
      entries[1]->type = GidType::kRoceV2;
    }
  }
}

bool can_be_used(const GidEntry& entry) { return flaw_of(entry).empty(); }

GidChoice choose_gid(std::span<const GidEntry> table, const std::optional<Subnet>& peers) {
  const GidEntry* chosen = nullptr;
  Rank best;
  for (const GidEntry& entry : table) {
    const Rank rank = rank_of(entry, peers);
    if (flaw_of(entry).empty() && (chosen == nullptr || is_better(rank, best))) {
      chosen = &entry;
      best = rank;
    }
  }
  GidChoice choice;
  for (const GidEntry& entry : table) {
    if (&entry == chosen) {
      continue;
    }
    const std::string flaw = flaw_of(entry);
    choice.rejected.push_back(
        // With a usable entry there is a chosen one: it is not null here.
        {entry.index, flaw.empty() ? disadvantage(entry, rank_of(entry, peers), *chosen, best) : flaw});
  }
  if (chosen == nullptr) {
    choice.reason = table.empty()
                        ? "the port's GID table is empty: take its interface out of the bridge and give it an address"
                        : "no entry of the GID table can be used: give the port's own interface an address, and "
                          "bring it up";
    return choice;
  }
  choice.chosen = *chosen;
  choice.reason = advantage(best, peers);
  return choice;
}

std::string GidChoice::text() const {
  std::string text = chosen ? fmt::format("GID {} ({}): {}", chosen->index, text_of(chosen->gid), reason) : reason;
  size_t n_empty = 0;
  for (const GidRejection& one : rejected) {
    if (one.reason == kEmptySlot) {
      ++n_empty;
    } else {
      text += fmt::format("; not {}: {}", one.index, one.reason);
    }
  }
  return n_empty == 0 ? text : text + fmt::format("; {} empty", n_empty);
}

}  // namespace ringbolt::bringup
